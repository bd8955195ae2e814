"""The figures of a worker, on virtual time."""

import asyncio
import time

import pytest
import uvloop

from tests.unit.worker.fake_ports import (
    HTML,
    Diary,
    DiaryFrontier,
    DiarySink,
    SlowFetcher,
    lease,
    one_page_spider,
    tools,
)
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.work_stats import BOUNDS, WorkStats
from trotline.testing.virtual_time import run_virtual
from trotline.worker.work_meter import LONGEST_SAMPLE, SHORTEST_SAMPLE, TimingMeter, WorkMeter
from trotline.worker.worker import Worker
from trotline.worker.worker_settings import WorkerPolicy

SLOTS = 4
FAILURE = Failure(url="http://h.test/3", trouble=FailureKind.TIMEOUT, why="connect timed out")


class SlowToLease(DiaryFrontier):
    """Needs half a second for each reply."""

    async def lease(self, *given, **named):
        await asyncio.sleep(0.5)
        return await super().lease(*given, **named)


def figures(leases, fetcher=None, *, sink=None, frontier=None, seconds=20.0, policy=None, stop=True) -> WorkStats:
    """Of a worker after this time, and its shares of the slots' time."""
    diary: Diary = []
    frontier = frontier or DiaryFrontier(diary, leases)
    frontier.endless = True
    spider = one_page_spider()
    parts = tools(frontier, sink or DiarySink(diary), fetcher or SlowFetcher(), spider=spider)

    async def story() -> WorkStats:
        worker = Worker("w", spider, parts, policy or WorkerPolicy(slots=SLOTS, batch=8))
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(seconds)
        stats = worker.stats
        if stop:
            worker.stop()
        else:
            running.cancel()
        await asyncio.wait([running])
        return stats

    return run_virtual(story())


def shares(stats: WorkStats) -> dict[str, float]:
    whole = stats.uptime * SLOTS
    return {name: getattr(stats.slots, name) / whole for name in stats.slots.__struct_fields__}


def test_visits_records_bytes_and_timings_are_counted():
    def answer(task):
        return FAILURE if task.url.endswith("/3") else _page(task)

    stats = figures([lease(token) for token in range(1, 9)], SlowFetcher(0.2, answer))

    assert sum(stats.visits.values()) == 8 and stats.visits["ok"] == 7, stats.visits
    assert (stats.done, stats.failed) == (7, 1)
    assert stats.records == 7
    assert stats.received == sum(len(_page(lease(token).task).body) for token in range(1, 9) if token != 3)
    assert stats.fetch.count == 8 and stats.fetch.total == pytest.approx(1.6, abs=0.001)
    assert stats.fetch.counts[BOUNDS.index(0.25)] == 8
    assert stats.commit.count >= 1


def _page(task):
    return Answer(url=task.url, status=200, headers=HTML, body=f"<h1>{task.url}</h1>".encode())


def test_slots_in_visits_are_busy():
    stats = figures([lease(token) for token in range(1, 400)], SlowFetcher(1.0))
    assert shares(stats)["busy"] == pytest.approx(1.0, abs=0.05)


def test_the_time_of_all_slots_is_accounted_for():
    stats = figures([lease(token, start_in=token / 3) for token in range(1, 50)], SlowFetcher(0.4))
    # Since the last sample, idle slots are not counted yet.
    assert sum(shares(stats).values()) == pytest.approx(1.0, abs=LONGEST_SAMPLE / 20)
    assert shares(stats)["start"] > 0.5


def test_slots_that_wait_for_a_start_time_wait_for_it_and_not_for_leases():
    """Each lease starts 0.4 s after it came, and takes 0.1 s."""
    leases = [lease(token, start_in=0.4) for token in range(1, 900)]
    found = shares(figures(leases, SlowFetcher(0.1), seconds=40.0, policy=WorkerPolicy(slots=SLOTS, prefetch=0)))
    assert found["busy"] == pytest.approx(0.2, abs=0.02), found
    assert found["start"] == pytest.approx(0.8, abs=0.05), found


def test_without_tasks_slots_wait_for_leases():
    assert shares(figures([]))["no_lease"] > 0.95


def test_a_frontier_that_is_slow_to_answer_is_named():
    frontier = SlowToLease([], [lease(token) for token in range(1, 400)])
    found = shares(figures([], SlowFetcher(0.01), frontier=frontier, policy=WorkerPolicy(slots=SLOTS, prefetch=0)))
    assert found["frontier"] > 0.9, found


def test_a_frontier_that_does_not_answer_is_named():
    frontier = DiaryFrontier([])
    frontier.lease_away = 10**9
    assert shares(figures([], frontier=frontier))["frontier"] > 0.9


def test_a_sink_that_is_slow_is_named():
    sink = DiarySink([], slow=5.0)
    policy = WorkerPolicy(slots=SLOTS, batch=4, backlog=8)
    found = shares(figures([lease(token) for token in range(1, 900)], SlowFetcher(0.01), sink=sink, policy=policy))
    assert found["sink"] > 0.9, found


def test_storing_and_settling_are_told_apart():
    stats = figures([lease(token) for token in range(1, 9)], sink=DiarySink([], slow=0.5))
    assert stats.store == pytest.approx(stats.commit.total) and stats.settle == pytest.approx(0.0)


def test_the_time_of_a_store_that_does_not_end_counts_while_it_lasts():
    """An archive or a sink that is down is waited for for hours."""
    sink = DiarySink([], away=10**9)
    stats = figures([lease(token) for token in range(1, 9)], sink=sink, stop=False)
    assert stats.store > 15 and stats.archive == 0.0


def test_a_blocked_event_loop_is_seen_for_some_seconds():
    async def story() -> list[float]:
        meter, seen = WorkMeter(), []
        meter.begin()
        await asyncio.sleep(0.75)
        meter.sample(0.5, slots=1, ready=0, cause="no_lease")
        seen.append(meter.stats().lag)
        for _ in range(40):
            await asyncio.sleep(0.5)
            meter.sample(0.5, slots=1, ready=0, cause="no_lease")
        seen.append(meter.stats().lag)
        return seen

    assert run_virtual(story()) == pytest.approx([0.25, 0.0], abs=1e-4)


def test_a_page_that_is_parsed_takes_time_on_the_loop_of_worker_processes():
    """The clock of uvloop stands still meanwhile."""

    async def story() -> WorkStats:
        meter = WorkMeter()
        meter.begin()
        meter.visit_begins()
        time.sleep(0.05)  # noqa: ASYNC251 - what a parser does
        meter.visit_ends()
        return meter.stats()

    with asyncio.Runner(loop_factory=uvloop.Loop) as runner:
        assert 0.05 <= runner.run(story()).slots.busy < 1.0


def test_samples_are_not_taken_at_equal_intervals():
    meter = WorkMeter()
    pauses = [meter.next_sample() for _ in range(50)]
    assert all(SHORTEST_SAMPLE <= pause <= LONGEST_SAMPLE for pause in pauses)
    assert len({round(pause, 3) for pause in pauses}) > 40


@pytest.mark.parametrize(("took", "place"), [(0.0, 0), (0.001, 0), (0.0011, 1), (30.0, 13), (1e9, 14)])
def test_a_time_is_in_the_class_whose_bound_it_does_not_exceed(took: float, place: int):
    meter = TimingMeter()
    meter.add(took)
    assert meter.timing().counts[place] == 1
