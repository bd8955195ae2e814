"""Who is charged for a visit through a proxy pool: one party, and never the wrong one."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.outcome import Bury, Retry, Snooze
from trotline.model.proxy_pool import MemberResult
from trotline.model.task import Task
from trotline.model.verdict import Kind, Verdict
from trotline.rules import proxy_judgement

CHANCE = random.Random(1)
PAGE = Task(url="https://shop.example/1", route="page")


@pytest.mark.parametrize(
    ("verdict", "result"),
    [
        (Verdict(Kind.OK), MemberResult.GOOD),
        (Verdict(Kind.GONE, "404"), MemberResult.GOOD),
        (Verdict(Kind.MOVED), MemberResult.GOOD),
        (Verdict(Kind.BROKEN, "500"), MemberResult.GOOD),
        (Verdict(Kind.BLOCKED, "403"), MemberResult.BLOCKED),
        (Verdict(Kind.THROTTLED, "429"), MemberResult.THROTTLED),
        (Verdict(Kind.UNREACHABLE, "timed out"), MemberResult.UNCLEAR),
        (Verdict(Kind.UNREACHABLE, "proxy refused", of_proxy=True), MemberResult.FAULT),
        (Verdict(Kind.UNREACHABLE, "idle connection", of_proxy=True, free=True, once=True), MemberResult.UNUSED),
        (Verdict(Kind.REFUSED, "private address"), MemberResult.UNUSED),
    ],
)
def test_a_verdict_is_charged_to_the_member_only_if_it_is_the_members(verdict: Verdict, result: MemberResult) -> None:
    assert proxy_judgement.member_result(verdict) is result


def test_a_blocked_page_goes_out_through_others_without_an_attempt_and_is_buried_after_four() -> None:
    task = PAGE
    for member in (1, 2, 3):
        page = proxy_judgement.blocked(task, member, "403", CHANCE, site_blocked=False)
        assert isinstance(page.outcome, Snooze)
        assert page.outcome.task is not None
        task = page.outcome.task
    assert (task.blocked_by, task.attempt) == ((1, 2, 3), 0)

    last = proxy_judgement.blocked(task, 4, "403", CHANCE, site_blocked=False)

    assert last.outcome == Bury(why="blocked: 403", detail="through 4 proxies")
    assert last.lift == (1, 2, 3, 4), "it was the page: they are cleared"


def test_while_the_site_blocks_all_members_nothing_is_counted() -> None:
    task = Task(url="https://shop.example/1", route="page", blocked_by=(1, 2, 3))

    page = proxy_judgement.blocked(task, 4, "403", CHANCE, site_blocked=True)

    assert isinstance(page.outcome, Snooze)
    assert page.outcome.task is None
    assert page.lift == ()


def test_a_page_that_a_small_pool_blocks_again_and_again_is_buried_when_its_attempts_are_spent() -> None:
    task, outcomes = PAGE, []
    for member in (1, 2, 1, 2, 1, 2):
        page = proxy_judgement.blocked(task, member, "403", CHANCE, site_blocked=False)
        outcomes.append(type(page.outcome))
        if isinstance(page.outcome, Snooze) and page.outcome.task:
            task = page.outcome.task
        elif isinstance(page.outcome, Retry):
            task = msgspec.structs.replace(task, attempt=task.attempt + 1)

    assert outcomes == [Snooze, Snooze, Retry, Retry, Retry, Bury]
    assert set(page.lift) == {1, 2}


@given(st.lists(st.integers(1, 6), max_size=30))
def test_the_same_member_twice_counts_once(members: list[int]) -> None:
    task = PAGE
    for member in members:
        page = proxy_judgement.blocked(task, member, "", CHANCE, site_blocked=False)
        if isinstance(page.outcome, Bury):
            assert len(set(page.lift)) == len(page.lift) <= proxy_judgement.BLOCKED_THROUGH
            return
        if isinstance(page.outcome, Snooze):
            assert page.outcome.task is not None
            task = page.outcome.task
            assert member in task.blocked_by
        else:
            # Without attempts to spend, other members come first.
            assert isinstance(page.outcome, Retry)
    assert len(set(members)) < proxy_judgement.BLOCKED_THROUGH
