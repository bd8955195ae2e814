"""A robots.txt that is answered with "too fast" is news of the lane, and costs its pages no attempt (F19)."""

import pytest

from tests.unit.worker.fake_ports import DiaryFrontier, SlowFetcher, one_page_spider, tools
from trotline.model.lease import Lease
from trotline.model.outcome import Bury, Snooze
from trotline.model.task import Task
from trotline.model.verdict import Kind
from trotline.ports.robots import UNMARKED, Marked, Permission
from trotline.testing.virtual_time import run_virtual
from trotline.worker.visit import Visitor


class Robots:
    def __init__(self, *, throttled: bool) -> None:
        self._throttled = throttled

    async def ask(self, url: str, marked: Marked = UNMARKED, way: object = None) -> Permission:
        return Permission(False, ask_again=7.0, why="robots.txt: 503", throttled=self._throttled)


@pytest.mark.parametrize(("throttled", "outcome"), [(True, Snooze), (False, Bury)])
def test_only_a_robots_txt_that_fails_costs_an_attempt(throttled: bool, outcome: type) -> None:
    fetcher = SlowFetcher()
    visitor = Visitor(one_page_spider(), tools(DiaryFrontier([]), None, fetcher, robots=Robots(throttled=throttled)))
    task = Task(url="http://h.test/", route="page", lane="h.test", retries=0)
    lease = Lease(task=task, token=1, start_in=0.0, slack=0.25, leased_at=100.0, asked_at=0.0)

    visit = run_virtual(visitor.visit(lease))

    assert isinstance(visit.outcome, outcome)
    assert visit.feedback is not None
    assert (visit.feedback.kind, visit.feedback.rest, visit.feedback.robots) == (
        (Kind.THROTTLED, 7.0, False) if throttled else (Kind.UNREACHABLE, 0.0, False)
    )
    assert fetcher.asked == []
