"""How Redis keeps the members of a ring: several in a string, and new ones in blocks (docs/decisions/170)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.contract.redis_servers import RedisBench

from trotline.adapters.redis import keys
from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.lua_layouts import CALM_RING, DEALT_TOGETHER, MEMBER_BYTES, PACKED_RING
from trotline.adapters.redis.pool_members import member_field
from trotline.model.lease import Lease, Settlement
from trotline.model.outcome import Done
from trotline.testing.frontier_contract.bench import Client
from trotline.testing.frontier_contract.pool_bench import (
    BLOCKED,
    GOOD,
    JITTER,
    NEWS,
    POOL,
    REST,
    VIA_POOL,
    give,
    members_of,
    pool_with,
    register,
    take,
    through,
)

RING = keys.ring(0, VIA_POOL)


@pytest.fixture
async def bench() -> AsyncIterator[RedisBench]:
    bench = RedisBench()
    yield bench
    await bench.close()


@pytest.fixture
async def server(bench: RedisBench) -> AsyncIterator[Any]:
    client: Any = connect(bench.url)
    yield client
    await client.aclose()


async def all_good(client: Client, leases: list[Lease]) -> None:
    await client.settle("w", [Settlement(each, Done(), news=NEWS[GOOD], member=GOOD) for each in leases])


async def test_members_that_come_back_together_are_one_string(bench: RedisBench, server: Any) -> None:
    frontier = await bench.open()
    await register(bench, pool_with(*range(1, 41)))
    await frontier.put(through(100))

    await all_good(frontier, await take(frontier, limit=40))

    strings = await server.lrange(RING, 0, -1)
    assert [len(each) // MEMBER_BYTES for each in strings] == [16, 16, 8]
    assert members_of(await take(frontier, limit=20)) == list(range(1, 21))
    assert sum(map(len, await server.lrange(RING, 0, -1))) == 20 * MEMBER_BYTES, "the rest is put back"


async def test_what_is_known_of_a_ring_is_short_while_it_is_calm(bench: RedisBench, server: Any) -> None:
    frontier = await bench.open()
    await register(bench, pool_with(1, 2, 3))
    await frontier.put(through(20))

    leases = await take(frontier, limit=3)
    assert await server.hget(keys.rings(0), VIA_POOL) == CALM_RING.pack(3, 1)
    for lease in leases:
        await give(frontier, lease, BLOCKED)
    assert len(await server.hget(keys.rings(0), VIA_POOL)) == PACKED_RING.size
    bench.jump(REST * (1 + JITTER))
    assert members_of(await take(frontier, limit=3)) == [1, 2, 3]

    assert await server.hget(keys.rings(0), VIA_POOL) == CALM_RING.pack(3, 1)


async def test_lanes_in_turns_get_back_their_own_members(bench: RedisBench, server: Any) -> None:
    """A worker settles pages in the order in which they ended, and not by lane."""
    frontier = await bench.open()
    await register(bench, pool_with(*range(1, 41)))
    await frontier.put([*through(40), *through(40, host="other.example")])
    leases = await take(frontier, limit=80)
    lanes = sorted({lease.task.lane for lease in leases})

    await all_good(frontier, sorted(leases, key=lambda lease: (lease.member, lease.task.lane)))

    for lane in lanes:
        packed = b"".join(await server.lrange(keys.ring(0, lane), 0, -1))
        assert [packed[at : at + 6] for at in range(0, len(packed), MEMBER_BYTES)] == [
            member_field(member) for member in range(1, 41)
        ]


async def test_a_string_of_another_program_stops_no_lease(bench: RedisBench, server: Any) -> None:
    frontier = await bench.open()
    await register(bench, pool_with(1, 2, 3))
    await frontier.put(through(20))
    await all_good(frontier, await take(frontier, limit=3))
    await server.lpush(RING, b"not a member")
    bench.jump(1.0)

    assert members_of(await take(frontier, limit=3)) == [1, 2, 3]


async def test_blocks_of_members_that_are_forgotten_are_skipped(bench: RedisBench, server: Any) -> None:
    frontier = await bench.open()
    await register(bench, pool_with(*range(1, 41)))
    await server.hdel(f"{keys.part(0)}dealing:{POOL}", bytes(4))
    await server.zrem(f"{keys.part(0)}added:{POOL}", *map(member_field, range(1, DEALT_TOGETHER + 1)))
    await frontier.put(through(100))

    assert members_of(await take(frontier)) == list(range(DEALT_TOGETHER + 1, 41))


async def test_evidence_against_a_site_is_kept_while_there_is_some(bench: RedisBench, server: Any) -> None:
    frontier = await bench.open()
    await register(bench, pool_with(1, 2, 3))
    await frontier.put(through(1000))
    evidence = keys.evidence(0)

    await all_good(frontier, await take(frontier, limit=3))
    assert not await server.exists(evidence)
    [lease] = await take(frontier, limit=1)
    await give(frontier, lease, BLOCKED)
    assert await server.hkeys(evidence) == [VIA_POOL.encode()]
    for _ in range(200):
        await all_good(frontier, await take(frontier, limit=2))
        bench.jump(1.0)

    assert not await server.exists(evidence), "a good visit reads it only where it is"
