"""R7, R8 and R9: turns of members, changes of the pool, and limits of a member over all lanes."""

from collections import Counter

from trotline.model.lease import Lease, Settlement
from trotline.model.outcome import Done
from trotline.model.proxy_pool import Pool, PoolMember, PoolRules
from trotline.testing.frontier_contract.bench import (
    Bench,
    live_on,
)
from trotline.testing.frontier_contract.pool_bench import (
    BLOCKED,
    GOOD,
    NEWS,
    POOL,
    assert_apart,
    give,
    members_of,
    pool_with,
    register,
    take,
    through,
    visit,
)


class RotationPromises:
    async def test_r7_members_take_equal_turns(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(*range(1, 8)))
        await frontier.put(through(200))

        one_by_one = Counter([await visit(frontier) for _ in range(35)])
        together: Counter[int] = Counter()
        for _ in range(14):
            leases = await take(frontier, limit=3)
            together.update(lease.member for lease in leases)
            for lease in leases:
                await give(frontier, lease)
            bench.jump(0.5)

        assert one_by_one == dict.fromkeys(range(1, 8), 5)
        assert set(together.values()) <= {5, 6, 7}, f"six turns each are even: {together}"

    async def test_r7_turns_are_equal_however_many_go_out_and_come_back_together(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(*range(1, 41)))
        await frontier.put(through(400))
        turns: Counter[int] = Counter()

        for limit in (1, 20, 3, 16, 1, 40, 7, 1, 17, 2, 33, 40, 5, 1, 13, 40, 40):
            leases = await take(frontier, limit=limit)
            assert len(leases) == limit
            assert len(set(members_of(leases))) == limit, "one visit at a time goes through a member"
            turns.update(members_of(leases))
            await frontier.settle("w", [Settlement(each, Done(), news=NEWS[GOOD], member=GOOD) for each in leases])
            assert max(turns.values()) - min(turns[member] for member in range(1, 41)) <= 1
            bench.jump(1.0)

    async def test_r2_lanes_that_are_served_twice_in_a_lease_get_other_members(self, bench: Bench) -> None:
        """One lane has less than its part of the lease, so the others get more of it."""
        frontier = await bench.open()
        await register(bench, pool_with(*range(1, 41)))
        hosts = ("one.example", "two.example", "short.example")
        for host in hosts:
            await frontier.put(through(1, host=host))
            await visit(frontier, host=host)
        bench.jump(1.0)
        for host, count in zip(hosts, (30, 30, 2), strict=True):
            await frontier.put(through(count, host=host)[1:])

        leases = await take(frontier, limit=24)

        out = Counter((lease.task.lane, lease.member) for lease in leases)
        assert len(leases) == 24
        assert set(out.values()) == {1}

    async def test_r7_hold_keeps_a_member_for_some_visits_in_a_row(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2, 3, hold=4))
        await frontier.put(through(100))

        came = [await visit(frontier) for _ in range(24)]

        runs = [came[n : n + 4] for n in range(0, 24, 4)]
        assert all(len(set(run)) == 1 for run in runs), came
        assert Counter(run[0] for run in runs) == {1: 2, 2: 2, 3: 2}

    async def test_r7_a_member_is_kept_as_long_as_it_works(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2, 3, hold=0))
        await frontier.put(through(200))

        first = [await visit(frontier) for _ in range(70)]
        banned = await visit(frontier, BLOCKED)
        then = [await visit(frontier) for _ in range(10)]

        assert set(first) == {banned}
        assert len(set(then)) == 1
        assert banned not in then

    async def test_r2_a_held_member_that_loses_its_turn_goes_out_once(self, bench: Bench) -> None:
        frontier = await bench.open()
        weak = Pool(name=POOL, version=1.0, rules=PoolRules(hold=0), members=(PoolMember(1, weight=0.0),))
        await register(bench, weak)
        await frontier.put(through(100))
        for _ in range(10):
            leases = await take(frontier, limit=5)
            assert len(leases) <= 1, "one visit of a lane at a time goes through a member"
            for lease in leases:
                await give(frontier, lease)
            await live_on(bench, frontier, 1.0, "w")

    async def test_r8_a_removed_member_gets_no_lease_and_an_added_one_gets_turns(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        await pools.register(pool_with(1, 2, 3, version=10.0))
        await frontier.put(through(100))
        for _ in range(6):
            await visit(frontier)
        [out] = await take(frontier, limit=1)
        left = {1, 2, 3, 4, 5} - {out.member}

        assert await pools.register(pool_with(*sorted(left), version=11.0))
        await give(frontier, out)

        assert Counter([await visit(frontier) for _ in range(16)]) == dict.fromkeys(left, 4)

    async def test_r8_an_older_version_is_ignored_and_the_same_one_changes_nothing(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        assert await pools.register(pool_with(1, 2, version=10.0))
        await frontier.put(through(20))
        banned = await visit(frontier, BLOCKED)

        assert not await pools.register(pool_with(7, version=9.0))
        assert await pools.register(pool_with(1, 2, version=10.0))

        assert members_of(await take(frontier)) == [3 - banned]

    async def test_r8_a_pool_without_members_gives_no_lease_until_it_has_some(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        await pools.register(pool_with(1, version=1.0))
        await frontier.put(through(20))
        await visit(frontier)
        await pools.register(pool_with(version=2.0))
        assert await take(frontier) == []

        await pools.register(pool_with(1, version=3.0))

        assert members_of(await take(frontier)) == [1]

    async def test_r9_starts_through_a_member_keep_member_interval_over_all_lanes(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2, member_interval=3.0))
        hosts = [f"h{n}.example" for n in range(6)]
        await frontier.put([each for host in hosts for each in through(20, host=host)])
        came: list[Lease] = []
        for _ in range(60):
            leases = await take(frontier, limit=5)
            came += leases
            for lease in leases:
                await give(frontier, lease)
            await live_on(bench, frontier, 0.5, "w")

        assert_apart(came, 3.0)
        assert len(came) >= 16, "two members every 3 s for 30 s"

    async def test_r9_a_member_at_its_limit_holds_up_no_other(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        hosts = [f"h{n}.example" for n in range(4)]
        await frontier.put([each for host in hosts for each in through(1, host=host)])
        await pools.register(pool_with(1, version=1.0, member_interval=100.0, member_concurrency=1))
        assert members_of(await take(frontier)) == [1]

        await pools.register(pool_with(1, 2, version=2.0, member_interval=100.0, member_concurrency=1))

        assert members_of(await take(frontier)) == [2]

    async def test_r9_leases_through_a_member_stay_within_member_concurrency(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, member_concurrency=2))
        hosts = [f"h{n}.example" for n in range(5)]
        await frontier.put([each for host in hosts for each in through(3, host=host)])

        held = await take(frontier)
        assert members_of(held) == [1, 1]
        await give(frontier, held[0])
        bench.jump(1.0)

        assert len(await take(frontier)) == 1
        await frontier.leave("w")
        bench.jump(1.0)
        assert len(await take(frontier, "v")) == 2
