"""Hooks in a worker: what is sent, stored, counted and buried."""

import asyncio
from typing import Any

import pytest

from tests.unit.worker.fake_ports import DiaryFrontier, DiarySink, SlowFetcher, lease, one_page_spider, tools
from trotline import Drop, Spider
from trotline.errors import FrontierUnreachable
from trotline.model.job import Progress
from trotline.model.outcome import Bury, Done
from trotline.testing.virtual_time import run_virtual
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.visit import Visitor
from trotline.worker.worker import Worker
from trotline.worker.worker_settings import WorkerPolicy


def visited(spider: Spider) -> tuple[FinishedVisit, SlowFetcher]:
    fetcher = SlowFetcher(0.1)
    visitor = Visitor(spider, tools(DiaryFrontier([]), DiarySink([]), fetcher, spider=spider))
    return run_virtual(visitor.visit(lease(1))), fetcher


def test_the_request_is_changed_and_the_stored_task_is_not():
    spider = one_page_spider()

    @spider.before_request
    def sign(request):
        request.headers["x-token"] = "secret"

    visit, fetcher = visited(spider)

    assert fetcher.asked[0].headers == (("x-token", "secret"),)
    assert visit.lease.task.headers == ()
    assert visit.settlement().lease.task.headers == ()


def test_a_dropped_request_is_not_sent_and_its_task_is_done_with_the_reason():
    spider = one_page_spider()
    spider.before_request(lambda request: Drop("not today"))

    visit, fetcher = visited(spider)

    assert (visit.outcome, fetcher.asked) == (Done(why="not today (<lambda>)"), [])


def test_a_dropped_page_is_not_read_and_dropped_records_are_counted():
    spider = one_page_spider()
    spider.record(lambda record: Drop("cheap"))
    visit, _ = visited(spider)
    assert (visit.outcome, visit.records) == (Done(), [])
    assert visit.settlement().tallies["dropped record: cheap (<lambda>)"] == 1

    spider.after_answer(lambda page: Drop("old"))
    visit, fetcher = visited(spider)
    assert visit.outcome == Done(why="old (<lambda>)")
    assert len(fetcher.asked) == 1
    assert visit.feedback is not None, "the lane was answered"


def test_a_route_may_keep_what_is_dropped_as_dead():
    spider = one_page_spider()
    spider.before_request(lambda request: Drop("not today"))
    for route in spider.routes.values():
        route.buries_dropped = True
    frontier = DiaryFrontier([], [lease(1)])

    run_virtual(
        Worker("w", spider, tools(frontier, DiarySink([]), SlowFetcher(0.1), spider=spider), WorkerPolicy()).run()
    )

    assert [one.outcome for one in frontier.settled.values()] == [Bury(why="not today (<lambda>)")]


def test_an_error_in_a_hook_buries_the_task_with_the_hooks_name():
    for kind in ("before_request", "after_answer", "record"):
        spider = one_page_spider()

        def broken(given):
            raise KeyError("price")

        getattr(spider, kind)(broken)
        visit, _ = visited(spider)

        assert isinstance(visit.outcome, Bury)
        assert visit.outcome.why.startswith(f"handler: {kind} hook broken: KeyError at test_hooked_visits.py:")
        assert "price" in visit.outcome.detail


def test_an_async_hook_that_hangs_ends_at_the_limit_of_handlers():
    spider = one_page_spider()

    @spider.before_request
    async def hang(request):
        await asyncio.sleep(1e9)

    visit, fetcher = visited(spider)
    assert isinstance(visit.outcome, Bury)
    assert visit.outcome.why.startswith("handler: before_request hook hang: took longer than 60 s (Limits.handler")
    assert fetcher.asked == []


def test_start_and_finish_run_once_around_all_pages():
    spider = one_page_spider()
    said = []
    fetcher = SlowFetcher(0.1, None)
    spider.on_start(lambda worker: said.append(("start", worker.name, len(fetcher.asked))))
    sink = DiarySink([])
    spider.on_finish(lambda worker: said.append((worker.ended, len(fetcher.asked), len(sink.rows))))
    parts = tools(DiaryFrontier([], [lease(1), lease(2)]), sink, fetcher, spider=spider)

    run_virtual(Worker("w", spider, parts, WorkerPolicy(slots=2)).run())

    assert said == [("start", "w", 0), ("finished", 2, 2)]


class Jobs:
    """The console of a job of which pages are left, or none."""

    def __init__(self, finished_at: float | None, error: FrontierUnreachable | None = None) -> None:
        self._progress = Progress(waiting=0, leased=0, done=2, dead=0, finished_at=finished_at)
        self._error = error

    async def progress(self) -> Progress:
        if self._error is not None:
            raise self._error
        return self._progress


@pytest.mark.parametrize(
    ("console", "max_pages", "ended"),
    [
        (None, None, "finished"),
        (None, 1, "stopped"),
        (Jobs(5.0), None, "finished"),
        # At the limit of the job, or cancelled: its frontier ends the worker in the same way.
        (Jobs(None), None, "stopped"),
        (Jobs(None, FrontierUnreachable("away")), None, "stopped"),
    ],
)
def test_a_job_of_which_pages_are_left_is_not_called_finished(console: Any, max_pages: int | None, ended: str):
    spider = one_page_spider()
    said = []
    spider.on_finish(lambda worker: said.append(worker.ended))
    frontier = DiaryFrontier([], [lease(1), lease(2)])
    parts = tools(frontier, DiarySink([]), SlowFetcher(0.1, None), spider=spider, console=console)

    run_virtual(Worker("w", spider, parts, WorkerPolicy(slots=1, max_pages=max_pages)).run())

    assert said == [ended]
