"""Leases that end in runs, lane by lane, and the short way of calm lanes (docs/decisions/171)."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.contract.redis_servers import RedisBench

from trotline.adapters.redis import keys
from trotline.adapters.redis.batch_codec import token_field
from trotline.adapters.redis.layouts import CALM
from trotline.adapters.redis.task_codec import PARCEL, unwrap
from trotline.model.lease import LaneFeedback, Lease, Settled, Settlement
from trotline.model.outcome import Done, Retry
from trotline.model.verdict import Kind
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.bench import SHOP, lease_all, steady, task, tasks

WORKER = "w"
SHARED = "trotline:{0}:lanes"
OTHER = "other.example"


@pytest.fixture
async def bench() -> AsyncIterator[RedisBench]:
    bench = RedisBench()
    yield bench
    await bench.close()


async def shared(frontier: Client) -> bytes:
    packed: bytes = await frontier._server.ask("HGET", SHARED, SHOP)
    return packed


async def visits(
    bench: RedisBench, took: list[float], *, whys: list[str], robots: bool = False
) -> tuple[bytes, dict[str, int]]:
    """The lane after visits that took so long. With several reasons they are several runs: it is read as a whole."""
    frontier = await bench.open(steady(rate=100.0, concurrency=100))
    await frontier.put(tasks(3 * len(took)))
    for _ in range(2):
        leases = await frontier.lease(WORKER, len(took))
        ends = [
            Settlement(lease, Done(why), news=LaneFeedback(Kind.OK, took=each, robots=robots), tallies={"records": 2})
            for lease, each, why in zip(leases, took, whys, strict=True)
        ]
        assert await frontier.settle(WORKER, ends) == [Settled.OK] * len(took)
    return await shared(frontier), dict((await frontier.progress()).tallies)


@pytest.mark.parametrize("robots", [False, True], ids=["without robots.txt", "with robots.txt"])
@pytest.mark.parametrize("took", [[0.1, 0.25, 0.2, 0.1], [0.1, 0.1, 9.0, 0.1], [0.0, 0.0, 0.0, 0.3]], ids=str)
async def test_a_calm_lane_learns_the_same_on_the_short_way(bench: RedisBench, took: list[float], robots: bool) -> None:
    short, counted = await visits(bench, took, whys=["gone"] * 4, robots=robots)
    full, _ = await visits(bench, took, whys=["gone", "gone", "other", "other"], robots=robots)

    assert short == full
    assert counted["records"] == 16
    assert (short[0] == CALM) == (9.0 not in took)


async def test_leases_of_several_lanes_are_answered_in_the_order_given(bench: RedisBench) -> None:
    frontier = await bench.open()
    await frontier.put([*tasks(4), *tasks(4, lane=OTHER)])
    leases = await lease_all(frontier, WORKER)
    mixed = [lease for pair in zip(leases[:4], leases[4:], strict=True) for lease in pair]
    child = task("https://shop.example/child")
    stale = msgspec.structs.replace(mixed[2], token=mixed[2].token + 1000)
    ends = [Settlement(lease, Done(), news=LaneFeedback(Kind.OK)) for lease in mixed]
    ends[2] = Settlement(stale, Done(), children=(task("https://shop.example/none"),))
    ends[3] = Settlement(mixed[3], Retry(0, "again"), news=LaneFeedback(Kind.BROKEN))
    ends[5] = Settlement(mixed[5], Done(), children=(child,))

    expected = [Settled.OK] * 2 + [Settled.STALE] + [Settled.OK] * 5
    assert await frontier.settle(WORKER, ends) == expected
    told = await frontier.progress()
    assert (told.leased, told.done, told.waiting) == (1, 6, 2), "of the stale one nothing changes"


async def test_a_lease_that_is_given_twice_in_a_call_ends_once(bench: RedisBench) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(2))
    one, other = await lease_all(frontier, WORKER)
    ends = [Settlement(lease, Done(), tallies={"records": 1}) for lease in (one, other, one)]

    assert await frontier.settle(WORKER, ends) == [Settled.OK, Settled.OK, Settled.STALE]
    told = await frontier.progress()
    assert (told.leased, told.done, told.tallies["records"]) == (0, 2, 2)


async def renamed(frontier: Client, lease: Lease, lane: bytes) -> Lease:
    """Its lease as if it came from a lane with this name."""
    shard = frontier._shards[0]
    field, held = token_field(lease.token), keys.held(shard.prefix, WORKER)
    level, _, blob = unwrap(await frontier._server.ask("HGET", held, field))
    await frontier._server.ask("HSET", held, field, PARCEL.pack(level, len(lane)) + lane + blob)
    return msgspec.structs.replace(lease, task=msgspec.structs.replace(lease.task, lane=lane.decode(errors="replace")))


async def test_leases_of_lanes_whose_names_are_not_text_can_end(bench: RedisBench) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(3))
    names = (b"sh\xff.example", b"sh\xf0\x9f\x98.example", SHOP.encode())
    pairs = zip(await lease_all(frontier, WORKER), names, strict=True)
    leases = [await renamed(frontier, lease, name) for lease, name in pairs]
    assert leases[0].task.lane == leases[1].task.lane, "another name, but the client cannot tell"

    assert await frontier.settle(WORKER, [Settlement(lease, Done()) for lease in leases]) == [Settled.OK] * 3
    told = await frontier.progress()
    assert (told.leased, told.done) == (0, 3)
