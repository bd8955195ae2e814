"""A worker on virtual time: slots, limits, late leases, stopping, defects."""

import asyncio
import contextlib

import pytest

from tests.unit.worker.fake_ports import (
    HTML,
    Diary,
    DiaryFrontier,
    DiarySink,
    SlowFetcher,
    lease,
    one_page_spider,
    tools,
    until,
)
from trotline.model.answer import Answer
from trotline.model.outcome import Done, Snooze
from trotline.testing.virtual_time import run_virtual
from trotline.worker.commit import MOST_DEFECTS
from trotline.worker.worker import Worker
from trotline.worker.worker_settings import WorkerPolicy


class Bench:
    """A worker with its ports."""

    def __init__(self, leases, fetcher=None, *, policy=None, sink=None) -> None:
        self.diary: Diary = []
        self.sink = sink or DiarySink(self.diary)
        self.frontier = DiaryFrontier(self.diary, leases)
        self.fetcher = fetcher or SlowFetcher()
        self.policy = policy or WorkerPolicy(slots=4, batch=8, grace=30.0)
        self.spider = one_page_spider()
        self.tools = tools(self.frontier, self.sink, self.fetcher, spider=self.spider)

    def run(self, story=None):
        async def whole():
            self.worker = Worker("w", self.spider, self.tools, self.policy)
            running = self.running = asyncio.create_task(self.worker.run())
            try:
                told = await story(self.worker) if story else None
                await running
            finally:
                running.cancel()
                with contextlib.suppress(BaseException):
                    await running
            return told

        return run_virtual(whole())


def test_a_worker_ends_when_the_job_is_finished_and_leaves():
    bench = Bench([lease(token) for token in range(1, 30)])

    bench.run()

    assert sorted(bench.frontier.settled) == list(range(1, 30))
    assert all(one.outcome == Done() for one in bench.frontier.settled.values())
    assert len(bench.sink.rows) == 29
    assert bench.frontier.left == [("w", None)]


@pytest.mark.parametrize("max_pages", [1, 3, 7, 8, 9, 20])
def test_max_pages_is_exact(max_pages):
    bench = Bench([lease(token) for token in range(1, 100)], policy=WorkerPolicy(slots=4, batch=8, max_pages=max_pages))

    bench.run()

    assert len(bench.fetcher.asked) == max_pages
    assert len(bench.frontier.settled) == max_pages
    assert bench.frontier.left == [("w", None)]


def test_pages_of_a_limited_run_may_take_their_time():
    """Nobody is in a hurry: the grace time is for those who asked us to stop."""
    policy = WorkerPolicy(slots=4, batch=8, max_pages=2, grace=5.0)
    bench = Bench([lease(token) for token in range(1, 9)], SlowFetcher(55.0), policy=policy)

    bench.run()

    assert len(bench.frontier.settled) == 2


def test_there_are_never_more_visits_at_once_than_slots():
    bench = Bench([lease(token) for token in range(1, 200)], SlowFetcher(lambda task: task.fingerprint % 7 / 10))

    bench.run()

    assert bench.fetcher.most == 4
    assert len(bench.frontier.settled) == 199


def test_a_worker_holds_hardly_more_leases_than_it_can_start():
    bench = Bench([lease(token, start_in=0.5, slack=60) for token in range(1, 200)], SlowFetcher(2.0))

    bench.run()

    # Slots, half as many ahead, and what is on its way through the committer.
    assert bench.frontier.most_held <= 4 + 2 + 4


def test_a_lease_that_waits_for_its_moment_blocks_no_slot():
    bench = Bench([], policy=WorkerPolicy(slots=1, batch=8))

    async def story(worker):
        await asyncio.sleep(0.01)
        worker._start_queue.add([lease(token, start_in=0.9, slack=60) for token in (1, 2, 3)])
        worker._start_queue.add([lease(4)])
        await asyncio.sleep(0.5)
        return [task.fingerprint for task in bench.fetcher.asked]

    assert bench.run(story) == [4]
    assert sorted(bench.frontier.settled) == [1, 2, 3, 4]


def test_a_late_lease_is_not_fetched_but_queues_again():
    """One slot, each visit takes 1 s, a slack of 0.25 s: whoever waits for the slot has missed its start time."""
    bench = Bench([lease(token) for token in (1, 2)], SlowFetcher(1.0), policy=WorkerPolicy(slots=1, batch=8))
    bench.run()
    assert {type(one.outcome) for one in bench.frontier.settled.values()} == {Done}

    bench = Bench([], SlowFetcher(1.0), policy=WorkerPolicy(slots=1, batch=8))

    async def story(worker):
        await asyncio.sleep(0.01)
        # More than there are slots, as when a loop was busy for long.
        worker._start_queue.add([lease(1), lease(2)])
        await asyncio.sleep(5)

    bench.run(story)

    assert [task.fingerprint for task in bench.fetcher.asked] == [1]
    assert bench.frontier.settled[2].outcome == Snooze(wait=0.0, why="missed its start time")
    assert bench.frontier.settled[2].news is None, "it says nothing about the lane"


