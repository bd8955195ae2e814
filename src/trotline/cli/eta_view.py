"""The ETA of a run, from a series of reports."""

from typing import TYPE_CHECKING

from trotline.coordinator.job_eta import living, no_estimate, of_series, standstill
from trotline.rules.eta import WINDOWS, Range, Sample, Unknown, estimate, remember
from trotline.rules.eta_bounds import delays_of, load_of
from trotline.rules.time_series import Point, point_of

if TYPE_CHECKING:
    from trotline.commands.run_report import Report


class Outlook:
    """Remembers the last minutes of reports, and makes an ETA of them."""

    def __init__(self, max_pages: int | None = None) -> None:
        self._max_pages = max_pages
        self._samples: tuple[Sample, ...] = ()
        self._ended_before: int | None = None
        self._points: list[Point] = []
        """Of a whole job."""

    def update(self, report: "Report") -> Range | Unknown:
        progress = report.progress
        if report.whole:
            return self._of_whole(report)
        ended = progress.done + progress.dead
        if self._ended_before is None:
            self._ended_before = ended
        self._samples = remember(self._samples, Sample(report.elapsed, ended, progress.admitted))
        if reason := no_estimate(progress, report.held_back, alive=True) or _standstill(report):
            return reason
        remaining, loads = progress.waiting + progress.leased, map(load_of, report.lanes)
        return estimate(self._samples, remaining, loads, self._pages_left(ended), delays_of(progress))

    def _of_whole(self, report: "Report") -> Range | Unknown:
        """As the dashboard and the alerts estimate it: from what was observed before, and what was seen here."""
        progress = report.progress
        alive = report.ours > 0 or living(report.crew) > 0
        points = self._points or list(report.points)
        found: Range | Unknown = of_series(points, progress, report.lanes, report.held_back, alive=alive)
        if no_estimate(progress, report.held_back, alive=alive) is None:
            found = _standstill(report) or found
        now = point_of(progress, living(report.crew))
        since = now.at - 2 * max(WINDOWS)
        self._points = [point for point in points if since <= point.at < now.at] + [now]
        return found

    def _pages_left(self, ended: int) -> int | None:
        if self._max_pages is None:
            return None
        return max(0, self._max_pages - (ended - (self._ended_before or 0)))


def _standstill(report: "Report") -> Unknown | None:
    return standstill(report.lanes, report.troubles, report.progress.waiting)
