"""R1, R2, R3 and R11 (`ports.proxy_pools`): which member of a proxy pool a visit goes through, and when."""

import asyncio
import random
from collections import Counter

from trotline.model.lease import LaneFeedback, Lease, Settled, Settlement
from trotline.model.outcome import Snooze
from trotline.model.pace import Pace, Rate
from trotline.model.proxy_pool import MemberResult, lane_of
from trotline.model.verdict import Kind
from trotline.ports.frontier import DEAD_AFTER, DEATHS, KILLS
from trotline.testing.frontier_contract.bench import (
    SHOP,
    Bench,
    finish,
    lane_view,
    live_on,
    steady,
    tasks,
)
from trotline.testing.frontier_contract.pacing import assert_polite
from trotline.testing.frontier_contract.pool_bench import (
    BLOCKED,
    GOOD,
    POOL,
    THROTTLED,
    VIA_POOL,
    assert_apart,
    give,
    members_of,
    patiently,
    pool_with,
    register,
    take,
    through,
    visit,
)


class ProxyPromises:
    async def test_r1_a_lease_names_a_member_of_its_pool_and_without_a_pool_none(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2, 3), pool_with(7, 8, name="isp"))
        await frontier.put(through(3) + through(2, pool="isp") + tasks(4))

        leases = await take(frontier, pools=("", POOL, "isp"))

        came = {lane: members_of([x for x in leases if x.task.lane == lane]) for lane in {x.task.lane for x in leases}}
        assert came == {VIA_POOL: [1, 2, 3], lane_of(SHOP, "isp"): [7, 8], SHOP: [0, 0, 0, 0]}

    async def test_r1_ids_of_48_bits_are_kept(self, bench: Bench) -> None:
        frontier = await bench.open()
        ids = (1, 2**31 + 7, 2**47 + 11, 2**48 - 1)
        await register(bench, pool_with(*ids))
        await frontier.put(through(4))

        assert members_of(await take(frontier)) == sorted(ids)

    async def test_r1_a_pool_that_is_not_registered_yet_is_waited_for(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(through(2))
        assert await take(frontier) == []

        await register(bench, pool_with(5))

        [lease] = await take(frontier)
        assert (lease.member, lease.task.attempt) == (5, 0)

    async def test_r2_one_visit_of_a_lane_at_a_time_goes_through_a_member(self, bench: Bench) -> None:
        clients = [await bench.open(), await bench.again(), await bench.again()]
        await register(bench, pool_with(*range(1, 8)))
        await clients[0].put(through(60) + through(60, host="other.example"))

        hauls = await asyncio.gather(*(clients[n % 3].lease(f"w{n}", 5, pools=(POOL,)) for n in range(12)))

        leases = [lease for haul in hauls for lease in haul]
        for host in (SHOP, "other.example"):
            assert members_of([x for x in leases if x.task.lane == lane_of(host, POOL)]) == list(range(1, 8))

    async def test_r2_a_member_is_free_again_when_its_visit_is_over(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2))
        await frontier.put(through(10))
        one, other = await take(frontier)
        assert await take(frontier) == []

        await give(frontier, other)

        assert members_of(await take(frontier)) == [other.member] != [one.member]

    async def test_r2_a_stale_settle_returns_no_member(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1))
        await frontier.put(through(5))
        [lost] = await take(frontier, "dead")
        await live_on(bench, frontier, DEAD_AFTER + 5, "w")
        [again] = await take(frontier, "w")
        assert again.member == lost.member == 1

        assert await give(frontier, lost, BLOCKED, worker="dead") == Settled.STALE

        assert await take(frontier, "v") == [], "its member is out with another visit"
        assert await give(frontier, again) == Settled.OK
        assert await give(frontier, again) == Settled.STALE
        assert len(await take(frontier, "v")) == 1, "and it is one member, not two"

    async def test_r2_dead_stopped_and_forgetful_workers_give_their_members_back(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2, 3))
        await frontier.put(through(10))
        assert len(await take(frontier, "stops", 1)) == len(await take(frontier, "forgets", 1)) == 1
        assert len(await take(frontier, "dies", 1)) == 1

        await frontier.leave("stops")
        await frontier.holds("forgets", [])
        assert members_of(await take(frontier, "w")) == [1, 2]
        await live_on(bench, frontier, DEAD_AFTER + 5, "w")

        assert members_of(await take(frontier, "w")) == [3]

    async def test_r2_a_page_that_kills_its_workers_keeps_no_member(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1))
        await frontier.put(through(1))
        for number in range(KILLS):
            [lease] = await take(frontier, f"w{number}")
            await frontier.leave(f"w{number}", guilty=lease.token)
        assert (await frontier.progress()).dead == 1
        await frontier.put(through(1, key="another"))
        for number in range(DEATHS + 1):
            [lease] = await take(frontier, f"dies{number}")
            assert lease.member == 1
            bench.jump(DEAD_AFTER + 5)

        assert await take(frontier) == []
        assert (await frontier.progress()).dead == 2
        await frontier.put(through(1, key="last"))
        assert members_of(await take(frontier)) == [1]

    async def test_r2_a_visit_that_moves_to_another_lane_returns_its_member_to_the_old_one(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1))
        await frontier.put(through(2))
        [lease] = await take(frontier)
        [moved] = through(1, host="other.example")

        await give(frontier, lease, GOOD, outcome=Snooze(0, "moved", moved))

        lanes = sorted(each.task.lane for each in await take(frontier))
        assert lanes == sorted([VIA_POOL, lane_of("other.example", POOL)])

    async def test_r2_jobs_share_the_members_of_a_lane(self, bench: Bench) -> None:
        one = await bench.open()
        await register(bench, pool_with(1, 2, 3))
        other = await bench.another_job()
        await one.put(through(10))
        await other.put(through(10))

        held = await take(one, "w")
        assert members_of(held) == [1, 2, 3]
        assert await take(other, "v") == []
        await give(one, held[0])

        assert members_of(await patiently(bench, other, "v")) == [held[0].member]

    async def test_r2_a_job_that_waits_for_a_ban_to_end_gets_the_member_that_another_returns(
        self, bench: Bench
    ) -> None:
        one = await bench.open()
        await register(bench, pool_with(1, 2))
        other = await bench.another_job()
        await one.put(through(10))
        await other.put(through(10))
        await visit(one, BLOCKED)
        [held] = await take(one)
        assert await take(other, "v") == []

        await give(one, held)
        bench.jump(1.0)

        assert members_of(await take(other, "v")) == [held.member]

    async def test_r3_starts_through_a_member_keep_the_interval_of_the_pool(self, bench: Bench) -> None:
        interval, chance = 7.0, random.Random(4)
        clients = [await bench.open(), await bench.again()]
        await register(bench, pool_with(1, 2, 3, interval=interval))
        await clients[0].put(through(200))
        came: list[Lease] = []
        for step in range(120):
            client, worker = chance.choice(clients), f"w{step // 12}"
            leases = await client.lease(worker, 2, pools=(POOL,))
            came += leases
            fate = chance.choice(("good", "unused", "leave", "vanish"))
            for lease in leases if fate in ("good", "unused") else ():
                await give(client, lease, MemberResult(fate), worker)
            if fate == "leave":
                await client.leave(worker)
            bench.jump(1.0)

        assert_apart(came, interval)
        assert len(came) >= 15, "and members are used when they are due"

    async def test_r3_a_start_that_waits_for_its_member_keeps_the_pace_of_the_lane(self, bench: Bench) -> None:
        frontier = await bench.open(steady(rate=2.0))
        await register(bench, pool_with(1, 2))
        await frontier.put(through(20))
        [lease] = await take(frontier, limit=1)
        told = LaneFeedback(Kind.THROTTLED, rest=3)
        await frontier.settle("w", [Settlement(lease, Snooze(0, "429"), news=told, member=THROTTLED)])
        [quick] = await take(frontier)
        bench.jump(2.3)

        came = await take(frontier)
        await give(frontier, quick)
        came += await take(frontier)

        assert came
        assert_polite([each.leased_at + each.start_in for each in came], 0.5)

    async def test_r3_a_pace_per_proxy_is_that_of_each_member_and_not_of_the_lane(self, bench: Bench) -> None:
        pace = Pace(rate=Rate(0.5), per_proxy=True)
        frontier = await bench.open(steady(default=pace))
        await register(bench, pool_with(*range(1, 21)))
        await frontier.put(through(500))
        came: list[Lease] = []
        for _ in range(20):
            leases = await take(frontier)
            for lease in leases:
                await give(frontier, lease)
            came += leases
            await live_on(bench, frontier, 1.0, "w")

        assert_apart(came, 2.0)
        assert 180 <= len(came) <= 220, "20 members at 0.5/s for 20 s"

    async def test_r3_a_pace_per_proxy_leaves_a_lane_without_a_pool_as_it_was(self, bench: Bench) -> None:
        frontier = await bench.open(steady(default=Pace(rate=Rate(0.5), slowest=Rate(0.5), per_proxy=True)))
        await frontier.put(tasks(50))

        assert len(await take(frontier, pools=("",))) == 1

    async def test_r3_the_pace_of_a_host_holds_through_a_pool_too(self, bench: Bench) -> None:
        slow = Pace(rate=Rate(0.5), slowest=Rate(0.5))
        frontier = await bench.open(steady(lanes={SHOP: slow}))
        await register(bench, pool_with(*range(1, 21)))
        await frontier.put(through(50) + through(5, host="other.example"))

        lanes = Counter(lease.task.lane for lease in await take(frontier))

        assert lanes == {VIA_POOL: 1, lane_of("other.example", POOL): 5}

    async def test_r3_of_several_jobs_the_longest_interval_per_member_holds(self, bench: Bench) -> None:
        rules = [steady(default=Pace(rate=Rate(1 / gap), per_proxy=True)) for gap in (1.0, 5.0)]
        quick = await bench.open(rules[0])
        await register(bench, pool_with(1, 2))
        slow = await bench.another_job(rules[1])
        await quick.put(through(100))
        await slow.put(through(100))
        came = await take(slow, "s")
        for lease in came:
            await give(slow, lease, worker="s")
        for step in range(40):
            client, worker = ((quick, "q"), (slow, "s"))[step % 2]
            leases = await take(client, worker)
            for lease in leases:
                await give(client, lease, worker=worker)
            came += leases
            bench.jump(0.5)

        assert_apart(came, 5.0)
        assert len(came) >= 6

    async def test_r3_a_member_that_was_too_fast_is_slowed_and_the_lane_is_not(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2))
        await frontier.put(through(50))
        slowed = await visit(frontier, THROTTLED)

        assert (await lane_view(frontier, VIA_POOL)).rests_for == 0
        assert {await visit(frontier) for _ in range(5)} == {1, 2} - {slowed}

        await live_on(bench, frontier, 5, "w")
        assert slowed in {await visit(frontier) for _ in range(4)}

    async def test_r3_the_end_of_a_quarantine_is_not_the_end_of_an_interval(self, bench: Bench) -> None:
        frontier, pools = await bench.open(), await bench.proxy_pools()
        await pools.register(pool_with(1, interval=20.0))
        await frontier.put(through(5))
        [lease] = await take(frontier)
        await give(frontier, lease, BLOCKED)
        await pools.release(POOL, VIA_POOL)
        came = [lease]
        for _ in range(25):
            came += await take(frontier)
            await live_on(bench, frontier, 1.0, "w")

        assert len(came) == 2
        assert_apart(came, 20.0)

    async def test_r3_a_member_that_was_told_to_wait_waits(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1))
        await frontier.put(through(5))
        [lease] = await take(frontier)
        told = Settlement(lease, Snooze(0, "429"), news=LaneFeedback(Kind.THROTTLED, rest=90), member=THROTTLED)
        await frontier.settle("w", [told])

        await live_on(bench, frontier, 88, "w")
        assert await take(frontier) == []
        await live_on(bench, frontier, 4, "w")

        assert members_of(await take(frontier)) == [1]

    async def test_r11_a_worker_gets_leases_only_of_the_pools_that_it_asks_for(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2), pool_with(7, 8, name="isp"))
        await frontier.put(through(9, priority=1) + through(9, pool="isp", priority=2) + tasks(3, priority=99))

        direct = await frontier.lease("w", 50)
        assert {lease.task.pool for lease in direct} == {""}
        assert len(direct) == 3
        assert {lease.task.pool for lease in await take(frontier, "v", pools=("isp",))} == {"isp"}
        assert {lease.task.pool for lease in await take(frontier, "u", pools=("", POOL))} == {POOL}
        assert await take(frontier, "t", pools=("unknown",)) == []
        await finish(frontier, "w", direct)

    async def test_r11_many_lanes_of_other_pools_hide_none(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1), pool_with(7, name="isp"))
        await frontier.put([each for n in range(300) for each in through(1, host=f"h{n}.example", priority=1)])
        await frontier.put(through(2, pool="isp", priority=99) + tasks(2, priority=99))

        assert len(await frontier.lease("w", 2)) == 2
        assert members_of(await frontier.lease("w", 2, pools=("isp",))) == [7]
