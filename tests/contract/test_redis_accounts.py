"""Accounts on Redis: whatever ends a lease frees its account, nothing else does, and no lane waits for it in a loop."""

from collections.abc import AsyncIterator

import pytest
from tests.contract.redis_servers import RedisBench, ShardedBench

from trotline.adapters.redis import keys
from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.pool_members import member_field
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.task_codec import template_of
from trotline.model.lease import Lease, Settled
from trotline.model.outcome import Snooze
from trotline.model.proxy_pool import account_id, lane_of
from trotline.ports.frontier import DEAD_AFTER
from trotline.testing.frontier_contract.accounts import ANNA, API, BERT, BUYERS, accounts, as_buyer, hold
from trotline.testing.frontier_contract.bench import SHOP, Client, live_on
from trotline.testing.frontier_contract.pool_bench import BLOCKED, give, members_of, pool_with, register, take, through

AS_ANNA = f"{BUYERS}/anna"


@pytest.fixture(params=[RedisBench, ShardedBench], ids=["one shard", "four shards"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[RedisBench]:
    bench: RedisBench = request.param()
    yield bench
    await bench.close()


async def held_by_another_job(bench: RedisBench, host: str = API) -> tuple[Client, Client, Lease]:
    """A job, another one, and the lease of the other one that has the only account."""
    frontier, other = await bench.open(), await bench.another_job()
    await register(bench, accounts(ANNA, rest_of_dead=60.0))
    await frontier.put(as_buyer(3))
    await other.put(as_buyer(3, host))
    [lease] = await hold(other, "other")
    assert await hold(frontier) == []
    return frontier, other, lease


async def forget(bench: RedisBench, client: Client) -> None:
    jobs = RedisJobs(connect(bench.url), now=bench.clock, shards=bench.shards)
    await jobs.forget(client.job.id)
    await jobs.close()


@pytest.mark.parametrize("host", [API, SHOP], ids=["another lane", "the same lane"])
async def test_the_account_of_a_dead_worker_whose_job_has_no_other_one_is_rescued(bench: RedisBench, host: str) -> None:
    frontier, _, _ = await held_by_another_job(bench, host)

    await live_on(bench, frontier, DEAD_AFTER + 5.0, "w")
    await hold(frontier)
    await live_on(bench, frontier, 70.0, "w")

    assert members_of(await hold(frontier)) == [ANNA]


@pytest.mark.parametrize("host", [API, SHOP], ids=["another lane", "the same lane"])
async def test_a_job_that_is_deleted_frees_its_accounts_after_their_rest(bench: RedisBench, host: str) -> None:
    frontier, other, _ = await held_by_another_job(bench, host)

    await forget(bench, other)

    await live_on(bench, frontier, 50.0, "w")
    assert await hold(frontier) == []
    await live_on(bench, frontier, 20.0, "w")
    assert members_of(await hold(frontier)) == [ANNA]


async def test_a_job_with_damaged_keys_that_is_deleted_frees_its_accounts(bench: RedisBench) -> None:
    frontier, other, _ = await held_by_another_job(bench, SHOP)
    for shard in other._shards:
        await shard.server.ask("DEL", f"{shard.prefix}lanes")
        await shard.server.ask("SET", f"{shard.prefix}lanes", b"junk")

    await forget(bench, other)

    await live_on(bench, frontier, 80.0, "w")
    assert members_of(await hold(frontier)) == [ANNA]


async def test_a_job_that_is_deleted_gives_back_the_places_of_proxies(bench: RedisBench) -> None:
    frontier, other = await bench.open(), await bench.another_job()
    await register(bench, pool_with(7, member_concurrency=1))
    await other.put(through(1))
    assert members_of(await take(other, "other")) == [7]
    await forget(bench, other)
    await frontier.put(through(1))
    await live_on(bench, frontier, 10.0, "w")
    assert members_of(await take(frontier)) == [7]


async def test_what_a_worker_does_not_know_of_frees_the_account_at_once(bench: RedisBench) -> None:
    frontier, other, _ = await held_by_another_job(bench)

    assert await other.holds("other", []) == 1

    await live_on(bench, frontier, 1.0, "w")
    assert members_of(await hold(frontier)) == [ANNA]


async def test_a_lease_whose_reply_was_lost_frees_the_account_at_once() -> None:
    bench = RedisBench()
    frontier = await bench.open()
    await register(bench, accounts(ANNA, rest_of_dead=60.0))
    await frontier.put(as_buyer(2))
    shard, lost = frontier._shards[0], frontier._server.call_name()
    args = ("w", 2, lost, "", "1", "3600", 1, 0, "", 0.5, "", BUYERS)
    await shard.server.run(script("lease"), shard.key, *args)
    shard._lost["w"] = lost

    assert members_of(await hold(frontier)) == [ANNA]
    await bench.close()


async def test_a_stale_settle_does_not_free_the_account_of_its_next_holder(bench: RedisBench) -> None:
    frontier, other, stale = await held_by_another_job(bench)
    await live_on(bench, frontier, DEAD_AFTER + 5.0, "w")
    await hold(frontier)
    await live_on(bench, frontier, 70.0, "w")
    [lease] = await hold(frontier)

    assert await give(other, stale, worker="other") == Settled.STALE

    await live_on(bench, frontier, 1.0, "w")
    assert (lease.member, await hold(other, "another")) == (ANNA, [])


async def test_an_account_that_is_removed_and_added_again_is_not_lent_twice(bench: RedisBench) -> None:
    frontier, _, _ = await held_by_another_job(bench)

    await register(bench, accounts(BERT, version=2.0), accounts(ANNA, version=3.0))

    await live_on(bench, frontier, 10.0, "w")
    assert await hold(frontier) == []


async def test_what_the_holder_of_a_removed_account_saves_is_not_stored(bench: RedisBench) -> None:
    _, other, lease = await held_by_another_job(bench)
    await register(bench, accounts(BERT, version=2.0))

    assert await other.save_session("other", lease, b"old")

    assert await other.read_session("other", lease) == b""


async def test_a_session_is_cleared_by_an_empty_state(bench: RedisBench) -> None:
    _, other, lease = await held_by_another_job(bench)
    assert await other.save_session("other", lease, b"cookies")
    assert await other.save_session("other", lease, b"")
    assert await other.read_session("other", lease) == b""


async def test_a_lease_of_a_proxy_has_no_session(bench: RedisBench) -> None:
    frontier = await bench.open()
    await register(bench, pool_with(7))
    await frontier.put(through(1))
    [lease] = await take(frontier)
    assert not await frontier.save_session("w", lease, b"cookies")
    assert await frontier.read_session("w", lease) == b""


async def test_lanes_that_share_an_account_take_turns(bench: RedisBench) -> None:
    """Also if the one that had it asks again at once."""
    frontier = await bench.open()
    await register(bench, accounts(ANNA))
    await frontier.put(as_buyer(100) + as_buyer(100, API) + as_buyer(100, pool=AS_ANNA))
    visited = []
    for _ in range(60):
        while held := await hold(frontier):
            bench.jump(0.3)
            # The other lanes look for it while it is out.
            assert await hold(frontier) == []
            await give(frontier, held[0])
            visited.append(held[0].task.lane)
            if len(visited) >= 60:
                break
        await live_on(bench, frontier, 0.1, "w")
    counts = {lane: visited.count(lane) for lane in visited}
    assert (len(counts), len(visited) >= 15) == (3, True), counts
    assert min(counts.values()) >= len(visited) / 4, counts


async def test_each_window_of_an_account_has_its_visits(bench: RedisBench) -> None:
    frontier = await bench.open()
    await register(bench, accounts(ANNA, member_uses=2, uses_window=100.0))
    await frontier.put(as_buyer(10))
    starts = []
    for _ in range(160):
        for lease in await hold(frontier):
            starts.append(bench.now() + lease.start_in)
            await give(frontier, lease)
        await live_on(bench, frontier, 2.0, "w")
    assert len(starts) in (7, 8)
    # A window begins with its first start.
    assert all(later - first >= 99.9 for first, later in zip(starts[::2], starts[2::2], strict=False))


async def test_a_lane_that_waits_for_an_account_is_looked_at_some_times_a_second(bench: RedisBench) -> None:
    frontier, _, _ = await held_by_another_job(bench)
    await frontier.put(as_buyer(2, pool=AS_ANNA))
    bench.jump(1.0)
    assert await hold(frontier) == []

    pauses = [(await shard.lease("w", 10, (BUYERS,))).pause for shard in frontier._shards]

    [pause] = [pause for pause in pauses if pause > 0]
    assert 0.1 < pause <= 0.25


async def test_many_lanes_that_wait_for_an_account_look_less_often(bench: RedisBench) -> None:
    frontier = await bench.open()
    await register(bench, accounts(ANNA))
    await frontier.put([each for n in range(200) for each in as_buyer(1, f"shop{n}.example")])
    [lease] = await hold(frontier)
    shard = frontier._parts.home(lease.task.lane)
    for _ in range(10):
        bench.jump(0.5)
        assert await hold(frontier) == []
    soon = 1000 * (bench.now() + 0.5)
    assert int(await shard.server.ask("ZCOUNT", f"{shard.prefix}rest", soon, "+inf")) > 100
    await give(frontier, lease)
    for _ in range(10):
        if leases := await hold(frontier):
            break
        bench.jump(0.1)
    assert members_of(leases) == [ANNA]


async def test_an_account_is_named_by_its_lane_and_costs_no_template(bench: RedisBench) -> None:
    frontier = await bench.open()
    names = [f"{BUYERS}/{n}" for n in range(30)]
    some = [each for name in names for each in as_buyer(1, pool=name)]
    await register(bench, accounts(*map(account_id, names)))
    await frontier.put(some)

    leases = await hold(frontier)

    assert len({template_of(each) for each in some}) == 1
    assert {(lease.task.pool, lease.member) for lease in leases} == {(name, account_id(name)) for name in names}


async def test_views_know_account_pools_and_lanes_of_one_account(bench: RedisBench) -> None:
    frontier = await bench.open()
    await register(bench, accounts(ANNA, BERT), pool_with(1, 2, 3))
    await frontier.put(as_buyer(2) + as_buyer(2, pool=AS_ANNA))
    pools = await bench.proxy_pools()
    lane = lane_of(SHOP, AS_ANNA)
    for lease in await hold(frontier):
        await give(frontier, lease, BLOCKED, outcome=Snooze(0, "again") if lease.task.lane == lane else None)

    assert [(pool.name, pool.members) for pool in await pools.pools()] == [(BUYERS, 2), ("datacenter", 3)]
    assert [view.members for view in await pools.lanes(BUYERS, [lane_of("new.example", AS_ANNA)])] == [1]
    views = {view.lane: view for view in await pools.lanes(BUYERS)}
    assert {lane: view.members for lane, view in views.items()} == {lane_of(SHOP, BUYERS): 2, lane: 1}
    banned = {name: view.banned for name, view in views.items() if view.banned}
    for name, count in banned.items():
        assert len([each for each in await pools.members(BUYERS, name) if each.banned]) == count
        assert await pools.release(BUYERS, name) == count
    assert banned


async def test_rules_and_loads_of_an_older_version_are_read() -> None:
    bench = RedisBench()
    frontier = await bench.open()
    await register(bench, pool_with(7, 8, member_concurrency=1))
    key = keys.pool(0, "datacenter")
    rules = await frontier._server.ask("HGET", key, "rules")
    await frontier._server.ask("HSET", key, "rules", rules[:40])
    load = "trotline:{0}:load:datacenter"
    await frontier._server.ask("HSET", load, member_field(7), b"\0" * 8 + b"\1\0")
    await frontier.put(through(3))

    [lease] = await take(frontier)

    assert lease.member == 8
    assert await give(frontier, lease) == Settled.OK
    pools = await bench.proxy_pools()
    assert await pools.release("datacenter", lane_of(SHOP, "datacenter")) == 0
    await bench.close()
