"""Retry policy: backoff, attempts, and when a task is buried."""

import random

import msgspec

from trotline.model.outcome import Bury, Done, Outcome, Retry, Snooze
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.verdict import Kind, Verdict

FIRST_WAIT: Seconds = 2.0
LONGEST_WAIT: Seconds = 600.0
LATER_BY = 10
"""Added to the priority of a retry, so that retries do not delay new tasks."""

MOST_THROTTLES = 20
"""A page is buried after this many 429s. The waits in between add up to two hours."""

ASKED = "retry asked: "
"""Prefix of the reasons of handlers that ask for another attempt."""
_DOUBLINGS = 20
"""Cap of the exponent: a seed may have any number of attempts."""
_DROPPED = frozenset({Kind.GONE, Kind.UNCHANGED, Kind.UNWANTED})


def backoff(attempt: int, chance: random.Random) -> Seconds:
    """Exponential backoff with jitter over its upper half."""
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempt, _DOUBLINGS))
    return float(longest * (0.5 + 0.5 * chance.random()))


def plan(task: Task, verdict: Verdict, chance: random.Random) -> Outcome:
    """The outcome for every verdict but ok and moved."""
    why = f"{verdict.kind}: {verdict.why}" if verdict.why else str(verdict.kind)
    if verdict.kind in _DROPPED:
        return Done(why=why)
    if verdict.final:
        return Bury(why=why)
    if verdict.free and not (verdict.once and task.throttled):
        # Jitter: tasks that wait for a proxy must not all return at once.
        wait = FIRST_WAIT if verdict.retry_after is None else verdict.retry_after
        counted = msgspec.structs.replace(task, throttled=task.throttled + 1) if verdict.once else None
        return Snooze(wait=wait * (1.0 + chance.random()), why=why, task=counted)
    if verdict.kind is Kind.THROTTLED:
        return _again_later(task, verdict, why, chance)
    if task.attempt >= task.retries:
        return Bury(why=why, detail=f"after {task.attempt + 1} attempts")
    wait = max(backoff(task.attempt, chance), verdict.retry_after or 0.0)
    return Retry(wait=wait, why=why)


def asked(task: Task, why: str, after: Seconds, chance: random.Random) -> Outcome:
    """A handler asks for another attempt: with the attempts and the backoff of other failures."""
    why = f"{ASKED}{why}"
    if task.attempt >= task.retries:
        return Bury(why=why, detail=f"after {task.attempt + 1} attempts")
    return Retry(wait=max(backoff(task.attempt, chance), after), why=why)


def _again_later(task: Task, verdict: Verdict, why: str, chance: random.Random) -> Outcome:
    """Rate limited: the lane was too fast, so no attempt is counted. With backoff and a maximum, for a page that always
    answers 429."""
    times = task.throttled + 1
    if times >= MOST_THROTTLES:
        return Bury(why=why, detail=f"rate limited {times} times; these do not count as attempts")
    wait = max(backoff(task.throttled, chance), verdict.retry_after or 0.0)
    return Snooze(wait=wait, why=why, task=msgspec.structs.replace(task, throttled=times))
