"""What to do after a visit that did not end well."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.model.task import Task
from trotline.model.verdict import Kind, Verdict
from trotline.rules.retries import FIRST_WAIT, LONGEST_WAIT, MOST_THROTTLES, backoff, plan

DROPPED = (Kind.GONE, Kind.UNCHANGED, Kind.UNWANTED)
PLANNED = [kind for kind in Kind if kind not in (Kind.OK, Kind.MOVED)]


def task(attempt: int = 0, retries: int = 3) -> Task:
    return Task(url="https://shop.example/", route="page", attempt=attempt, retries=retries)


@given(st.integers(0, 10**9), st.integers())
def test_a_wait_is_within_its_bounds_whatever_the_attempt(attempt, seed):
    wait = backoff(attempt, random.Random(seed))

    assert FIRST_WAIT / 2 <= wait <= LONGEST_WAIT


def test_waits_grow_with_the_attempts():
    longest = [max(backoff(attempt, random.Random(seed)) for seed in range(50)) for attempt in range(8)]

    assert longest == sorted(longest)
    assert longest[0] <= FIRST_WAIT < longest[1] <= 2 * FIRST_WAIT


def test_workers_that_failed_together_do_not_return_together():
    chance = random.Random(1)

    assert len({backoff(3, chance) for _ in range(20)}) == 20


@pytest.mark.parametrize("kind", PLANNED)
def test_every_verdict_has_a_plan(kind):
    outcome = plan(task(), Verdict(kind, "why"), random.Random(1))

    expected = Done if kind in DROPPED else Snooze if kind is Kind.THROTTLED else Retry
    assert type(outcome) is expected
    assert outcome.why == f"{kind}: why"


@pytest.mark.parametrize("kind", PLANNED)
def test_what_no_retry_changes_is_not_retried(kind):
    outcome = plan(task(), Verdict(kind, "why", final=True), random.Random(1))

    assert type(outcome) is (Done if kind in DROPPED else Bury)


@pytest.mark.parametrize("kind", [kind for kind in PLANNED if kind not in (*DROPPED, Kind.THROTTLED)])
def test_when_its_attempts_are_spent_a_task_is_buried_with_the_last_reason(kind):
    assert type(plan(task(attempt=2), Verdict(kind, "why"), random.Random(1))) is Retry
    assert plan(task(attempt=3), Verdict(kind, "why"), random.Random(1)) == Bury(f"{kind}: why", "after 4 attempts")


def test_a_task_that_may_not_be_retried_is_buried_at_once():
    assert type(plan(task(retries=0), Verdict(Kind.BROKEN, "500"), random.Random(1))) is Bury


def test_a_verdict_without_words_gives_its_kind_as_the_reason():
    assert plan(task(), Verdict(Kind.GONE), random.Random(1)) == Done("gone")


@given(st.floats(0, 3600), st.integers(0, 2))
def test_a_retry_waits_at_least_as_long_as_it_was_asked_to(asked, attempt):
    outcome = plan(task(attempt), Verdict(Kind.BROKEN, "503", retry_after=asked), random.Random(1))

    assert isinstance(outcome, Retry)
    assert outcome.wait >= max(asked, FIRST_WAIT / 2)


@given(st.floats(0, 3600), st.integers(0, 100))
def test_f19_too_fast_costs_no_attempt_whatever_was_spent(asked, attempt):
    throttled = task(attempt, retries=0)

    outcome = plan(throttled, Verdict(Kind.THROTTLED, "429", retry_after=asked), random.Random(1))

    assert isinstance(outcome, Snooze)
    assert outcome.wait >= max(asked, FIRST_WAIT / 2)
    assert outcome.task == msgspec.structs.replace(throttled, throttled=1)


def test_a_page_that_is_always_answered_too_fast_comes_back_less_often_and_is_buried_in_the_end():
    throttled, waits = task(), []
    while isinstance(outcome := plan(throttled, Verdict(Kind.THROTTLED, "429"), random.Random(1)), Snooze):
        throttled = outcome.task
        waits.append(outcome.wait)

    assert len(waits) == MOST_THROTTLES - 1
    assert sum(waits) > 3600, "it is given time"
    assert waits[0] < 10 < waits[-1]
    assert isinstance(outcome, Bury)
    assert outcome.why == "throttled: 429"
    assert "20 times" in outcome.detail
