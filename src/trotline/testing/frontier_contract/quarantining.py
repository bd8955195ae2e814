"""R4, R5, R6 and R10: bans and faults of members, blocks by the site, and lanes without a free member."""

import asyncio

from trotline.model.lease import Lease
from trotline.model.outcome import Done
from trotline.model.proxy_pool import LanePoolView, lane_of
from trotline.model.time import Seconds
from trotline.ports.frontier import DEAD_AFTER
from trotline.testing.frontier_contract.bench import (
    SHOP,
    Bench,
    lane_view,
    live_on,
    tasks,
)
from trotline.testing.frontier_contract.pacing import GRAIN
from trotline.testing.frontier_contract.pool_bench import (
    BLOCKED,
    DOWN,
    FAULT,
    GOOD,
    JITTER,
    POOL,
    REST,
    SITE_BLOCK,
    VIA_POOL,
    give,
    members_of,
    patiently,
    pool_with,
    register,
    take,
    through,
    visit,
)


class QuarantinePromises:
    async def test_r4_a_banned_member_rests_for_its_lane_only(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2))
        await frontier.put(through(50))
        banned = await visit(frontier, BLOCKED)
        await frontier.put(through(20, host="other.example"))

        leases = await take(frontier)

        assert members_of([x for x in leases if x.task.lane == VIA_POOL]) == [3 - banned]
        assert members_of([x for x in leases if x.task.lane != VIA_POOL]) == [1, 2]

    async def test_r4_each_further_ban_doubles_the_quarantine(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1))
        await frontier.put(through(10))
        for rest in (REST, 2 * REST, 4 * REST):
            assert await visit(frontier, BLOCKED) == 1
            await live_on(bench, frontier, rest - 1, "w")
            assert await take(frontier) == [], f"quarantined for {rest} s"
            await live_on(bench, frontier, 2 + JITTER * rest, "w")

        assert members_of(await take(frontier)) == [1]

    async def test_r4_no_start_is_reserved_before_the_end_of_a_quarantine(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        await pools.register(pool_with(1))
        await frontier.put(through(10))
        await visit(frontier, BLOCKED)
        [view] = await pools.members(POOL, VIA_POOL)
        assert REST <= view.rests_for <= REST * (1 + JITTER) + GRAIN

        await live_on(bench, frontier, view.rests_for - 0.1, "w")
        assert await take(frontier) == []
        await live_on(bench, frontier, 0.2, "w")

        assert members_of(await take(frontier)) == [1]

    async def test_r4_good_visits_clear_a_members_record(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        await pools.register(pool_with(1, interval=4.0))
        await frontier.put(through(50))
        await visit(frontier, BLOCKED)
        await live_on(bench, frontier, REST * (1 + JITTER) + 1, "w")
        for _ in range(3):
            [lease] = await patiently(bench, frontier, "w")
            await give(frontier, lease)
        [view] = await pools.members(POOL, VIA_POOL)
        assert (view.banned, view.strikes, view.rests_for > 0) == (False, 0, True), "it waits for its interval only"
        [lease] = await patiently(bench, frontier, "w")

        await give(frontier, lease, BLOCKED)
        await live_on(bench, frontier, REST * (1 + JITTER) + 1, "w")

        assert members_of(await take(frontier)) == [1], "the quarantine is the first one again"

    async def test_r4_an_operator_ends_quarantines(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        await pools.register(pool_with(1, 2, 3))
        await frontier.put(through(50))
        for _ in range(3):
            await visit(frontier, BLOCKED)
        assert await take(frontier) == []
        view = {each.member: each for each in await pools.members(POOL, VIA_POOL)}
        assert all(view[n].banned and view[n].rests_for > REST - 1 and view[n].strikes == 1 for n in (1, 2, 3))

        assert await pools.release(POOL, VIA_POOL, 2) == 1
        assert members_of(await take(frontier)) == [2]
        assert await pools.release(POOL, VIA_POOL) == 2
        assert members_of(await take(frontier)) == [1, 3]

    async def test_r5_without_a_free_member_nothing_is_leased_and_no_attempt_counted(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        await pools.register(pool_with(1, 2))
        await frontier.put(through(10))
        await visit(frontier, BLOCKED)
        await live_on(bench, frontier, 100, "w")
        await visit(frontier, BLOCKED)

        for _ in range(4):
            assert await take(frontier) == []
            await live_on(bench, frontier, 100, "w")
        [view] = await pools.lanes(POOL)
        assert (view.lane, view.members, view.resting, view.banned, view.in_flight) == (VIA_POOL, 2, 2, 2, 0)
        assert 95 <= view.first_back <= 100 + JITTER * REST
        some = {each.lane: each for each in await pools.lanes(POOL, [VIA_POOL, lane_of("new.example", POOL)])}
        assert (some[VIA_POOL].members, some[VIA_POOL].banned) == (2, 2)
        assert abs(some[VIA_POOL].first_back - view.first_back) < 1
        assert some[lane_of("new.example", POOL)] == LanePoolView(lane=lane_of("new.example", POOL), members=2)
        [empty] = await pools.lanes("nothing", [lane_of(SHOP, "nothing")])
        assert empty.members == 0
        await live_on(bench, frontier, view.first_back + 0.1, "w")

        [lease] = await take(frontier)
        assert lease.task.attempt == 0
        assert (await frontier.progress()).dead == 0

    async def test_r5_a_member_that_comes_back_from_a_dead_worker_is_not_waited_for_any_longer(
        self, bench: Bench
    ) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2))
        await frontier.put(through(10))
        banned = await visit(frontier, BLOCKED)
        [held] = await take(frontier, "dies")
        assert await take(frontier, "w") == [], "the lane waits for the end of the quarantine"

        await live_on(bench, frontier, DEAD_AFTER + 5, "w")

        assert members_of(await take(frontier, "w")) == [held.member] != [banned]

    async def test_r5_a_lane_without_a_free_member_holds_up_no_other(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1))
        await frontier.put(through(500, priority=1) + tasks(5, priority=99))

        leases = await frontier.lease("w", 6, pools=("", POOL))

        assert members_of(leases) == [0, 0, 0, 0, 0, 1]

    async def test_r5_a_lease_call_waits_for_a_member(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        await register(bench, pool_with(1))
        await frontier.put(through(5))
        [held] = await take(frontier)
        waiting = asyncio.create_task(other.lease("v", 1, 30.0, pools=(POOL,)))
        await asyncio.sleep(0.2)
        assert not waiting.done()

        await give(frontier, held)

        assert members_of(await asyncio.wait_for(waiting, 10)) == [1]

    async def test_r6_a_member_that_fails_three_times_rests_for_all_lanes(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        await pools.register(pool_with(1))
        hosts = ("a.example", "b.example", "c.example")
        await frontier.put([each for host in hosts for each in through(2, host=host)])
        for _ in hosts:
            [lease] = await take(frontier, limit=1)
            await give(frontier, lease, FAULT, outcome=Done())
        await frontier.put(through(1, host="d.example"))

        assert await take(frontier) == []
        [down] = await pools.down(POOL)
        assert (down.member, down.faults) == (1, 3)
        assert DOWN - 1 <= down.until <= DOWN * (1 + JITTER) + 1
        await live_on(bench, frontier, DOWN * (1 + JITTER) + 2, "w")
        leases = await take(frontier)
        assert lane_of("d.example", POOL) in {lease.task.lane for lease in leases}

        await give(frontier, leases[0], GOOD)
        assert await pools.down(POOL) == []

    async def test_r6_good_visits_in_between_keep_a_member_up(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        await pools.register(pool_with(1))
        hosts = [f"h{n}.example" for n in range(7)]
        await frontier.put([each for host in hosts for each in through(1, host=host)])
        for result in (FAULT, FAULT, GOOD, FAULT, FAULT):
            [lease] = await take(frontier, limit=1)
            await give(frontier, lease, result, outcome=Done())

        assert await pools.down(POOL) == []
        assert len(await take(frontier)) == 2

    async def test_r6_a_member_that_is_down_holds_up_no_other(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        await pools.register(pool_with(1, version=1.0))
        hosts = ("a.example", "b.example", "c.example")
        await frontier.put([each for host in hosts for each in through(2, host=host)])
        for _ in hosts:
            [lease] = await take(frontier, limit=1)
            await give(frontier, lease, FAULT, outcome=Done())

        await pools.register(pool_with(1, 2, version=2.0))
        await frontier.put(through(3, host="d.example"))

        leases = await take(frontier)
        assert {lease.member for lease in leases} == {2}
        assert len(leases) == 4

    async def test_r10_members_blocked_in_a_row_are_a_block_by_the_site(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        await pools.register(pool_with(*range(1, 21)))
        await frontier.put(through(100))
        blocked = {await visit(frontier, BLOCKED) for _ in range(SITE_BLOCK)}
        assert len(blocked) == SITE_BLOCK

        assert await take(frontier) == [], "the lane rests"
        [view] = await pools.lanes(POOL)
        assert view.site_blocked
        rests_for = (await lane_view(frontier, VIA_POOL)).rests_for
        assert rests_for > 0
        await live_on(bench, frontier, rests_for, "w")
        [probe] = await take(frontier)
        assert probe.site_blocked
        assert probe.member not in blocked
        await give(frontier, probe, GOOD)

        leases = await take(frontier)
        for _ in range(6):
            await live_on(bench, frontier, 1.0, "w")
            leases += await take(frontier)
        assert len(leases) == 16, "one of the banned goes out: are the bans over?"
        assert not (await pools.lanes(POOL))[0].site_blocked
        [tested] = [lease for lease in leases if lease.member in blocked]
        await give(frontier, tested, GOOD)
        back = await take(frontier)
        for _ in range(6):
            await live_on(bench, frontier, 1.0, "w")
            back += await take(frontier)
        assert set(members_of(back)) == blocked, "the quarantines of this time are lifted"

    async def test_r10_bans_that_are_not_over_stay(self, bench: Bench) -> None:
        """Many proxies that reach a site's limit together are banned in a row, too."""
        frontier = await bench.open()
        await register(bench, pool_with(*range(1, 9)))
        await frontier.put(through(100))
        blocked = {await visit(frontier, BLOCKED) for _ in range(SITE_BLOCK)}
        await live_on(bench, frontier, (await lane_view(frontier, VIA_POOL)).rests_for, "w")
        [probe] = await take(frontier)
        await give(frontier, probe, GOOD)
        leases: list[Lease] = []
        for _ in range(6):
            # A member may lose its turn.
            leases += await take(frontier)
            await live_on(bench, frontier, 1.0, "w")
        [tested] = [lease for lease in leases if lease.member in blocked]

        await give(frontier, tested, BLOCKED)

        await live_on(bench, frontier, 5.0, "w")
        assert blocked.isdisjoint(members_of(await take(frontier)))

    async def test_r10_the_pauses_grow_while_probes_are_blocked(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(*range(1, 41)))
        await frontier.put(through(100))
        for _ in range(SITE_BLOCK):
            await visit(frontier, BLOCKED)
        rests: list[Seconds] = []
        for _ in range(4):
            rests.append((await lane_view(frontier, VIA_POOL)).rests_for)
            await live_on(bench, frontier, rests[-1], "w")
            [probe] = await take(frontier)
            assert probe.site_blocked
            await give(frontier, probe, BLOCKED)

        assert rests == sorted(rests)
        assert rests[-1] > 2 * rests[0]

    async def test_r10_a_pool_whose_members_all_rest_notices_the_end_of_the_block(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(*range(1, SITE_BLOCK + 2), probe=20.0))
        await frontier.put(through(100))
        under_way = (await take(frontier, limit=1))[0]
        for _ in range(SITE_BLOCK):
            alarm = await visit(frontier, BLOCKED)
        await give(frontier, under_way, BLOCKED)

        probes, waited = [], 0.0
        for answer in (BLOCKED, GOOD):
            while not (leases := await take(frontier, limit=1)):
                await live_on(bench, frontier, 1.0, "w")
                waited += 1.0
            probes.append(leases[0].member)
            await give(frontier, leases[0], answer)

        assert probes == [alarm, alarm], "the one that raised the alarm; the others rest as after any ban"
        assert waited < REST / 4
        leases = []
        for _ in range(6):
            await live_on(bench, frontier, 1.0, "w")
            leases += await take(frontier)
        tested = [lease for lease in leases if lease.member != alarm]
        assert len(tested) == 1, "is one of the other bans over, too?"

    async def test_r10_bans_between_good_visits_are_bans_of_members(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        await pools.register(pool_with(*range(1, 31)))
        await frontier.put(through(100))
        banned = set()
        for _ in range(10):
            banned.add(await visit(frontier, BLOCKED))
            for _ in range(4):
                await visit(frontier)

        assert (await lane_view(frontier, VIA_POOL)).rests_for == 0
        leases = await take(frontier)
        assert len(banned) == 10
        assert banned.isdisjoint(members_of(leases))
        assert len(leases) >= 15

    async def test_r10_a_ban_that_was_the_pages_fault_is_lifted(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2, 3))
        await frontier.put(through(50))
        banned = await visit(frontier, BLOCKED)
        assert await visit(frontier) != banned
        [lease] = await take(frontier, limit=1)
        assert lease.member != banned

        await give(frontier, lease, GOOD, lift=(banned,))

        assert members_of(await take(frontier)) == [1, 2, 3]

    async def test_r10_no_ban_is_lifted_while_others_are_blocked_too(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2, 3, 4))
        await frontier.put(through(50))
        banned = [await visit(frontier, BLOCKED) for _ in range(2)]
        [lease] = await take(frontier, limit=1)

        await give(frontier, lease, BLOCKED, lift=(banned[0],))

        assert len(await take(frontier)) == 1
