"""F13 over all jobs of a frontier: a site is asked at one pace, however many jobs ask it."""

import asyncio
import random

import pytest

from trotline.model.job import LaneRules, State
from trotline.model.lease import LaneFeedback, Lease
from trotline.model.outcome import Done, Snooze
from trotline.model.pace import Pace, Rate
from trotline.model.time import Seconds
from trotline.model.verdict import Kind
from trotline.ports.frontier import HORIZON
from trotline.testing.frontier_contract.bench import (
    SHOP,
    Bench,
    Client,
    end,
    finish,
    lane_view,
    lease_all,
    lease_one,
    steady,
    tasks,
)
from trotline.testing.frontier_contract.living import PATIENCE, RESCUED_WITHIN
from trotline.testing.frontier_contract.pacing import assert_polite, starts_of
from trotline.testing.frontier_contract.repacing import exactly

LAPSED: Seconds = 61.0
"""A pace of several starts a second is in force for a minute after its job's last start."""


async def two_jobs(bench: Bench, one: LaneRules, other: LaneRules, count: int = 200) -> tuple[Client, Client]:
    """Two jobs with so many tasks each in the shop's lane."""
    first = await bench.open(one)
    second = await bench.another_job(other)
    for client in (first, second):
        await client.put(tasks(count))
    return first, second


async def take_turns(bench: Bench, clients: list[Client], seconds: Seconds, step: Seconds = 0.05) -> list[list[Lease]]:
    """Every job asks as often as it can, and ends what it got; what each was given."""
    given: list[list[Lease]] = [[] for _ in clients]
    for number in range(int(seconds / step)):
        # Not always the same one first.
        order = range(len(clients)) if number % 2 else reversed(range(len(clients)))
        for place in order:
            leases = await clients[place].lease(f"w{place}", 10)
            given[place] += leases
            await finish(clients[place], f"w{place}", leases)
        bench.jump(step)
    return given


