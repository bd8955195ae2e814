"""The last failure and the time of its retry, for the progress line of an idle worker.

Seeds that wait for a retry are shown even if the worker is busy: all pages behind them are missing.
"""

from typing import NamedTuple

from trotline.model.outcome import Retry, Snooze
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.ports.robots import UNREADABLE
from trotline.worker.finished_visit import FinishedVisit

MOST_SEEDS = 1_000
"""Waiting seeds that are kept: a list of a million hosts may have more."""


class _Failure(NamedTuple):
    what: str
    due: Seconds


class RetryStatus:
    """The last visit that waits for a retry, until one succeeds; and every seed that does."""

    def __init__(self) -> None:
        self._last = _Failure("", 0.0)
        self._seeds: dict[int, _Failure] = {}

    def __bool__(self) -> bool:
        return bool(self._last.what or self._seeds)

    def note(self, visit: FinishedVisit, now: Seconds) -> None:
        outcome, task = visit.outcome, visit.lease.task
        if not isinstance(outcome, Retry | Snooze):
            self._last = _Failure("", 0.0)
            self._seeds.pop(task.fingerprint, None)
        elif outcome.wait > 0:
            self._last = _Failure(_described(task.lane, outcome.why), now + outcome.wait)
            if _is_seed(task):
                self._remember(task.fingerprint)

    def _remember(self, seed: int) -> None:
        # Reinserted, so that the first one is the least recently tried; another process may have done it since.
        self._seeds.pop(seed, None)
        self._seeds[seed] = self._last
        if len(self._seeds) > MOST_SEEDS:
            del self._seeds[next(iter(self._seeds))]

    def text(self, now: Seconds, *, idle: bool = True) -> str:
        """ "shop.example: no connection: Connection refused, again in 14 s"; empty if nothing waits for a retry.

        If the worker is not `idle`, only of the seed that is due next.
        """
        if idle and self._last.what:
            return _text(self._last, now)
        waiting = [seed for seed in self._seeds.values() if seed.due > now]
        return _text(min(waiting, key=lambda seed: seed.due), now) if waiting else ""


def _text(failure: _Failure, now: Seconds) -> str:
    left = failure.due - now
    return f"{failure.what}, again in {left:.0f} s" if left >= 0.5 else ""


def _is_seed(task: Task) -> bool:
    return not task.parent


def _described(lane: str, why: str) -> str:
    """Without the prefix that names the verdict ("unreachable: ")."""
    cause = why.partition(": ")[2] or why
    if cause.startswith(UNREADABLE):
        return f"robots.txt of {lane}: {cause.removeprefix(UNREADABLE)}"
    return f"{lane}: {cause}"
