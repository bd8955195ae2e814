"""Proxy pools (`ports.proxy_pools`) as operators see them: the pools of a frontier, and members that are out."""

from msgspec.structs import replace

from trotline.model.proxy_pool import RegisteredPool, lane_of
from trotline.testing.frontier_contract.bench import Bench
from trotline.testing.frontier_contract.pool_bench import BLOCKED, POOL, VIA_POOL, give, pool_with, take, through


class PoolListPromises:
    async def test_r8_registered_pools_are_listed_with_version_size_and_rules(self, bench: Bench) -> None:
        await bench.open()
        pools = await bench.proxy_pools()
        assert await pools.pools() == []

        await pools.register(pool_with(1, 2, 3, name="isp", version=4.5))
        await pools.register(pool_with(*range(1, 8), name="datacenter", version=2.0, member_concurrency=1))
        await pools.register(pool_with(1, 9, name="isp", version=5.5))
        await pools.register(pool_with(7, name="isp", version=3.0))

        datacenter, isp = await pools.pools()
        assert replace(datacenter, rules=None) == RegisteredPool(name="datacenter", version=2.0, members=7)
        assert replace(isp, rules=None) == RegisteredPool(name="isp", version=5.5, members=2)
        # A backend of several parts rounds the limits of a member.
        assert datacenter.rules is not None and datacenter.rules.member_concurrency >= 1
        assert isp.rules == pool_with(name="isp").rules

    async def test_r2_members_in_flight_are_listed_with_their_history(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        other_lane = lane_of("other.example", POOL)
        await pools.register(pool_with(1, 2, 3, 4))
        await frontier.put(through(3))
        await frontier.put(through(1, host="other.example"))
        before = await pools.members(POOL, VIA_POOL)
        leases = await take(frontier)
        [elsewhere] = [lease for lease in leases if lease.task.lane == other_lane]
        first, second, third = (lease for lease in leases if lease.task.lane == VIA_POOL)
        await give(frontier, first)
        await give(frontier, second, BLOCKED)

        view = {each.member: each for each in await pools.members(POOL, VIA_POOL)}

        assert before == []
        # A backend may have dealt a member to the lane that no lease went through yet.
        assert {first.member, second.member, third.member} <= set(view)
        assert [each.member for each in view.values() if each.in_flight] == [third.member]
        out = view[third.member]
        assert (out.lane, out.banned, out.rests_for, out.strikes) == (VIA_POOL, False, 0.0, 0)
        assert view[second.member].quality < out.quality <= view[first.member].quality
        there = await pools.members(POOL, other_lane)
        assert [each.member for each in there if each.in_flight] == [elsewhere.member]
        await give(frontier, third)
        await give(frontier, elsewhere)
        assert not any(each.in_flight for each in await pools.members(POOL, VIA_POOL))