class SharePromises:
    async def test_f13_jobs_share_one_pace(self, bench: Bench) -> None:
        a, b = await two_jobs(bench, steady(5.0), steady(5.0))

        given = await take_turns(bench, [a, b], 10.0)

        assert_polite(starts_of([lease for each in given for lease in each]), 0.2)
        assert sum(map(len, given)) >= 45, "and they use it"

    async def test_f13_jobs_share_the_bucket_that_a_task_names(self, bench: Bench) -> None:
        a, b = await bench.open(steady(5.0)), await bench.another_job(steady(5.0))
        await a.put(tasks(20, lane="api-key-7"))
        await b.put(tasks(20, lane="api-key-7"))

        given = await take_turns(bench, [a, b], 2.0)

        assert_polite(starts_of([lease for each in given for lease in each]), 0.2)

    async def test_f13_jobs_do_not_starve_each_other(self, bench: Bench) -> None:
        a, b = await two_jobs(bench, steady(10.0), steady(10.0))

        few, many = map(len, sorted(await take_turns(bench, [a, b], 10.0), key=len))

        assert many <= 3 * few, f"{few} to {many}"

    async def test_f13_jobs_with_few_workers_get_their_turn_among_many(self, bench: Bench) -> None:
        a, b = await two_jobs(bench, steady(10.0), steady(10.0))
        many, few = 0, 0
        for step in range(200):
            for worker in range(4):
                leases = await a.lease(f"a{worker}", 10)
                many += len(leases)
                await finish(a, f"a{worker}", leases)
            if step % 2:
                leases = await b.lease("b", 1)
                few += len(leases)
                await finish(b, "b", leases)
            bench.jump(0.05)

        assert many <= 3 * few, f"{few} to {many}"
        assert many + few >= 85

    async def test_f13_jobs_keep_the_slowest_pace_in_force(self, bench: Bench) -> None:
        quick, slow = await two_jobs(bench, steady(10.0), steady(1.0))
        await lease_one(slow, "s")

        given = await take_turns(bench, [quick], 10.0)

        assert_polite(starts_of(given[0]), 1.0)
        assert len(given[0]) >= 8

    async def test_f13_jobs_that_come_later_make_a_lane_slower_from_their_first_start(self, bench: Bench) -> None:
        quick, slow = await two_jobs(bench, steady(10.0), steady(0.5))
        before = await quick.lease("q", 5)
        await slow.lease("s", 1)

        given = await take_turns(bench, [quick, slow], 20.0, step=0.25)

        assert_polite([starts_of(before)[-1], *starts_of([*given[0], *given[1]])], 2.0)
        assert len(given[1]) >= 3, "and it gets its turn"

    async def test_f13_jobs_that_begin_after_a_slow_one_has_ended_keep_their_own_pace(self, bench: Bench) -> None:
        slow = await bench.open(steady(1 / 600))
        await slow.put(tasks(1))
        await slow.seal()
        await finish(slow, "s", [await lease_one(slow, "s")])
        assert await slow.finished()

        quick = await bench.another_job(steady(10.0))
        await quick.put(tasks(50))
        await quick.lease("q", 10)
        bench.jump(2 * HORIZON + 0.2)

        assert len(await lease_all(quick, "q", 5)) == 5

    async def test_f13_jobs_let_go_of_their_pace_when_they_have_ended(self, bench: Bench) -> None:
        quick, slow = await bench.open(steady(10.0)), await bench.another_job(steady(1 / 600))
        await quick.put(tasks(50))
        await slow.put(tasks(1))
        await slow.seal()
        await finish(slow, "s", [await lease_one(slow, "s")])
        assert await slow.finished()
        await quick.lease("q", 10)
        bench.jump(2 * HORIZON + 0.2)

        assert len(await lease_all(quick, "q", 5)) == 5

    async def test_f13_jobs_let_go_of_their_pace_when_they_have_not_started_for_a_while(self, bench: Bench) -> None:
        quick, slow = await two_jobs(bench, steady(10.0), steady(1.0))
        held = await lease_one(slow, "s")
        await finish(slow, "s", [held])
        await take_turns(bench, [quick], 3.0)
        bench.jump(LAPSED)

        given = await take_turns(bench, [quick], 3.0)

        assert len(given[0]) >= 25

    async def test_f13_jobs_share_the_places_of_a_lane(self, bench: Bench) -> None:
        a, b = await two_jobs(bench, steady(concurrency=3), steady(concurrency=4))

        held = await lease_all(a, "a", 2)
        assert len(await lease_all(b, "b")) == 1, "the smaller number holds for both"
        assert await lease_all(a, "a") == []
        await finish(a, "a", held)
        bench.jump(1.0)

        assert len(await lease_all(b, "b", 1)) == 1

    async def test_f13_jobs_share_a_rest_and_its_probe(self, bench: Bench) -> None:
        a, b = await two_jobs(bench, steady(), steady())
        lease = await lease_one(a, "a")
        await end(a, "a", lease, Snooze(0, "429"), LaneFeedback(Kind.THROTTLED, rest=30))

        assert await b.lease("b", 10) == []
        assert 29 <= (await lane_view(b)).rests_for <= 30
        bench.jump(31)
        probe = await b.lease("b", 10)
        assert len(probe) == 1
        assert await a.lease("a", 10) == [], "one probe for both"
        await finish(b, "b", probe, Kind.OK)
        bench.jump(1.0)

        assert len(await lease_all(a, "a", 3)) == 3

    async def test_f13_jobs_all_heed_the_operators_pace_until_it_is_taken_back(self, bench: Bench) -> None:
        a, b = await two_jobs(bench, steady(10.0), steady(1.0))
        await lease_one(a, "a")
        await lease_one(b, "b")

        await a.set_pace(SHOP, exactly(4.0))
        bench.jump(2 * HORIZON)
        given = await take_turns(bench, [a, b], 5.0)
        assert_polite(starts_of([*given[0], *given[1]]), 0.25)
        assert len(given[0]) + len(given[1]) >= 18, "the slow job's pace does not hold now"
        lane = await b.lane_pace(SHOP)
        assert lane is not None
        assert lane.ordered == exactly(4.0)

        await b.set_pace(SHOP, None)
        bench.jump(2 * HORIZON)
        given = await take_turns(bench, [a, b], 6.0)
        assert_polite(starts_of([*given[0], *given[1]]), 1.0)

    async def test_f13_jobs_that_come_after_the_operators_word_heed_it(self, bench: Bench) -> None:
        a = await bench.open(steady(10.0))
        await a.set_pace("later.example", exactly(2.0))
        b = await bench.another_job(steady(10.0))
        await b.put(tasks(20, lane="later.example"))

        given = await take_turns(bench, [b], 5.0)

        assert_polite(starts_of(given[0]), 0.5)

    async def test_f13_jobs_of_a_lane_are_shown_with_their_paces(self, bench: Bench) -> None:
        a, b = await two_jobs(bench, steady(10.0), steady(1.0))
        await lease_one(a, "a")
        bench.jump(HORIZON)
        await b.lease("b", 1)

        lane = await a.lane_pace(SHOP)

        assert lane is not None
        assert sorted(pace.rate.per_second for pace in lane.jobs.values()) == [1.0, 10.0]
        assert lane.interval == 1.0
        assert lane.ordered is None
        assert await a.lane_pace("unknown.example") is None

    async def test_f11_a_job_that_waits_for_a_place_of_another_is_woken_when_it_is_given_back(
        self, bench: Bench
    ) -> None:
        a, b = await two_jobs(bench, steady(concurrency=1), steady(concurrency=1))
        held = await lease_one(a, "a")
        waiting = asyncio.create_task(b.lease("b", 1, wait=10 * PATIENCE))
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done, "the only place is taken"

        await finish(a, "a", [held])

        assert len(await asyncio.wait_for(waiting, PATIENCE)) == 1

    async def test_f11_a_job_whose_own_place_was_not_enough_is_woken_by_the_next_one(self, bench: Bench) -> None:
        """After a 429 a lane has one place for its probe: who gives back one of two still waits for the other."""
        a, b = await two_jobs(bench, steady(concurrency=4), steady(concurrency=4))
        of_a, of_b = await a.lease("w0", 2), await b.lease("w1", 2)
        assert [await a.lease("w0", 9), await b.lease("w1", 9)] == [[], []], "the lane is full"

        await end(a, "w0", of_a[0], Snooze(0, "429"), LaneFeedback(Kind.THROTTLED, rest=1.0))
        assert [await a.lease("w0", 9), await b.lease("w1", 9)] == [[], []]
        await finish(a, "w0", of_a[1:])
        assert await b.lease("w1", 9) == []
        await finish(b, "w1", of_b)
        bench.jump(30.0)

        given = await take_turns(bench, [a, b], 5.0)
        assert all(given), "both go on"

    @pytest.mark.parametrize("seed", (0, 50, 60))
    async def test_f13_jobs_on_one_lane_all_come_to_their_end(self, bench: Bench, seed: int) -> None:
        """Whatever their visits say, and in whatever order they ask."""
        chance = random.Random(seed)
        rules = steady(concurrency=chance.choice((1, 3, 8)))
        clients = [await bench.open(rules), await bench.another_job(rules), await bench.another_job(rules)]
        held: list[list[Lease]] = [[] for _ in clients]
        for client in clients:
            await client.put(tasks(10))
        for _ in range(2000):
            at = chance.randrange(len(clients))
            if held[at] and chance.random() < 0.6:
                lease = held[at].pop(chance.randrange(len(held[at])))
                kind = chance.choices((Kind.OK, Kind.THROTTLED, Kind.BROKEN), (6, 1, 1))[0]
                outcome = Done() if kind is Kind.OK else Snooze(0, kind)
                await end(
                    clients[at], f"w{at}", lease, outcome, LaneFeedback(kind, took=0.1, rest=chance.choice((0, 2.0)))
                )
            else:
                held[at] += await clients[at].lease(f"w{at}", chance.randrange(1, 4))
            if chance.random() < 0.3:
                bench.jump(chance.choice((0.1, 1.0, 30.0)))
            if not any(held) and [(await client.progress()).waiting for client in clients] == [0, 0, 0]:
                return
        told = [await client.progress() for client in clients]
        assert [each.waiting + each.leased for each in told] == [0, 0, 0]

    async def test_f11_a_job_is_woken_when_a_worker_of_another_leaves(self, bench: Bench) -> None:
        a, b = await two_jobs(bench, steady(concurrency=1), steady(concurrency=1))
        await lease_one(a, "a")
        waiting = asyncio.create_task(b.lease("b", 1, wait=10 * PATIENCE))
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done

        await a.leave("a")

        assert len(await asyncio.wait_for(waiting, PATIENCE)) == 1

    async def test_f5_the_places_of_a_job_whose_workers_all_died_come_back_to_the_others(self, bench: Bench) -> None:
        a, b = await two_jobs(bench, steady(concurrency=1), steady(concurrency=1))
        await lease_one(a, "dead")
        assert await b.lease("b", 1) == []

        bench.jump(RESCUED_WITHIN)

        assert len(await lease_all(b, "b", 1)) == 1

    async def test_f12_a_lane_paused_in_one_job_runs_in_another(self, bench: Bench) -> None:
        a, b = await two_jobs(bench, steady(), steady())

        await a.steer(State.PAUSED, SHOP)

        assert await a.lease("a", 1) == []
        assert len(await b.lease("b", 1)) == 1

    async def test_f12_a_paused_job_slows_no_other(self, bench: Bench) -> None:
        quick, slow = await two_jobs(bench, steady(10.0), steady(5.0))
        await take_turns(bench, [quick, slow], 2.0)

        await slow.steer(State.PAUSED)
        given, of_paused = await take_turns(bench, [quick, slow], 10.0)

        assert of_paused == []
        assert_polite(starts_of(given), 0.1)
        assert len(given) >= 90, f"{len(given)} of 100"

    async def test_f12_a_lane_paused_in_one_job_slows_no_other(self, bench: Bench) -> None:
        a, b = await two_jobs(bench, steady(10.0), steady(10.0))
        await take_turns(bench, [a, b], 2.0)

        await b.steer(State.PAUSED, SHOP)
        given, of_paused = await take_turns(bench, [a, b], 10.0)

        assert of_paused == []
        assert len(given) >= 90, f"{len(given)} of 100"