def test_stopping_finishes_what_is_in_flight_and_gives_back_the_rest():
    leases = [lease(token) for token in range(1, 5)] + [lease(9, start_in=0.9)] + [lease(50)]
    bench = Bench(leases, SlowFetcher(10.0), policy=WorkerPolicy(slots=4, batch=8, grace=30.0))

    async def story(worker):
        await asyncio.sleep(0.5)
        worker.stop()
        return asyncio.get_running_loop().time()

    bench.run(story)

    assert sorted(bench.frontier.settled) == [1, 2, 3, 4]
    assert bench.frontier.left == [("w", None)]
    assert all(task.fingerprint < 5 for task in bench.fetcher.asked)


def test_a_visit_that_outlasts_the_grace_time_is_given_back():
    bench = Bench([lease(1), lease(2)], SlowFetcher(lambda task: 3.0 if task.fingerprint == 1 else 1000.0))
    bench.policy = WorkerPolicy(slots=4, batch=8, grace=10.0)

    async def story(worker):
        await asyncio.sleep(1)
        worker.stop()
        return await until(lambda: bench.frontier.left)

    took = bench.run(story)

    assert 10 <= took < 11
    assert list(bench.frontier.settled) == [1], "the second is not settled: leaving gives it back"


def test_stopping_a_limited_run_that_waits_for_its_last_pages_ends_it_in_time():
    bench = Bench([lease(1)], SlowFetcher(1000.0), policy=WorkerPolicy(slots=4, batch=8, grace=10.0, max_pages=1))

    async def story(worker):
        await asyncio.sleep(5)
        worker.stop()
        return await until(lambda: bench.frontier.left)

    assert bench.run(story) < 11


def test_stopping_an_idle_worker_ends_it_at_once():
    bench = Bench([])
    bench.frontier.endless = True

    async def story(worker):
        await asyncio.sleep(100)
        worker.stop()
        return await until(lambda: bench.frontier.left)

    assert bench.run(story) < 0.5


def test_stopping_while_the_frontier_is_unreachable_ends_with_the_grace_time(caplog):
    """Its server returns the leases when their heartbeat stops: nothing is lost."""
    bench = Bench([lease(1), lease(2)], policy=WorkerPolicy(slots=4, batch=8, grace=10.0))
    bench.frontier.away = 10_000

    async def story(worker):
        await asyncio.sleep(5)
        worker.stop()
        since = asyncio.get_running_loop().time()
        await bench.running
        return asyncio.get_running_loop().time() - since

    assert 9 < bench.run(story) < 12
    assert bench.frontier.settled == {}
    assert "stopped.unstored frontier is unreachable: locked" in caplog.text


def test_a_visit_that_raises_is_buried_as_a_defect_and_its_slot_lives(caplog):
    def answer(task):
        if task.fingerprint % 2:
            raise RuntimeError("a defect of ours")
        return Answer(url=task.url, status=200, headers=HTML, body=b"<h1>x</h1>")

    bench = Bench([lease(token) for token in range(1, 31)], SlowFetcher(0.1, answer))

    bench.run()

    outcomes = {token: one.outcome for token, one in bench.frontier.settled.items()}
    assert len(outcomes) == 30
    for token in range(1, 31, 2):
        assert outcomes[token].why == "defect: RuntimeError: a defect of ours"
        assert "Traceback" in outcomes[token].detail
    assert all(outcomes[token] == Done() for token in range(2, 31, 2))
    assert "visit.failed http://h.test/1" in caplog.text


def test_a_frontier_that_is_away_for_a_while_is_asked_again_and_the_wait_is_told():
    bench = Bench([lease(1)])
    bench.frontier.lease_away = 3

    async def story(worker):
        await asyncio.sleep(1)
        return worker.held_back

    assert bench.run(story) == "frontier is unreachable: locked"
    assert list(bench.frontier.settled) == [1]
    assert bench.worker.held_back == ""


