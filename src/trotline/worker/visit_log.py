"""Log lines of settled visits: each of them at the level debug, and the errors of handlers at info."""

import logging
from collections.abc import Callable, Sequence

from trotline.model.time import Seconds
from trotline.model.visit_row import VisitRow
from trotline.rules import redaction
from trotline.rules.log_lines import TRACEBACK
from trotline.worker.finished_visit import FinishedVisit

log = logging.getLogger("trotline.commit")

AGAIN_AFTER: Seconds = 60.0
"""An error of the same line is logged once per process in this time, and then with how many pages it met."""
MOST_ERRORS = 200
"""Different errors that a process logs."""


class VisitLog:
    def __init__(self, job: str, worker: str, now: Callable[[], Seconds]) -> None:
        self._job = job
        self._worker = worker
        self._now = now
        self._errors: dict[str, tuple[Seconds, int]] = {}
        """When each error was logged, and the pages since."""

    def settled(self, visits: Sequence[FinishedVisit]) -> None:
        """Visits that the frontier has accepted."""
        if log.isEnabledFor(logging.DEBUG):
            for visit in visits:
                _log_visit(visit.line(self._job, self._worker))
        for visit in visits:
            if visit.handler_error:
                self._handler_failed(visit, visit.handler_error)

    def _handler_failed(self, visit: FinishedVisit, detail: str) -> None:
        row = visit.line(self._job, self._worker)
        logged_at, pages = self._errors.get(row.why, (None, 0))
        if logged_at is None and len(self._errors) >= MOST_ERRORS:
            return
        if logged_at is not None and self._now() - logged_at < AGAIN_AFTER:
            self._errors[row.why] = logged_at, pages + 1
            return
        self._errors[row.why] = self._now(), 0
        facts = {"url": row.url, "route": row.route, "pages": pages + 1, TRACEBACK: redaction.text(detail)}
        log.info("handler.failed %s %s", row.url, row.why, extra={"fields": facts})


def _log_visit(row: VisitRow) -> None:
    facts = {
        name: getattr(row, name) for name in ("url", "route", "lane", "outcome", "verdict", "status", "took", "size")
    }
    log.debug("visit.settled %s %s", row.url, row.why or row.outcome, extra={"fields": facts})
