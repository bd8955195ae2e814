"""Rings of proxies do not stay in Redis for ever: they go when no job uses the lane, and no member is out or rests."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.contract.redis_servers import RedisBench, ShardedBench

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.model.lease import Lease
from trotline.model.proxy_pool import MemberResult
from trotline.testing.frontier_contract.bench import SHOP, Client, live_on
from trotline.testing.frontier_contract.pool_bench import (
    BLOCKED,
    DOWN,
    FAULT,
    GOOD,
    JITTER,
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


@pytest.fixture(params=[RedisBench, ShardedBench])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[RedisBench]:
    bench: RedisBench = request.param()
    yield bench
    await bench.close()


async def kept(bench: RedisBench) -> list[str]:
    """What Redis has of rings."""
    client: Any = connect(bench.url)
    names = [name.decode() for name in await client.keys("trotline:*")]
    found = [name.partition("}:")[2] for name in names if ":ring:" in name or ":resting:" in name]
    for name in names:
        if name.endswith(":rings"):
            found += [f"rings {lane.decode()}" for lane in await client.hkeys(name)]
    await client.aclose()
    return sorted(found)


async def visit_all(client: Client, count: int, *results: MemberResult, host: str = SHOP) -> list[Lease]:
    """So many pages; the first ones end with these results, the others well."""
    await client.put(through(count, host=host))
    leases = await take(client)
    assert len(leases) == count
    for lease, result in zip(leases, [*results, *[GOOD] * count], strict=False):
        await give(client, lease, result)
    return leases


async def end(client: Client) -> None:
    await client.seal()
    assert await client.finished()
    assert await client.announce_finish()


async def test_the_ring_of_a_lane_goes_with_the_last_job(bench: RedisBench) -> None:
    frontier = await bench.open()
    await register(bench, pool_with(1, 2, 3))
    await visit_all(frontier, 3)
    await visit_all(frontier, 2, host="other.example")
    assert f"rings {VIA_POOL}" in await kept(bench)
    bench.clock.jump(1.0)

    await end(frontier)

    assert await kept(bench) == []
    again = await bench.another_job()
    await again.put(through(3))
    assert members_of(await take(again)) == [1, 2, 3], "a later job begins anew"


async def test_a_quarantine_is_kept_until_it_is_over(bench: RedisBench) -> None:
    frontier = await bench.open()
    await register(bench, pool_with(1, 2, 3))
    banned = (await visit_all(frontier, 3, BLOCKED))[0].member
    await end(frontier)
    assert f"resting:{VIA_POOL}" in await kept(bench)

    second = await bench.another_job()
    await second.put(through(3))
    leases = await take(second)
    assert banned not in members_of(leases) and len(leases) == 2
    for lease in leases:
        await give(second, lease)
    [left] = await second.lease("w", 1, pools=(POOL,))
    await give(second, left)
    await end(second)
    assert f"resting:{VIA_POOL}" in await kept(bench)

    third = await bench.another_job()
    bench.clock.jump(REST * (1 + JITTER))
    await end(third)
    assert await kept(bench) == []


async def test_a_ring_with_a_member_out_or_of_a_running_job_stays(bench: RedisBench) -> None:
    frontier, other = await bench.open(), await bench.another_job()
    await register(bench, pool_with(1, 2))
    await other.put(through(1))
    [out] = await take(other, "o")
    await visit_all(frontier, 1)
    await end(frontier)
    view = {each.member: each for each in await (await bench.proxy_pools()).members(POOL, VIA_POOL)}
    assert view[out.member].in_flight and len(view) == 2

    # Its claim is out of date, and its visit takes longer.
    third = await bench.another_job()
    await live_on(bench, other, 300, "o")
    await end(third)
    assert f"rings {VIA_POOL}" in await kept(bench)
    await third.close()
    await give(other, out, worker="o")
    view = {each.member: each for each in await (await bench.proxy_pools()).members(POOL, VIA_POOL)}
    assert sorted(view) == [1, 2] and not any(each.in_flight for each in view.values())


@pytest.mark.parametrize("interval", [3.0, 30.0])
async def test_a_member_that_is_not_due_yet_keeps_its_interval(bench: RedisBench, interval: float) -> None:
    """In the ring, or beside it if it is due much later."""
    frontier = await bench.open()
    await register(bench, pool_with(1, interval=interval))
    await visit_all(frontier, 1)
    await end(frontier)
    assert f"rings {VIA_POOL}" in await kept(bench)

    later = await bench.another_job()
    bench.clock.jump(interval)
    await end(later)
    assert await kept(bench) == []


async def test_a_job_that_is_deleted_takes_idle_rings_along(bench: RedisBench) -> None:
    frontier = await bench.open()
    await register(bench, pool_with(1, 2))
    await frontier.put(through(2))
    await take(frontier)
    jobs = RedisJobs(connect(bench.url), now=bench.clock, shards=bench.shards)
    [job] = await jobs.all()
    bench.clock.jump(1.0)

    await jobs.forget(job.id)

    await jobs.close()
    assert await kept(bench) == []


async def test_a_proxy_that_rests_for_a_fault_keeps_its_rest(bench: RedisBench) -> None:
    frontier = await bench.open()
    await register(bench, pool_with(1, 2))
    await visit_all(frontier, 2, FAULT)
    # The page of the fault waits.
    bench.clock.jump(0.5)
    for lease in await take(frontier):
        await give(frontier, lease)
    await end(frontier)
    assert f"resting:{VIA_POOL}" in await kept(bench)

    later = await bench.another_job()
    bench.clock.jump(DOWN * (1 + JITTER))
    await end(later)
    assert await kept(bench) == []


async def test_a_damaged_ring_changes_nothing_for_the_others(bench: RedisBench) -> None:
    frontier = await bench.open()
    await register(bench, pool_with(1, 2))
    await visit_all(frontier, 1)
    await visit_all(frontier, 1, host="other.example")
    client: Any = connect(bench.url)
    [ring] = [name for name in await client.keys("trotline:*") if name.endswith(f":ring:{VIA_POOL}".encode())]
    await client.rpush(ring, b"not a member")
    await client.aclose()
    bench.clock.jump(1.0)

    await end(frontier)

    assert await kept(bench) == []