def test_an_outage_is_logged_once_however_often_the_frontier_is_asked(caplog):
    bench = Bench([])
    bench.frontier.endless = True

    async def story(worker):
        for _ in range(2):
            bench.frontier.lease_away = 5
            await asyncio.sleep(60)
        worker.stop()

    bench.run(story)

    logged = [record.getMessage() for record in caplog.records if "unreachable" in record.getMessage()]
    assert logged == ["frontier.unreachable locked"] * 2


def test_a_frontier_that_is_back_is_not_called_away_though_it_has_no_work():
    bench = Bench([])
    bench.frontier.endless = True
    bench.frontier.lease_away = 1

    async def story(worker):
        await asyncio.sleep(10)
        told = worker.held_back
        worker.stop()
        return told

    assert bench.run(story) == ""


def test_a_slow_sink_stops_leasing():
    bench = Bench([lease(token) for token in range(1, 300)], policy=WorkerPolicy(slots=4, batch=4, backlog=8))
    bench.sink.slow = 100.0

    async def story(worker):
        await asyncio.sleep(90)
        return len(bench.fetcher.asked), worker.held_back

    asked, told = bench.run(story)

    # The first batch is with the sink, the backlog is full, and what was in flight then has ended.
    assert asked <= 4 * 4 + 8 + 6
    assert told.startswith("sink is unreachable: no answer for more than ")
    assert len(bench.frontier.settled) == 299


def test_a_sink_with_a_defect_ends_the_worker_instead_of_leaving_it_to_wait_for_ever():
    class Broken:
        keeps_visits = False

        async def write(self, batch, visits=()):
            raise TypeError("a sink with a defect")

        async def close(self):
            return

    bench = Bench(
        [lease(token) for token in range(1, 300)], policy=WorkerPolicy(slots=4, batch=4, backlog=8), sink=Broken()
    )

    with pytest.raises(TypeError, match="a sink with a defect"):
        bench.run()
    assert len(bench.frontier.settled) <= MOST_DEFECTS


def test_a_lease_that_missed_its_moment_does_not_count_as_a_page():
    """Slack of nothing and one slot: of each batch only the first is in time."""
    leases = [lease(token, slack=-1.0 if token % 3 else 0.25) for token in range(1, 100)]
    bench = Bench(leases, policy=WorkerPolicy(slots=4, batch=8, max_pages=10))

    bench.run()

    assert [task.fingerprint for task in bench.fetcher.asked] == [3 * number for number in range(1, 11)]


def test_what_has_not_begun_goes_back_when_its_lane_says_that_we_are_too_fast():
    class Told(SlowFetcher):
        async def fetch(self, task, way=None):
            answer = await super().fetch(task)
            return (
                Answer(url=answer.url, status=429, headers=(("retry-after", "30"),)) if len(self.asked) == 1 else answer
            )

    bench = Bench([lease(token, start_in=0.2 * token, slack=5.0) for token in range(1, 5)], Told(0.05))

    bench.run()

    whys = {token: one.outcome.why for token, one in bench.frontier.settled.items()}
    assert whys == {
        1: "throttled: 429",
        2: "lane was rate limited",
        3: "lane was rate limited",
        4: "lane was rate limited",
    }
    assert len(bench.fetcher.asked) == 1


def test_an_idle_worker_asks_its_frontier_at_most_once_in_five_seconds_with_its_heartbeats():
    bench = Bench([lease(1)])
    bench.frontier.endless = True
    calls = []
    for name in ("lease", "finished", "holds", "settle"):
        real = getattr(bench.frontier, name)

        async def counted(*given, name=name, real=real, **named):
            calls.append((asyncio.get_running_loop().time(), name))
            return await real(*given, **named)

        setattr(bench.frontier, name, counted)

    async def story(worker):
        await asyncio.sleep(60.0)
        since = asyncio.get_running_loop().time()
        await asyncio.sleep(3600.0)
        worker.stop()
        return since

    since = bench.run(story)

    idle = [name for at, name in calls if at >= since]
    # Every second heartbeat is left out: one in ten seconds (test_supervisor.py).
    assert len(idle) / 3600.0 * 5.0 + 0.5 <= 1.0, f"{len(idle)} calls in an hour"


def test_an_idle_worker_that_is_woken_asks_at_once_again():
    bench = Bench([])
    bench.frontier.endless = True
    woken = [lease(token) for token in (1, 2)]

    async def story(worker):
        await asyncio.sleep(100.0)
        bench.frontier._leases += woken
        await until(lambda: len(bench.frontier.settled) == 2)
        since = asyncio.get_running_loop().time()
        bench.frontier._leases += [lease(3)]
        await until(lambda: 3 in bench.frontier.settled)
        worker.stop()
        return asyncio.get_running_loop().time() - since

    assert bench.run(story) < 5.0
