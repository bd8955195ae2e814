"""The ETA of a run, from a series of reports."""

from typing import TYPE_CHECKING

from trotline.cli.held_back_view import outage
from trotline.model.job import State
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules.eta import Load, Range, Sample, Unknown, estimate, remember

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trotline.commands.report import Report
    from trotline.model.job import WorkerView


def living(crew: "Sequence[WorkerView]") -> int:
    """Workers with a recent heartbeat."""
    return sum(worker.silent_for < DEAD_AFTER for worker in crew)


def is_alive(crew: "Sequence[WorkerView]") -> bool:
    return living(crew) > 0


def _has_workers(report: "Report") -> bool:
    return report.ours > 0 or is_alive(report.crew)


class Outlook:
    """Remembers the last minutes of reports, and makes an ETA of them."""

    def __init__(self, max_pages: int | None = None) -> None:
        self._max_pages = max_pages
        self._samples: tuple[Sample, ...] = ()
        self._ended_before: int | None = None

    def update(self, report: "Report") -> Range | Unknown:
        progress = report.progress
        ended = progress.done + progress.dead
        if self._ended_before is None:
            self._ended_before = ended
        if not self._samples and report.whole:
            # The whole job, met in the middle of its life: until we have seen some of it, its average must do.
            self._samples = (Sample(0.0, 0, progress.admitted),)
        self._samples = remember(self._samples, Sample(report.elapsed, ended, progress.admitted))
        if progress.paused:
            return Unknown.PAUSED
        if progress.state is State.CANCELLED:
            # Its workers have left, and wait for another job.
            return Unknown.CANCELLED
        if report.whole and progress.sealed and progress.waiting + progress.leased and not _has_workers(report):
            return Unknown.ALONE
        if reason := outage(report.held_back):
            return reason
        if not progress.waiting + progress.leased and not progress.sealed:
            # Nothing to do is not the end while seeds are still coming.
            return Unknown.TOO_EARLY
        loads = [Load(lane.waiting, lane.interval, lane.rests_for) for lane in report.lanes]
        return estimate(self._samples, progress.waiting + progress.leased, loads, self._pages_left(ended))

    def _pages_left(self, ended: int) -> int | None:
        if self._max_pages is None:
            return None
        return max(0, self._max_pages - (ended - (self._ended_before or 0)))
