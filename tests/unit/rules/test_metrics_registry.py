"""What a scrape finds: counters that never go back, and no jobs of long ago."""

from hypothesis import given
from hypothesis import strategies as st

from trotline.model.job import Progress, State
from trotline.model.metrics import KEPT_AFTER_END, MOST_JOBS, JobGauges, WorkerFigures
from trotline.model.work_stats import WorkStats
from trotline.rules.metrics_registry import JobBoard, WorkerBoard, gauges_of


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def figures(visits: int, **more: int) -> WorkerFigures:
    return WorkerFigures(stats=WorkStats(visits={"ok": visits}, lag=0.5), **more)


def test_the_figures_of_a_job_that_ended_stay_for_an_hour():
    clock = Clock()
    board = WorkerBoard(clock)
    board.begin("shop-1", lambda: figures(7, processes=2, memory=100))
    board.end("shop-1")
    clock.now = KEPT_AFTER_END - 1
    [(job, kept)] = board.workers().items()
    assert (job, kept.stats.visits) == ("shop-1", {"ok": 7})
    assert (kept.processes, kept.memory, kept.stats.lag) == (0, 0, 0.0), "nothing runs any more"
    clock.now = KEPT_AFTER_END
    assert board.workers() == {}


@given(st.lists(st.integers(0, 100), min_size=1, max_size=6))
def test_a_job_that_is_joined_again_goes_on_with_its_counters(visits: list[int]):
    clock = Clock()
    board = WorkerBoard(clock)
    seen = []
    for count in visits:
        board.begin("shop-1", lambda count=count: figures(count, restarts=1, processes=1))
        seen.append(board.workers()["shop-1"])
        board.end("shop-1")
        clock.now += KEPT_AFTER_END / 2
    assert [one.stats.visits["ok"] for one in seen] == [sum(visits[: place + 1]) for place in range(len(visits))]
    assert [one.restarts for one in seen] == list(range(1, len(visits) + 1))
    assert all(one.processes == 1 for one in seen)


def test_ended_jobs_do_not_fill_the_memory():
    clock = Clock()
    board = WorkerBoard(clock)
    for number in range(MOST_JOBS + 50):
        board.begin(f"shop-{number}", lambda: figures(1))
        board.end(f"shop-{number}")
    found = board.workers()
    assert len(found) == MOST_JOBS and f"shop-{MOST_JOBS + 49}" in found


def test_the_state_of_a_job_stays_for_an_hour_after_its_end():
    clock = Clock()
    board = JobBoard(clock)
    board.set("shop-1", JobGauges(tasks={"done": 3}), "shop")
    board.end("shop-1")
    clock.now = KEPT_AFTER_END - 1
    assert board.jobs() == {"shop-1": JobGauges(tasks={"done": 3})}
    clock.now = KEPT_AFTER_END
    assert board.jobs() == {}


def test_a_job_that_goes_on_is_no_longer_ended():
    clock = Clock()
    board = JobBoard(clock)
    board.set("shop-1", JobGauges(), "shop")
    board.end("shop-1")
    board.set("shop-1", JobGauges(delayed=1), "shop")
    clock.now = 10 * KEPT_AFTER_END
    assert board.jobs() == {"shop-1": JobGauges(delayed=1)}


def test_jobs_of_a_spider_that_another_process_leads_are_not_shown():
    board = JobBoard(Clock())
    board.set("shop-1", JobGauges(), "shop")
    board.set("shop-2", JobGauges(), "shop")
    board.end("shop-2")
    board.set("books-1", JobGauges(), "books")
    board.drop("shop")
    assert set(board.jobs()) == {"books-1"}


def test_the_counters_of_a_job_are_its_gauges():
    progress = Progress(waiting=4, leased=3, done=2, dead=1, delayed=2, state=State.PAUSED)
    assert gauges_of(progress) == JobGauges(
        tasks={"waiting": 4, "leased": 3, "done": 2, "dead": 1}, delayed=2, state="paused"
    )
    over = Progress(waiting=0, leased=0, done=2, dead=1, finished_at=9.0)
    assert gauges_of(over).state == "finished"
    assert gauges_of(over).workers is None, "unknown is not 0"
