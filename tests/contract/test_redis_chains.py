"""Chains on a Redis server: several shards, large calls, and keys that another program wrote over."""

from collections.abc import AsyncIterator

import pytest
from tests.contract.redis_servers import RedisBench, ShardedBench
from tests.contract.test_redis_damage import own, write

from trotline.adapters.redis.batch_codec import encode
from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.scripts import script
from trotline.errors import FrontierError
from trotline.model.lease import Admission, Settlement
from trotline.model.outcome import Bury, Done, Snooze
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.bench import SHOP, end, finish, lease_all, lease_one, task, urls
from trotline.testing.frontier_contract.chain_bench import counts, run_all, step, steps, url_of

CALL = 500
"""Steps that one call buries or revives."""


@pytest.fixture
async def bench() -> AsyncIterator[RedisBench]:
    bench = RedisBench()
    yield bench
    await bench.close()


@pytest.fixture
async def sharded() -> AsyncIterator[RedisBench]:
    bench = ShardedBench()
    yield bench
    await bench.close()


def lane_elsewhere(frontier: Client, lane: str = SHOP) -> str:
    """A lane in another shard."""
    home = frontier.opened.frontier._parts.home
    return next(name for name in (f"{n}.example" for n in range(100)) if home(name) is not home(lane))


def lane_beside(frontier: Client, lane: str = SHOP) -> str:
    """Another lane in the same shard."""
    home = frontier.opened.frontier._parts.home
    return next(name for name in (f"{n}.example" for n in range(100)) if home(name) is home(lane))


# Several shards


async def test_a_step_in_another_shard_is_refused_with_an_error_that_names_both_lanes(sharded: RedisBench) -> None:
    frontier, other = await sharded.open(), await sharded.again()
    elsewhere = lane_elsewhere(frontier)
    await frontier.put([step(0)])

    with pytest.raises(FrontierError) as told:
        await other.put([task("https://x.example/plain", lane="x.example"), step(1, lane=elsewhere)])

    assert elsewhere in str(told.value)
    assert f"lane {SHOP}" in str(told.value)
    assert "shards=1" in told.value.hint
    assert await counts(frontier) == (1, 0, 0, 0), "nothing of the call was admitted"


async def test_a_child_in_another_shard_is_refused_and_counted(sharded: RedisBench) -> None:
    frontier = await sharded.open()
    await frontier.put([step(0)])
    children = (step(1), step(2, lane=lane_elsewhere(frontier)), step(3), task("https://y.example/", lane="y.example"))

    first = await lease_one(frontier, "w")
    await frontier.settle("w", [Settlement(first, Done(), children=children)])

    assert (await frontier.progress()).tallies["refused: chain over several shards"] == 1
    assert sorted(await run_all(frontier)) == sorted([url_of(1), url_of(3), "https://y.example/"])


async def test_a_chain_goes_over_lanes_of_one_shard_and_chains_over_all_shards(sharded: RedisBench) -> None:
    frontier = await sharded.open()
    beside = lane_beside(frontier)
    given = [step(number, lane=(SHOP, beside)[number % 2]) for number in range(6)]
    others = [each for number in range(20) for each in steps(3, f"chain {number}", lane=f"{number}.example")]
    await frontier.put([*given, *others])

    visited = await run_all(frontier)

    assert [url for url in visited if "/basket/" in url] == [each.url for each in given]
    for number in range(20):
        of_chain = [url for url in visited if f"/chain {number}/" in url]
        assert of_chain == [url_of(each, f"chain {number}", f"{number}.example") for each in range(3)]


async def test_a_step_redirected_to_another_shard_is_buried_with_its_chain(sharded: RedisBench) -> None:
    frontier = await sharded.open()
    elsewhere = lane_elsewhere(frontier)
    await frontier.put(steps(3))
    lease = await lease_one(frontier, "w")

    moved = task(f"https://{elsewhere}/moved", lane=elsewhere, chain="basket", hops=1)
    await end(frontier, "w", lease, Snooze(0, "moved", task=moved))

    assert await counts(frontier) == (0, 0, 0, 3)
    why = f"chain: redirected to lane {elsewhere}, which is in another shard than the chain"
    assert {grave.why for grave in await frontier.graves()} == {why, f"chain: step {url_of(0)} failed: {why}"}
    assert await frontier.revive() == 3
    assert await run_all(frontier) == [url_of(number) for number in range(3)]


# Large calls


async def test_a_page_with_thousands_of_steps_keeps_their_order(bench: RedisBench) -> None:
    frontier = await bench.open()
    await frontier.put([task(f"https://{SHOP}/list")])
    page = await lease_one(frontier, "w")

    await frontier.settle("w", [Settlement(page, Done(), children=tuple(steps(2_500)))])

    assert await run_all(frontier) == [url_of(number) for number in range(2_500)]


