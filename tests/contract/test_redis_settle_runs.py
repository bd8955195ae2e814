"""Leases that end in runs, lane by lane, and the short way of calm lanes (docs/decisions/171)."""

import struct
from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec
import pytest
from tests.contract.redis_servers import RedisBench

from trotline.adapters.redis import keys
from trotline.adapters.redis.batch_codec import token_field
from trotline.adapters.redis.lua_layouts import CALM, CALM_LANE, MEMBER_BYTES
from trotline.adapters.redis.task_codec import PARCEL, unwrap
from trotline.model.lease import LaneFeedback, Lease, Settled, Settlement
from trotline.model.outcome import Done, Retry
from trotline.model.verdict import Kind
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.bench import SHOP, lease_all, steady, task, tasks
from trotline.testing.frontier_contract.pool_bench import (
    BLOCKED,
    GOOD,
    JITTER,
    NEWS,
    REST,
    VIA_POOL,
    give,
    members_of,
    pool_with,
    register,
    take,
    through,
)

WORKER = "w"
SHARED = "trotline:{0}:lanes"
OTHER = "other.example"
LATENCIES = slice(9, 11)
"""Of an unpacked calm lane."""


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


class Left(NamedTuple):
    """After visits through a pool."""

    first_byte: int
    latencies: tuple[float, ...]
    members: list[tuple[bytes, bytes]]
    """Ids and states, in the order of the ring."""


async def pooled_visits(bench: RedisBench, whys: list[str]) -> Left:
    """With several reasons the visits are several runs: the lane is read as a whole."""
    frontier = await bench.open(steady(rate=100.0, concurrency=100))
    await register(bench, pool_with(*range(1, 6)))
    await frontier.put(through(2 * len(whys)))
    for took in (0.1, 0.3):
        leases = await take(frontier, limit=len(whys))
        ends = [
            Settlement(lease, Done(why), news=LaneFeedback(Kind.OK, took=took), member=GOOD)
            for lease, why in zip(leases, whys, strict=True)
        ]
        assert await frontier.settle(WORKER, ends) == [Settled.OK] * len(whys)
        bench.jump(1.0)
    server = frontier._server
    lane = await server.ask("HGET", SHARED, VIA_POOL)
    packed = b"".join(await server.ask("LRANGE", keys.ring(0, VIA_POOL), 0, -1))
    members = [struct.unpack_from("<6s4x5x5s", packed, at) for at in range(0, len(packed), MEMBER_BYTES)]
    return Left(lane[0], CALM_LANE.unpack(lane)[LATENCIES] if lane[0] == CALM else (), members)


async def test_visits_through_a_pool_leave_the_same_on_the_short_way(bench: RedisBench) -> None:
    short = await pooled_visits(bench, ["gone"] * 4)
    full = await pooled_visits(bench, ["gone", "gone", "other", "other"])

    assert short == full
    assert short.first_byte == CALM
    assert len(short.members) == 5


async def test_a_lane_whose_ring_was_empty_is_served_as_soon_as_a_member_is_back(bench: RedisBench) -> None:
    """Also if the visit changed nothing else of its lane."""
    frontier = await bench.open(steady(rate=100.0, concurrency=100))
    await register(bench, pool_with(1))
    await frontier.put(through(3))
    [first] = await take(frontier, limit=3)
    assert await take(frontier, limit=3) == [], "the only member is out"
    bench.jump(1.0)

    await frontier.settle(WORKER, [Settlement(first, Done(), news=NEWS[GOOD], member=GOOD)])

    assert members_of(await take(frontier, limit=3)) == [1]


async def test_a_member_that_needs_more_goes_its_own_way_beside_plain_ones(bench: RedisBench) -> None:
    """Of one run, one member has a strike: it is forgiven step by step, and the others only go to the tail."""
    frontier = await bench.open(steady(rate=100.0, concurrency=100))
    await register(bench, pool_with(1, 2, 3))
    await frontier.put(through(20))
    [banned, *_] = leases = await take(frontier, limit=3)
    for lease in leases:
        await give(frontier, lease, BLOCKED if lease is banned else GOOD)
    bench.jump(REST * (1 + JITTER))
    back = await take(frontier, limit=3)
    assert banned.member in members_of(back)

    ends = [Settlement(lease, Done(), news=NEWS[GOOD], member=GOOD) for lease in back]
    assert await frontier.settle(WORKER, ends) == [Settled.OK] * 3

    bench.jump(1.0)
    assert members_of(await take(frontier, limit=3)) == [1, 2, 3]
