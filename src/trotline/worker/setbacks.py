"""What went wrong last, and when it is tried again: what the screen says while there is nothing else to do."""

from trotline.model.moments import Seconds
from trotline.model.outcome import Retry, Snooze
from trotline.worker.visited import Visit

_ROBOTS = "robots.txt: "


class Setbacks:
    """The last visit of a worker that has to be made again, until one ends well."""

    def __init__(self) -> None:
        self._what = ""
        self._due: Seconds = 0.0

    def __bool__(self) -> bool:
        return bool(self._what)

    def note(self, visit: Visit, now: Seconds) -> None:
        outcome = visit.outcome
        if not isinstance(outcome, Retry | Snooze):
            self._what = ""
        elif outcome.wait > 0:
            self._what = _said(visit.lease.task.lane, outcome.why)
            self._due = now + outcome.wait

    def told(self, now: Seconds) -> str:
        """ "shop.example: no connection: Connection refused, again in 14 s"; empty: nothing waits for a next try."""
        left = self._due - now
        return f"{self._what}, again in {left:.0f} s" if self._what and left >= 0.5 else ""


def _said(lane: str, why: str) -> str:
    """Without the verdict in front ("unreachable: ")."""
    cause = why.partition(": ")[2] or why
    if cause.startswith(_ROBOTS):
        return f"robots.txt of {lane}: {cause.removeprefix(_ROBOTS)}"
    return f"{lane}: {cause}"
