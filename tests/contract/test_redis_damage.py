"""What somebody else wrote over a server's keys: repaired and counted where it can be, else named with its remedy."""

import struct
from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.contract.redis_servers import RedisBench

from trotline.adapters.redis.flat_pairs import pairs
from trotline.errors import FrontierError
from trotline.model.task import SOON
from trotline.model.verdict import Kind
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.bench import SHOP, finish, lease_all, steady, task, tasks

WORKER = "w"
SHARED = "trotline:{0}:lanes"
NAN = struct.pack("<d", float("nan"))
JUNK = {
    "text": b"junk",
    "nothing": b"",
    "one byte": b"\x00",
    "cut calm": b"\x01" + bytes(40),
    "calm of zeros": b"\x01" + bytes(84),
    "calm without a number": b"\x01" + bytes(8) + NAN * 3 + bytes(4) + NAN * 6,
    "cut struggling": b"\x00\x05\x00\x01" + bytes(30),
    "struggling of zeros": bytes(169),
    "more claims than there are": b"\x00\xff\xff\x00" + bytes(400),
    "another form": b"\x07" + bytes(84),
    "long": b"x" * 100_000,
}


@pytest.fixture
async def bench() -> AsyncIterator[RedisBench]:
    bench = RedisBench()
    yield bench
    await bench.close()


def own(frontier: Client, name: str) -> str:
    return frontier._shards[0].prefix + name


async def write(frontier: Client, *words: object) -> None:
    """As another program with access to the server would."""
    await frontier._server.ask(*words)


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
async def test_a_lane_that_cannot_be_read_is_opened_anew(bench: RedisBench, junk: bytes) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(6))
    await frontier.seal()
    before = await frontier.lease(WORKER, 3)
    await write(frontier, "HSET", SHARED, SHOP, junk)

    [view] = await frontier.lanes()
    assert (view.lane, view.waiting) == (SHOP, 3)
    assert await frontier.lane_pace(SHOP) is not None
    await finish(frontier, WORKER, before, Kind.OK)
    bench.jump(1)
    await finish(frontier, WORKER, await lease_all(frontier, WORKER), Kind.OK)

    told = await frontier.progress()
    assert (told.waiting, told.leased, told.done, told.dead) == (0, 0, 6, 0)
    assert told.tallies["lanes repaired"] == 1
    assert await frontier.finished()


async def test_a_lane_that_is_opened_anew_keeps_its_pace(bench: RedisBench) -> None:
    frontier = await bench.open(steady(rate=1.0, concurrency=1))
    await frontier.put(tasks(3))
    await finish(frontier, WORKER, await frontier.lease(WORKER, 1))
    await write(frontier, "HSET", SHARED, SHOP, b"junk")

    [lease] = await frontier.lease(WORKER, 1)
    assert lease.start_in >= 0.99, "it may have been asked a moment ago"
    assert await frontier.lease(WORKER, 1) == [], "one visit at a time"


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
async def test_the_tasks_of_a_job_are_found_in_a_lane_that_cannot_be_read(bench: RedisBench, junk: bytes) -> None:
    frontier = await bench.open()
    later = task("https://shop.example/later", not_before=bench.now() + 60)
    await frontier.put([*tasks(3), task("https://shop.example/soon", priority=SOON), later])
    await frontier.seal()
    await write(frontier, "HSET", own(frontier, "lanes"), SHOP, junk)

    [view] = await frontier.lanes()
    assert (view.lane, view.waiting) == (SHOP, 5)
    await finish(frontier, WORKER, await lease_all(frontier, WORKER))
    bench.jump(61)
    await finish(frontier, WORKER, await lease_all(frontier, WORKER))

    told = await frontier.progress()
    assert (told.waiting, told.leased, told.done, told.dead) == (0, 0, 5, 0)
    assert told.tallies["lanes repaired"] == 1
    assert await frontier.finished()


async def test_a_task_is_put_into_a_lane_that_cannot_be_read(bench: RedisBench) -> None:
    frontier = await bench.open()
    await write(frontier, "HSET", own(frontier, "lanes"), SHOP, b"")
    await write(frontier, "HSET", SHARED, SHOP, b"")
    await frontier.put(tasks(2))
    bench.jump(1)
    assert len(await lease_all(frontier, WORKER)) == 2


FORMS = {
    "an object": b"\x80\x04junk\xff",
    "nothing": b"",
    "cut": b"\x93\x01",
    "text that is not UTF-8": b"\x97\xa1\xff\xa0\xa0\x00\x00\xa0\xa0",
    "another scheme": msgspec.msgpack.encode(["page", "", "", 50, 0, "GET", "gopher"]),
}


@pytest.mark.parametrize("junk", FORMS.values(), ids=FORMS)
async def test_tasks_whose_form_cannot_be_read_are_buried_and_the_others_go_on(bench: RedisBench, junk: bytes) -> None:
    frontier = await bench.open()
    await frontier.put([*tasks(2), task("https://shop.example/other", route="other")])
    await frontier.seal()
    kept = pairs(await frontier._server.ask("HGETALL", own(frontier, "forms")))
    [first] = [name for name, form in kept if name[:1] != b"=" and b"other" not in form]
    await write(frontier, "HSET", own(frontier, "forms"), first, junk)

    anew = await bench.again()
    leases = await lease_all(anew, WORKER)
    assert [lease.task.route for lease in leases] == ["other"]
    await finish(anew, WORKER, leases)

    assert [grave.why.partition(":")[0] for grave in await anew.graves()] == ["undecodable"] * 2
    assert await anew.finished()


async def test_shared_lanes_of_another_kind_are_explained_in_plain_words(bench: RedisBench) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(3))
    await write(frontier, "DEL", SHARED)
    await write(frontier, "SET", SHARED, b"x")
    with pytest.raises(FrontierError, match="has a value of another type") as caught:
        await frontier.lease(WORKER, 1)
    assert "script:" not in str(caught.value)
    assert SHARED in caught.value.hint
    assert "trotline jobs --forget" in caught.value.hint
