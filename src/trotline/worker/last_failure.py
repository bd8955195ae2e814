"""What went wrong last, and when it is tried again: what the screen says while there is nothing else to do.

A seed that has to wait is said in any case: all that lies behind it is missing, however well the other pages do.
"""

from typing import NamedTuple

from trotline.model.outcome import Retry, Snooze
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.worker.finished_visit import Visit

_ROBOTS = "robots.txt: "
MOST_SEEDS = 1_000
"""Seeds that are remembered; a list of a million hosts has more that are away."""


class _Setback(NamedTuple):
    what: str
    due: Seconds


class Setbacks:
    """The last visit of a worker that has to be made again, until one ends well; and every seed that has to."""

    def __init__(self) -> None:
        self._last = _Setback("", 0.0)
        self._seeds: dict[int, _Setback] = {}

    def __bool__(self) -> bool:
        return bool(self._last.what or self._seeds)

    def note(self, visit: Visit, now: Seconds) -> None:
        outcome, task = visit.outcome, visit.lease.task
        if not isinstance(outcome, Retry | Snooze):
            self._last = _Setback("", 0.0)
            self._seeds.pop(task.fingerprint, None)
        elif outcome.wait > 0:
            self._last = _Setback(_said(task.lane, outcome.why), now + outcome.wait)
            if _is_seed(task):
                self._remember(task.fingerprint)

    def _remember(self, seed: int) -> None:
        # Out and in again: the first is the one that was tried least recently, perhaps by another process since.
        self._seeds.pop(seed, None)
        self._seeds[seed] = self._last
        if len(self._seeds) > MOST_SEEDS:
            del self._seeds[next(iter(self._seeds))]

    def told(self, now: Seconds, *, idle: bool = True) -> str:
        """ "shop.example: no connection: Connection refused, again in 14 s"; empty: nothing waits for a next try.

        While the worker is not `idle`, of seeds only: the one that is due next.
        """
        if idle and self._last.what:
            return _again(self._last, now)
        waiting = [seed for seed in self._seeds.values() if seed.due > now]
        return _again(min(waiting, key=lambda seed: seed.due), now) if waiting else ""


def _again(setback: _Setback, now: Seconds) -> str:
    left = setback.due - now
    return f"{setback.what}, again in {left:.0f} s" if left >= 0.5 else ""


def _is_seed(task: Task) -> bool:
    return not task.parent


def _said(lane: str, why: str) -> str:
    """Without the verdict in front ("unreachable: ")."""
    cause = why.partition(": ")[2] or why
    if cause.startswith(_ROBOTS):
        return f"robots.txt of {lane}: {cause.removeprefix(_ROBOTS)}"
    return f"{lane}: {cause}"
