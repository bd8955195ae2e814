"""A1 to A6 (`ports.proxy_pools`): accounts, and the sessions that travel with them."""

import asyncio

from trotline.model.lease import Lease
from trotline.model.proxy_pool import Pool, PoolMember, PoolRules, account_id, lane_of
from trotline.model.task import Task
from trotline.ports.frontier import DEAD_AFTER
from trotline.testing.frontier_contract.bench import SHOP, Bench, Client, live_on, task
from trotline.testing.frontier_contract.pool_bench import BLOCKED, give, members_of, register, take

BUYERS = "@buyers"
ANNA, BERT, CLEO = (account_id(f"{BUYERS}/{name}") for name in ("anna", "bert", "cleo"))
API = "api.shop.example"


def accounts(*ids: int, version: float = 1.0, name: str = BUYERS, **rules: float) -> Pool:
    given = PoolRules(**({"rest": 600.0, "member_concurrency": 1, "probe": 0.0} | rules))  # type: ignore[arg-type]
    return Pool(name=name, version=version, rules=given, members=tuple(PoolMember(each) for each in ids))


def as_buyer(count: int, host: str = SHOP, pool: str = BUYERS) -> list[Task]:
    return [task(f"https://{host}/{n}?{pool}", lane=lane_of(host, pool), pool=pool) for n in range(count)]


async def hold(client: Client, worker: str = "w", limit: int = 100) -> list[Lease]:
    return await take(client, worker, limit, pools=(BUYERS,))


async def hold_one(client: Client) -> Lease:
    held = await hold(client)
    assert len(held) == 1, f"{len(held)} leases, through {members_of(held)}"
    return held[0]


