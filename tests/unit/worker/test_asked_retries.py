"""A handler that asks for another attempt: with the attempts of the task, and nothing of this attempt is stored."""

import msgspec
import pytest

from tests.unit.worker.fake_ports import DiaryFrontier, DiarySink, SlowFetcher, lease, tools
from trotline import Page, Retry, Spider
from trotline.model.outcome import Bury
from trotline.model.outcome import Retry as RetryOutcome
from trotline.rules.retry_tallies import route_tally
from trotline.testing.virtual_time import run_virtual
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.visit import Visitor


def asking(**more: float) -> Spider:
    spider = Spider("s", robots=False)

    @spider.page
    def page(page: Page):
        yield {"url": page.url}
        raise Retry("no price\n yet", **more)

    return spider


def visited(spider: Spider, attempt: int = 0) -> FinishedVisit:
    visitor = Visitor(spider, tools(DiaryFrontier([]), DiarySink([]), SlowFetcher(0.1), spider=spider))
    given = lease(1)
    task = msgspec.structs.replace(given.task, attempt=attempt, retries=3)
    return run_virtual(visitor.visit(msgspec.structs.replace(given, task=task)))


def test_the_page_is_retried_and_nothing_of_this_attempt_is_stored():
    visit = visited(asking())
    assert isinstance(visit.outcome, RetryOutcome)
    assert (visit.outcome.why, visit.records, visit.handler_error) == ("retry asked: no price yet", [], "")
    assert 1.0 <= visit.outcome.wait <= 2.0, "the first backoff"
    assert visit.settlement().tallies[route_tally("page")] == 1


def test_it_waits_as_long_as_asked():
    outcome = visited(asking(after=3600)).outcome
    assert isinstance(outcome, RetryOutcome)
    assert outcome.wait == 3600.0


def test_the_last_attempt_buries_it_with_the_reason():
    assert visited(asking(), attempt=3).outcome == Bury(why="retry asked: no price yet", detail="after 4 attempts")


def test_async_handlers_and_hooks_ask_alike():
    spider = Spider("s", robots=False)

    @spider.page
    async def page(page: Page):
        raise Retry("busy")

    assert visited(spider).outcome.why == "retry asked: busy"

    spider = Spider("s", robots=False)
    spider.page(name="page")(lambda page: {"url": page.url})

    @spider.record
    def whole(record, page):
        if not page.attempt:
            raise Retry("half a record")

    assert visited(spider).outcome.why == "retry asked: half a record"
    assert len(visited(spider, attempt=1).records) == 1


@pytest.mark.parametrize(("why", "after"), [("", 0), (" \n", 0), (7, 0), ("x", -1), ("x", 1e9), ("x", True)])
def test_a_retry_without_a_reason_or_with_an_odd_wait_is_refused(why, after):
    with pytest.raises(ValueError, match="Retry"):
        Retry(why, after=after)
