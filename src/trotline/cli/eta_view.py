"""The ETA of a run, from a series of reports."""

from typing import TYPE_CHECKING

from trotline.coordinator.outlook import living, no_estimate
from trotline.rules.eta import Range, Sample, Unknown, estimate, remember
from trotline.rules.eta_loads import delays_of, load_of

if TYPE_CHECKING:
    from trotline.commands.report import Report


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
        alive = not report.whole or report.ours > 0 or living(report.crew) > 0
        if reason := no_estimate(progress, report.held_back, alive=alive):
            return reason
        remaining, loads = progress.waiting + progress.leased, map(load_of, report.lanes)
        return estimate(self._samples, remaining, loads, self._pages_left(ended), delays_of(progress))

    def _pages_left(self, ended: int) -> int | None:
        if self._max_pages is None:
            return None
        return max(0, self._max_pages - (ended - (self._ended_before or 0)))