class AccountPromises:
    async def test_a1_one_lease_at_a_time_over_all_lanes_jobs_and_workers(self, bench: Bench) -> None:
        frontier = await bench.open()
        other_job = await bench.another_job()
        await register(bench, accounts(ANNA, BERT))
        for job in (frontier, other_job):
            await job.put(as_buyer(4) + as_buyer(4, API) + as_buyer(2, pool=f"{BUYERS}/anna"))

        hauls = await asyncio.gather(
            *(job.lease(f"w{n}", 4, pools=(BUYERS,)) for n in range(3) for job in (frontier, other_job))
        )

        assert members_of([lease for haul in hauls for lease in haul]) == sorted((ANNA, BERT))

    async def test_a1_every_task_has_its_turn_one_after_another(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, accounts(ANNA, BERT))
        await frontier.put(as_buyer(6) + as_buyer(6, API) + as_buyer(6, pool=f"{BUYERS}/anna"))
        done = 0
        for _ in range(200):
            held = await hold(frontier)
            assert len(held) == len(set(members_of(held)))
            for lease in held:
                await give(frontier, lease)
            done += len(held)
            if done == 18:
                return
            await live_on(bench, frontier, 0.5, "w")
        raise AssertionError(f"{done} of 18 tasks were visited")

    async def test_a2_a_lane_with_an_account_is_visited_by_this_account_only(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, accounts(ANNA, BERT, CLEO))
        await frontier.put(as_buyer(3, pool=f"{BUYERS}/bert"))
        for _ in range(3):
            lease = await hold_one(frontier)
            assert (lease.member, lease.task.pool) == (BERT, f"{BUYERS}/bert")
            assert await hold(frontier) == []
            await give(frontier, lease)
            await live_on(bench, frontier, 1.0, "w")

    async def test_a2_an_account_that_is_not_in_the_pool_is_waited_for(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, accounts(ANNA))
        await frontier.put(as_buyer(1, pool=f"{BUYERS}/cleo"))
        assert await hold(frontier) == []

        await register(bench, accounts(ANNA, CLEO, version=2.0))

        [lease] = await hold(frontier)
        assert lease.member == CLEO

    async def test_a2_a_quarantine_holds_for_the_lane_of_the_account(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, accounts(ANNA, BERT))
        await frontier.put(as_buyer(3, pool=f"{BUYERS}/anna"))
        [lease] = await hold(frontier)
        await give(frontier, lease, BLOCKED)

        await live_on(bench, frontier, 590.0, "w")
        assert await hold(frontier) == []
        await live_on(bench, frontier, 80.0, "w")
        assert members_of(await hold(frontier)) == [ANNA]

    async def test_a3_an_account_of_a_silent_worker_rests_for_all_lanes(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, accounts(ANNA, rest_of_dead=60.0))
        await frontier.put(as_buyer(2) + as_buyer(2, API))
        [lost] = await hold(frontier, "silent")

        await live_on(bench, frontier, DEAD_AFTER + 5.0, "w")
        assert await hold(frontier) == []
        await live_on(bench, frontier, 50.0, "w")
        assert await hold(frontier) == []
        await live_on(bench, frontier, 15.0, "w")

        assert members_of(await hold(frontier)) == [lost.member]

    async def test_a3_a_worker_that_leaves_frees_its_accounts_at_once(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, accounts(ANNA, rest_of_dead=60.0))
        await frontier.put(as_buyer(2))
        assert len(await hold(frontier, "leaving")) == 1

        await frontier.leave("leaving")

        assert members_of(await hold(frontier)) == [ANNA]

    async def test_a4_an_account_rests_when_its_visits_of_a_window_are_used(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, accounts(ANNA, member_uses=3, uses_window=3600.0))
        await frontier.put(as_buyer(4) + as_buyer(4, API))
        for _ in range(3):
            await give(frontier, await hold_one(frontier))
            await live_on(bench, frontier, 1.0, "w")

        assert await hold(frontier) == []
        await live_on(bench, frontier, 3580.0, "w")
        assert await hold(frontier) == []
        await live_on(bench, frontier, 30.0, "w")

        assert members_of(await hold(frontier)) == [ANNA]

    async def test_a5_the_next_holder_reads_what_the_last_one_saved(self, bench: Bench) -> None:
        frontier = await bench.open()
        other_job = await bench.another_job()
        await register(bench, accounts(ANNA))
        await frontier.put(as_buyer(2))
        await other_job.put(as_buyer(1, API))
        [lease] = await hold(frontier)
        assert await frontier.read_session("w", lease) == b""
        assert await frontier.save_session("w", lease, b"cookies \x00\xff of anna")
        await give(frontier, lease)

        [next_lease] = await hold(other_job, "other")

        assert await other_job.read_session("other", next_lease) == b"cookies \x00\xff of anna"

    async def test_a5_sessions_of_two_accounts_are_apart(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, accounts(ANNA, BERT))
        await frontier.put(as_buyer(2))
        one, other = await hold(frontier)
        assert await frontier.save_session("w", one, b"one")

        assert await frontier.read_session("w", other) == b""
        assert await frontier.read_session("w", one) == b"one"

    async def test_a5_without_a_live_lease_nothing_is_stored(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, accounts(ANNA))
        await frontier.put(as_buyer(2))
        [stale] = await hold(frontier, "silent")
        assert await frontier.save_session("silent", stale, b"first")
        await live_on(bench, frontier, DEAD_AFTER + 5.0, "w")
        [lease] = await hold(frontier)

        assert not await frontier.save_session("silent", stale, b"stale")
        assert not await frontier.save_session("w", stale, b"of another worker")
        assert await frontier.read_session("silent", stale) is None

        assert await frontier.read_session("w", lease) == b"first"
        await give(frontier, lease)
        assert not await frontier.save_session("w", lease, b"after its settle")

    async def test_a5_an_account_that_is_removed_takes_its_session_along(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, accounts(ANNA))
        await frontier.put(as_buyer(2))
        [lease] = await hold(frontier)
        assert await frontier.save_session("w", lease, b"old password")
        await give(frontier, lease)

        await register(bench, accounts(BERT, version=2.0))
        await register(bench, accounts(ANNA, version=3.0))

        for _ in range(20):
            if leases := await hold(frontier):
                break
            await live_on(bench, frontier, 1.0, "w")
        assert members_of(leases) == [ANNA]
        assert await frontier.read_session("w", leases[0]) == b""

    async def test_a6_lanes_of_many_hosts_share_the_accounts(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, accounts(ANNA, BERT))
        hosts = [f"shop{n}.example" for n in range(12)]
        await frontier.put([each for host in hosts for each in as_buyer(1, host)])
        visited = 0
        for _ in range(200):
            held = await hold(frontier)
            assert len(held) == len(set(members_of(held)))
            for lease in held:
                await give(frontier, lease)
            visited += len(held)
            if visited == len(hosts):
                return
            await live_on(bench, frontier, 0.5, "w")
        raise AssertionError(f"{visited} of {len(hosts)} tasks were visited")
