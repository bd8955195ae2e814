"""The span of a settled visit: fetch, parse, commit. Made afterwards from its times: a visit that is not traced pays
nothing."""

import time

from trotline.model.span import Span
from trotline.model.time import Seconds
from trotline.worker.finished_visit import FinishedVisit

_FAILED = frozenset({"retry", "bury"})


def visit_span(
    visit: FinishedVisit, job: str, worker: str, began: Seconds, ended: Seconds, now: Seconds
) -> Span | None:
    """`began`, `ended`: of its commit, by the clock of the worker's meter, as `now`. None if no request was sent."""
    request = visit.request
    if not request.answered_at:
        return None
    wall = time.time() - now
    row = visit.line(job, worker)
    fetched = wall + request.answered_at
    parts = [
        Span(
            name="fetch",
            began=fetched - request.took,
            ended=fetched,
            facts={"http.response.status_code": row.status, "http.response.body.size": row.size}
            | ({"trotline.proxy": row.proxy} if row.proxy else {}),
        )
    ]
    if request.parse:
        parts.append(
            Span(
                name="parse",
                began=fetched,
                ended=fetched + request.parse,
                facts={"trotline.records": row.records, "trotline.children": row.children},
            )
        )
    parts.append(Span(name="commit", began=wall + began, ended=wall + ended))
    return Span(
        name="visit",
        began=fetched - request.took,
        ended=wall + ended,
        facts={
            "url.full": row.url,
            "trotline.job": row.job,
            "trotline.spider": row.site,
            "trotline.worker": row.worker,
            "trotline.route": row.route,
            "trotline.lane": row.lane,
            "trotline.attempt": row.attempt,
            "trotline.depth": row.depth,
            "trotline.verdict": row.verdict,
            "trotline.outcome": row.outcome,
        },
        error=(row.why or row.outcome) if row.outcome in _FAILED else "",
        parts=tuple(parts),
    )
