"""Whose session a task goes on with, and what others do with it."""

import pytest

from trotline.model.answer import Answer
from trotline.model.outcome import Bury, Snooze
from trotline.model.task import Task
from trotline.rules import session_pinning


def task(session: str = "", **more) -> Task:
    return Task(url="http://h.test/", route="page", lane="h.test", session=session, **more)


def test_the_process_that_opened_a_session_goes_on_with_it_and_no_other_does():
    child = session_pinning.continued(task("anna"), task("anna"), "here")

    assert session_pinning.name_of(child.session) == "anna"
    assert session_pinning.elsewhere(child, "here", 100.0) is None
    assert isinstance(session_pinning.elsewhere(child, "there", 100.0), Snooze)


@pytest.mark.parametrize(
    ("child", "parent"),
    [(task("bob"), task("anna")), (task("anna"), task()), (task(), task("anna"))],
)
def test_another_session_is_opened_wherever_its_first_page_is_visited(child, parent):
    assert session_pinning.continued(child, parent, "here").session == child.session


def test_a_session_whose_process_is_gone_ends_with_a_reason_and_not_as_a_row():
    waiting = session_pinning.continued(task("anna"), task("anna"), "gone")
    first = session_pinning.elsewhere(waiting, "here", 100.0)
    assert isinstance(first, Snooze) and first.task is not None

    later = session_pinning.elsewhere(first.task, "here", 100.0 + session_pinning.PATIENCE / 2)
    assert isinstance(later, Snooze) and later.task is None
    last = session_pinning.elsewhere(first.task, "here", 100.0 + session_pinning.PATIENCE)
    assert isinstance(last, Bury)
    assert last.why.startswith("session: ") and "--fresh" in last.detail
    # Its own process, should it be there after all, takes it at any time.
    assert session_pinning.elsewhere(first.task, "gone", 1_000.0) is None


def test_a_form_that_is_answered_with_a_cookie_opens_a_session_without_a_name():
    cookie = Answer(url="http://h.test/", status=200, headers=(("set-cookie", "a=b"),))
    plain = Answer(url="http://h.test/", status=200)

    assert session_pinning.opened_by(task(method="POST"), cookie)
    assert not session_pinning.opened_by(task(method="POST"), plain)
    assert not session_pinning.opened_by(task(), cookie)
    bound = session_pinning.continued(task(), session_pinning.bound(task(), "here"), "here")
    assert (session_pinning.name_of(bound.session), session_pinning.elsewhere(bound, "here", 1.0)) == ("", None)
    elsewhere = Task(url="http://other.test/", route="page", lane="other.test")
    assert session_pinning.continued(elsewhere, session_pinning.bound(task(), "here"), "here").session == ""


@pytest.mark.parametrize(
    ("session", "method", "cookie", "logs_in"),
    [
        ("anna", "POST", True, True),
        ("anna\x1fhere", "POST", True, True),
        ("anna", "POST", False, False),
        ("anna", "GET", True, False),
        ("\x1fhere", "POST", True, False),
    ],
)
def test_a_form_that_is_answered_with_a_cookie_logs_in_to_a_session_with_a_name(session, method, cookie, logs_in):
    headers = (("set-cookie", "a=b"),) if cookie else ()
    answer = Answer(url="http://h.test/", status=200, headers=headers)

    assert session_pinning.logs_in(task(session, method=method), answer) is logs_in