def careful(rate: float = 10.0, concurrency: int = 100) -> LaneRules:
    """Rules of a spider that heeds robots.txt."""
    return steady(default=Pace(rate=Rate(rate), concurrency=concurrency), robots=True)


class HeedPromises:
    async def test_f18_one_visit_at_a_time_until_robots_txt_is_known(self, bench: Bench) -> None:
        frontier, other = await bench.open(careful()), await bench.again()
        await frontier.put(tasks(20) + tasks(20, lane="other.example"))

        first = await lease_all(frontier, "w")
        assert sorted(lease.task.lane for lease in first) == ["other.example", SHOP]
        assert await other.lease("v", 10) == []
        [shop] = [lease for lease in first if lease.task.lane == SHOP]
        await end(frontier, "w", shop, Snooze(0, "missed its start time"))
        bench.jump(1.0)
        [again] = await lease_all(frontier, "w")
        assert again.task.lane == SHOP, "robots.txt is not known yet"
        await end(frontier, "w", again, Snooze(0, "429"), LaneFeedback(Kind.OK, robots=True))
        bench.jump(1.0)

        assert {lease.task.lane for lease in await lease_all(other, "v")} == {SHOP}
        assert len(await other.lease("u", 10)) == 0

    async def test_f18_a_crawl_delay_holds_from_the_first_start(self, bench: Bench) -> None:
        frontier = await bench.open(careful())
        await frontier.put(tasks(20))
        handed_out: list[Lease] = []
        for _ in range(60):
            leases = await frontier.lease("w", 10)
            handed_out += leases
            bench.jump(0.3)
            for lease in leases:
                await end(
                    frontier, "w", lease, Snooze(600, "ok"), LaneFeedback(Kind.OK, 0.1, interval=3.0, robots=True)
                )

        assert len(handed_out) >= 4
        assert_polite(starts_of(handed_out), 3.0)

    async def test_f18_a_page_forbidden_by_robots_txt_still_reports_it(self, bench: Bench) -> None:
        frontier = await bench.open(careful())
        await frontier.put(tasks(20))
        await end(
            frontier,
            "w",
            await lease_one(frontier, "w"),
            Snooze(600, "refused"),
            LaneFeedback(Kind.REFUSED, robots=True),
        )
        bench.jump(1.0)

        assert len(await lease_all(frontier, "w", 5)) == 5

    async def test_f18_who_does_not_ask_robots_txt_does_not_wait_for_it(self, bench: Bench) -> None:
        frontier = await bench.open(steady())
        await frontier.put(tasks(20))

        assert len(await lease_all(frontier, "w", 5)) == 5

    async def test_f18_robots_txt_of_one_job_holds_for_another(self, bench: Bench) -> None:
        a, b = await two_jobs(bench, careful(100.0), careful(100.0), count=20)
        await end(a, "a", await lease_one(a, "a"), Snooze(600, "ok"), LaneFeedback(Kind.OK, robots=True))
        bench.jump(1.0)

        assert len(await lease_all(b, "b", 5)) == 5
