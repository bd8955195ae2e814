"""F13: politeness is the frontier's promise, whatever workers and clocks do."""

import asyncio
import random
from collections.abc import Sequence

from trotline.model.job import LaneView
from trotline.model.lease import LaneFeedback, Lease, Settlement
from trotline.model.outcome import Bury, Done, Outcome, Retry, Snooze
from trotline.model.pace import START_SLACK, Pace, Rate
from trotline.model.time import Moment, Seconds
from trotline.model.verdict import Kind
from trotline.ports.frontier import HORIZON
from trotline.testing.clocks import wild_wall_clock
from trotline.testing.frontier_contract.bench import (
    SHOP,
    Bench,
    Client,
    end,
    finish,
    lane_view,
    lease_all,
    lease_one,
    live_on,
    steady,
    task,
    tasks,
)

GRAIN: Seconds = 0.002
"""Servers keep moments in milliseconds or finer; sums of two of them may be off by this."""


def starts_of(leases: Sequence[Lease]) -> list[Moment]:
    """The moments that were reserved, by the server's clock."""
    return [lease.leased_at + lease.start_in for lease in leases]


def assert_polite(starts: Sequence[Moment], interval: Seconds) -> None:
    """In every window there are at most rate x window + 1 starts."""
    ordered = sorted(starts)
    for first, start in enumerate(ordered):
        for later, other in enumerate(ordered[first:]):
            window = other - start
            assert window >= later * interval - GRAIN, (
                f"{later + 1} starts within {window:.3f} s, where one every {interval:g} s is allowed"
            )


