"""Whose session a page is of is asked before it is fetched, also when the frontier is unreachable for a while."""

import random

from tests.unit.worker.fake_ports import DiaryFrontier, SlowFetcher, one_page_spider, tools
from trotline.errors import FrontierUnreachable
from trotline.model.answer import Answer
from trotline.model.lease import Lease
from trotline.model.outcome import Done, Snooze
from trotline.model.task import Task
from trotline.rules import session_pinning
from trotline.testing.virtual_time import run_virtual
from trotline.worker.visit import Visitor


class Away(DiaryFrontier):
    """Does not know of sessions for the first few questions."""

    async def session_home(self, session: str, home: str = "") -> str:
        if self.away > 0:
            self.away -= 1
            raise FrontierUnreachable("locked")
        return await super().session_home(session, home)


HOME = f"{random.Random(1).getrandbits(64):x}"
"""Of the first visitor: its name is drawn by chance, which is given."""


def lease(task: Task | None = None) -> Lease:
    task = task or Task(url="http://h.test/", route="page", lane="h.test", session="anna")
    return Lease(task=task, token=1, start_in=0.0, slack=0.25, leased_at=100.0, asked_at=0.0)


def welcome(task: Task) -> Answer:
    headers = (("content-type", "text/html"), ("set-cookie", "a=b"))
    return Answer(url=task.url, status=200, headers=headers, body=b"<h1>in</h1>")


def test_a_page_whose_session_cannot_be_looked_up_is_not_fetched() -> None:
    fetcher, frontier = SlowFetcher(), Away([], away=1)
    visitor = Visitor(one_page_spider(), tools(frontier, None, fetcher))

    first, second = run_virtual(visitor.visit(lease())), run_virtual(visitor.visit(lease()))

    assert isinstance(first.outcome, Snooze)
    assert isinstance(second.outcome, Done)
    assert len(fetcher.asked) == 1


def test_nothing_comes_of_a_login_before_everybody_can_know_of_it() -> None:
    frontier, fetcher = Away([], away=2), SlowFetcher()
    visitor = Visitor(one_page_spider(), tools(frontier, None, SlowFetcher(answer=welcome)))
    stranger = Visitor(one_page_spider(), tools(frontier, None, fetcher, chance=random.Random(2)))
    form = session_pinning.bound(
        Task(url="http://h.test/", route="page", lane="h.test", session="anna", method="POST"), HOME
    )

    posted = run_virtual(visitor.visit(lease(form)))
    strange = run_virtual(stranger.visit(lease()))

    assert isinstance(posted.outcome, Done)
    assert frontier.homes == {"anna": HOME}
    assert isinstance(strange.outcome, Snooze)
    assert fetcher.asked == []
    assert isinstance(run_virtual(visitor.visit(lease())).outcome, Done), "its own process goes on"
