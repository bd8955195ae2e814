"""R1 to R11 (`ports.proxy_pools`): which member of a proxy pool a visit goes through, over all workers and jobs."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from trotline.model.lease import LaneFeedback, Lease, Settled, Settlement
from trotline.model.outcome import Done, Outcome, Snooze
from trotline.model.pace import Pace, Rate
from trotline.model.proxy_pool import MemberResult, Pool, PoolMember, PoolRules, lane_of
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds
from trotline.model.verdict import Kind
from trotline.ports.frontier import DEAD_AFTER, DEATHS, KILLS
from trotline.testing.frontier_contract.bench import (
    SHOP,
    Bench,
    Client,
    finish,
    lane_view,
    live_on,
    steady,
    task,
    tasks,
)
from trotline.testing.frontier_contract.pacing import GRAIN, assert_polite

POOL = "datacenter"
VIA_POOL = lane_of(SHOP, POOL)
GOOD, BLOCKED, THROTTLED = MemberResult.GOOD, MemberResult.BLOCKED, MemberResult.THROTTLED
FAULT, UNUSED = MemberResult.FAULT, MemberResult.UNUSED
REST: Seconds = 600.0
JITTER = 0.1
"""Rests are longer by up to this share."""
SITE_BLOCK = 5
"""Members blocked one after another, from which on the site blocks us."""
DOWN: Seconds = 10.0
"""The first rest of a member that failed three times."""
NEWS = {GOOD: LaneFeedback(Kind.OK), BLOCKED: LaneFeedback(Kind.BLOCKED), THROTTLED: LaneFeedback(Kind.THROTTLED)}


def pool_with(*ids: int, version: Moment = 1.0, name: str = POOL, **rules: Any) -> Pool:
    members = tuple(PoolMember(each) for each in ids)
    return Pool(name=name, version=version, rules=PoolRules(**({"rest": REST} | rules)), members=members)


def through(count: int, host: str = SHOP, pool: str = POOL, **fields: Any) -> list[Task]:
    """`count` tasks of a host that go out through a pool."""
    lane = lane_of(host, pool)
    return [task(f"https://{host}/{n}?{pool}", lane=lane, pool=pool, **fields) for n in range(count)]


async def register(bench: Bench, *pools: Pool) -> None:
    known = await bench.proxy_pools()
    for pool in pools:
        assert await known.register(pool)


async def take(client: Client, worker: str = "w", limit: int = 100, pools: Sequence[str] = (POOL,)) -> list[Lease]:
    """Every task that may run now, up to `limit`."""
    held: list[Lease] = []
    while len(held) < limit and (more := await client.lease(worker, limit - len(held), pools=pools)):
        held += more
    return held


async def give(
    client: Client,
    lease: Lease,
    result: MemberResult = GOOD,
    worker: str = "w",
    outcome: Outcome | None = None,
    lift: tuple[int, ...] = (),
) -> Settled:
    """Settle one lease with this result for its member."""
    ending = outcome or (Snooze(0, "again") if result in (UNUSED, FAULT) else Done())
    settlement = Settlement(lease, ending, news=NEWS.get(result), member=result, lift=lift)
    [settled] = await client.settle(worker, [settlement])
    return settled


async def visit(client: Client, result: MemberResult = GOOD, worker: str = "w", host: str = SHOP) -> int:
    """One visit, and the member that it went through."""
    [lease] = await take(client, worker, 1)
    assert lease.task.lane == lane_of(host, POOL)
    assert await give(client, lease, result, worker) == Settled.OK
    return lease.member


def members_of(leases: Sequence[Lease]) -> list[int]:
    return sorted(lease.member for lease in leases)


def assert_apart(leases: Sequence[Lease], interval: Seconds) -> None:
    """Starts through one member are at least this far apart."""
    starts: dict[int, list[Moment]] = {}
    for lease in leases:
        starts.setdefault(lease.member, []).append(lease.leased_at + lease.start_in)
    for member, moments in starts.items():
        moments.sort()
        for one, other in pairwise(moments):
            assert other - one >= interval - GRAIN, f"two starts through {member} within {other - one:.3f} s"


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
        other = await bench.beside()
        await one.put(through(10))
        await other.put(through(10))

        held = await take(one, "w")
        assert members_of(held) == [1, 2, 3]
        assert await take(other, "v") == []
        await give(one, held[0])

        assert members_of(await _patiently(bench, other, "v")) == [held[0].member]

    async def test_r2_a_job_that_waits_for_a_ban_to_end_gets_the_member_that_another_returns(
        self, bench: Bench
    ) -> None:
        one = await bench.open()
        await register(bench, pool_with(1, 2))
        other = await bench.beside()
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
        slow = await bench.beside(rules[1])
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
            [lease] = await _patiently(bench, frontier, "w")
            await give(frontier, lease)
        [view] = await pools.members(POOL, VIA_POOL)
        assert (view.banned, view.strikes, view.rests_for > 0) == (False, 0, True), "it waits for its interval only"
        [lease] = await _patiently(bench, frontier, "w")

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
        await live_on(bench, frontier, view.first_back + 0.1, "w")

        [lease] = await take(frontier)
        assert lease.task.attempt == 0
        assert (await frontier.progress()).dead == 0

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

    async def test_r7_hold_keeps_a_member_for_some_visits_in_a_row(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2, 3, hold=4))
        await frontier.put(through(100))

        came = [await visit(frontier) for _ in range(24)]

        runs = [came[n : n + 4] for n in range(0, 24, 4)]
        assert all(len(set(run)) == 1 for run in runs), came
        assert Counter(run[0] for run in runs) == {1: 2, 2: 2, 3: 2}

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

        assert members_of(await take(frontier)) == list(range(1, 21)), "the quarantines of this time are lifted"
        assert not (await pools.lanes(POOL))[0].site_blocked

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


async def _patiently(bench: Bench, client: Client, worker: str) -> list[Lease]:
    """The next lease; a member may lose some turns, and a job waits a moment for another one's."""
    for _ in range(200):
        if leases := await client.lease(worker, 1, pools=(POOL,)):
            return leases
        await live_on(bench, client, 0.5, worker)
    raise AssertionError("no lease within 100 s")