class PacePromises:
    async def test_f13_starts_keep_the_rate_whatever_the_workers_do(self, bench: Bench) -> None:
        rate = 5.0
        clients = [await bench.open(steady(rate, concurrency=60)), await bench.again(), await bench.again()]
        await clients[0].put(tasks(400))
        chance = random.Random(13)
        handed_out: list[Lease] = []
        for step in range(250):
            bench.jump(chance.choice((0.0, 0.05, 0.2, 0.7)))
            # A new name every tenth step: the old one is a worker that vanished with what it held.
            client, worker = chance.choice(clients), f"w{chance.randrange(4)}.{step // 10}"
            leases = await client.lease(worker, chance.randint(1, 8))
            handed_out += leases
            fate = chance.choice(("settle", "settle", "leave", "vanish"))
            if fate == "settle":
                outcomes: list[Outcome] = [Done(), Retry(0, "503"), Snooze(0, "late"), Bury("gone: 404")]
                await client.settle(worker, [Settlement(lease, chance.choice(outcomes)) for lease in leases])
            elif fate == "leave":
                await client.leave(worker)

        assert len(handed_out) > 100
        assert_polite(starts_of(handed_out), 1 / rate)

    async def test_f13_starts_keep_the_rate_when_many_ask_at_once(self, bench: Bench) -> None:
        clients = [await bench.open(steady(20.0)), await bench.again(), await bench.again()]
        await clients[0].put(tasks(200))
        handed_out: list[Lease] = []
        for _ in range(5):
            hauls = await asyncio.gather(*(clients[n % 3].lease(f"w{n}", 5) for n in range(9)))
            handed_out += [lease for haul in hauls for lease in haul]
            bench.jump(0.5)

        assert_polite(starts_of(handed_out), 1 / 20)

    async def test_f13_each_lane_has_its_own_pace(self, bench: Bench) -> None:
        slow = Pace(rate=Rate(2.0), concurrency=100, slowest=Rate(2.0))
        frontier = await bench.open(steady(10.0, lanes={"slow.example": slow}))
        await frontier.put(tasks(50, lane="slow.example") + tasks(50, lane="fast.example"))
        handed_out: list[Lease] = []
        for _ in range(20):
            handed_out += await frontier.lease("w", 100)
            await live_on(bench, frontier, 0.25, "w")

        for lane, interval in (("slow.example", 0.5), ("fast.example", 0.1)):
            starts = starts_of([lease for lease in handed_out if lease.task.lane == lane])
            assert_polite(starts, interval)
            assert len(starts) >= 0.9 * 5 / interval, "a lane in demand is given its full rate"

    async def test_f13_an_idle_lane_saves_up_no_burst(self, bench: Bench) -> None:
        frontier = await bench.open(steady(5.0))
        await frontier.put(tasks(100))
        first = await frontier.lease("w", 1)
        bench.jump(3600)

        burst = await lease_all(frontier, "w", limit=50)

        assert len(burst) <= 5 * HORIZON + 1
        assert_polite(starts_of(first + burst), 0.2)

    async def test_f13_a_start_is_at_most_the_horizon_ahead_and_has_a_finite_slack(self, bench: Bench) -> None:
        frontier = await bench.open(steady(50.0))
        await frontier.put(tasks(300))
        for _ in range(5):
            for lease in await lease_all(frontier, "w"):
                assert 0 <= lease.start_in <= HORIZON + GRAIN
                assert 0 < lease.slack <= START_SLACK
                assert abs(lease.leased_at - bench.now()) < 5
            bench.jump(0.3)

    async def test_f13_a_lease_says_when_it_was_asked_for_however_long_was_waited_for_it(self, bench: Bench) -> None:
        frontier = await bench.open(steady(50.0))
        clock = asyncio.get_running_loop().time
        assert await frontier.lease("w", 1, 0.3) == [], "by now it knows its server, and how to wait"
        waiting = asyncio.create_task(frontier.lease("w", 1, 30.0))
        await asyncio.sleep(0.1)
        before = clock()
        await frontier.put(tasks(1))

        [lease] = await waiting

        assert before <= lease.asked_at <= clock(), "the question that was answered, and not the first"

    async def test_f13_leases_given_back_still_count_as_starts(self, bench: Bench) -> None:
        frontier = await bench.open(steady(2.0))
        await frontier.put(tasks(20))
        handed_out: list[Lease] = []
        for number in range(20):
            handed_out += await frontier.lease(f"w{number}", 10)
            await frontier.leave(f"w{number}")
            bench.jump(0.1)

        assert_polite(starts_of(handed_out), 0.5)

    async def test_f13_a_lane_never_has_more_live_leases_than_its_concurrency(self, bench: Bench) -> None:
        clients = [await bench.open(steady(concurrency=3)), await bench.again()]
        await clients[0].put(tasks(30))

        hauls = await asyncio.gather(*(clients[n % 2].lease(f"w{n}", 5) for n in range(6)))
        live = [(f"w{n}", lease) for n, haul in enumerate(hauls) for lease in haul]
        assert len(live) == 3
        for worker, lease in live[:2]:
            await finish(clients[0], worker, [lease])

        assert len(await lease_all(clients[1], "next")) == 2

    async def test_f13_a_dead_workers_share_of_the_concurrency_comes_back(self, bench: Bench) -> None:
        frontier = await bench.open(steady(concurrency=2))
        await frontier.put(tasks(5))
        assert len(await frontier.lease("dead", 5)) == 2
        bench.jump(20)

        assert len(await lease_all(frontier, "alive")) == 2

    async def test_f13_a_clients_wild_wall_clock_changes_nothing(self, bench: Bench) -> None:
        frontier, wild = await bench.open(steady(2.0)), await bench.again()
        await frontier.put([*tasks(50), task("https://shop.example/later", not_before=bench.now() + 3600)])
        handed_out = await frontier.lease("true", 1)
        for skew in (7200.0, -7200.0, 86_400.0):
            with wild_wall_clock(skew):
                await wild.beat("wild")
                leases = await wild.lease("wild", 10)
                handed_out += leases
                await wild.settle("wild", [Settlement(lease, Snooze(600, "later")) for lease in leases])
                await wild.put(tasks(2, lane=f"skew{int(skew)}.example"))
            handed_out += await frontier.lease("true", 10)
            await live_on(bench, frontier, 0.5, "true")

        assert "https://shop.example/later" not in {lease.task.url for lease in handed_out}
        assert_polite(starts_of([lease for lease in handed_out if lease.task.lane == SHOP]), 0.5)
        assert all(abs(lease.leased_at - bench.now()) < 60 for lease in handed_out)

    async def test_f13_a_wild_wall_clock_kills_no_living_worker(self, bench: Bench) -> None:
        frontier, wild = await bench.open(), await bench.again()
        await frontier.put(tasks(2))
        held = await lease_one(frontier, "alive")
        for skew in (7200.0, -7200.0):
            with wild_wall_clock(skew):
                assert held.task.url not in {lease.task.url for lease in await wild.lease("wild", 10)}

        await finish(frontier, "alive", [held])

    async def test_f13_a_lane_that_asks_for_quiet_gets_it(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(10) + tasks(1, lane="other.example"))
        lease = await lease_one(frontier, "w")
        await end(frontier, "w", lease, Retry(0, "429"), LaneFeedback(Kind.THROTTLED, rest=30))

        assert {each.task.lane for each in await lease_all(frontier, "w")} <= {"other.example"}
        view = await lane_view(frontier)
        assert 29 <= view.rests_for <= 30
        assert view.why
        await live_on(bench, frontier, 29, "w")
        assert await frontier.lease("w", 10) == []
        await live_on(bench, frontier, 2, "w")

        assert await frontier.lease("w", 10) != []

    async def test_f13_the_pace_slows_down_when_throttled_and_recovers_slowly(self, bench: Bench) -> None:
        pace = Pace(rate=Rate(10.0), concurrency=100, slowest=Rate(2.0))
        frontier = await bench.open(steady(default=pace))
        await frontier.put(tasks(1600))
        assert (await _visit(bench, frontier, Kind.OK)).interval <= 0.1 + GRAIN

        slowed = (await _visit(bench, frontier, Kind.THROTTLED)).interval
        assert 0.1 < slowed <= 0.5 + GRAIN
        for _ in range(10):
            await _visit(bench, frontier, Kind.OK)
            assert (await _visit(bench, frontier, Kind.THROTTLED)).interval <= 0.5 + GRAIN, "the slowest is the floor"
        slowest = await lane_view(frontier)
        assert slowest.interval > slowed
        assert (await _visit(bench, frontier, Kind.OK)).interval > 0.5 * slowest.interval, "recovery is slow"
        for _ in range(1500):
            if (await _visit(bench, frontier, Kind.OK)).interval <= 0.1 + GRAIN:
                break

        assert 0.1 - GRAIN <= (await lane_view(frontier)).interval <= 0.1 + GRAIN, "it recovers, and never overshoots"

    async def test_f13_starts_keep_the_interval_that_robots_txt_asks_for(self, bench: Bench) -> None:
        frontier = await bench.open(steady(10.0, default=Pace(rate=Rate(10.0), concurrency=100)))
        await frontier.put(tasks(50))
        first = await lease_one(frontier, "w")
        await end(frontier, "w", first, Done(), LaneFeedback(Kind.OK, interval=5))
        handed_out: list[Lease] = []
        for _ in range(60):
            handed_out += await frontier.lease("w", 10)
            await live_on(bench, frontier, 0.5, "w")

        assert 5 <= len(handed_out) <= 7
        assert_polite(starts_of(handed_out), 5)


async def _visit(bench: Bench, client: Client, kind: Kind) -> LaneView:
    """One visit of the shop with this news, a minute's patience; the lane afterwards."""
    for _ in range(240):
        if leases := await client.lease("w", 1):
            await finish(client, "w", leases, kind)
            return await lane_view(client)
        await live_on(bench, client, 0.25, "w")
    raise AssertionError("no lease within a minute")