async def test_many_chains_that_fail_in_one_call_are_buried_by_and_by(bench: RedisBench) -> None:
    frontier = await bench.open()
    for number in range(30):
        await frontier.put(steps(101, f"c{number}"))
    held = await lease_all(frontier, "w")
    assert len(held) == 30

    await frontier.settle("w", [Settlement(lease, Bury("broken: 500")) for lease in held])
    waiting, _, _, dead = await counts(frontier)
    assert (waiting, dead) == (3_000 - CALL, 30 + CALL), "one call moves no more than that"
    for _ in range(6):
        assert await frontier.lease("w", 1) == []

    assert await counts(frontier) == (0, 0, 0, 3_030)
    assert await write_count(frontier, "broken") == 0
    assert await frontier.revive(why="broken") == 3_030
    visited = await run_all(frontier)
    assert [url for url in visited if "/c7/" in url] == [url_of(number, "c7") for number in range(101)]


async def write_count(frontier: Client, name: str) -> int:
    found: int = await frontier._server.ask("EXISTS", own(frontier, name))
    return found


async def test_a_chain_that_fails_while_it_is_revived_keeps_its_order(bench: RedisBench) -> None:
    frontier = await bench.open()
    await frontier.put(steps(2_300))
    await end(frontier, "w", await lease_one(frontier, "w"), Bury("broken: 500"))
    for _ in range(5):
        await frontier.lease("w", 1)
    [shard] = frontier._shards
    # One call of the several that `revive` makes: its client died.
    risen, more = await shard.server.run(script("revive"), shard.key, encode(["", step(0).id, 100]))
    assert (risen, more) == (CALL + 1, 1)
    assert await frontier.put([step(2_300)]) == [Admission.NEW]
    lease = await lease_one(frontier, "w")
    await end(frontier, "w", lease, Bury("broken: 502"))
    for _ in range(6):
        assert await frontier.lease("w", 1) == []
    assert await counts(frontier) == (0, 0, 0, 2_301)

    assert await frontier.revive(why="broken") == 2_301

    assert await run_all(frontier) == [url_of(number) for number in range(2_301)]


# Keys


async def test_nothing_is_left_of_chains_that_have_run_out(bench: RedisBench) -> None:
    frontier = await bench.open()
    await frontier.put([each for number in range(10) for each in steps(3, f"c{number}", lane=f"{number}.example")])
    await run_all(frontier)

    left = await frontier._server.ask("KEYS", own(frontier, "*"))
    names = {key.decode().removeprefix(own(frontier, "")) for key in left}
    assert not [name for name in names if name.startswith(("c:", "x:", "chain", "broken"))]


async def test_a_deleted_job_leaves_no_chains(bench: RedisBench) -> None:
    frontier = await bench.open()
    await frontier.put([*steps(3), *steps(3, "failed")])
    leases = await lease_all(frontier, "w")
    await end(frontier, "w", next(each for each in leases if each.task.chain == "failed"), Bury("broken: 500"))
    jobs = RedisJobs(connect(bench.url))

    await jobs.forget(frontier.job.id)
    await jobs.close()

    left = await frontier._server.ask("KEYS", own(frontier, "*"))
    assert [key for key in left if b":put:" not in key] == []


@pytest.mark.parametrize(
    "junk", [b"junk", b"", b"\x00" * 5, b"\x00\xff\xff\xff\x7fx", b"\x09" + bytes(100), b"x" * 9999]
)
async def test_a_damaged_chain_goes_on(bench: RedisBench, junk: bytes) -> None:
    frontier = await bench.open()
    await frontier.put(steps(4))
    lease = await lease_one(frontier, "w")
    await write(frontier, "HSET", own(frontier, "chains"), "basket", junk)
    await write(frontier, "LPUSH", own(frontier, "c:basket"), junk)

    await finish(frontier, "w", [lease])

    assert await run_all(frontier) == [url_of(number) for number in range(1, 4)]


async def test_a_damaged_entry_does_not_stop_a_burial(bench: RedisBench) -> None:
    frontier = await bench.open()
    await frontier.put(steps(4))
    lease = await lease_one(frontier, "w")
    await write(frontier, "RPUSH", own(frontier, "c:basket"), b"junk")

    await end(frontier, "w", lease, Bury("broken: 500"))

    assert await counts(frontier) == (0, 0, 0, 4)
    assert await frontier.revive() == 4
    assert urls(await lease_all(frontier, "w")) == [url_of(0)]
