"""The alerts of a job, and of all jobs: what fires, what may fire soon, and what is over."""

import asyncio
import time
from collections.abc import Sequence

import msgspec

from trotline.model.alert import Alert, AlertState, Severity
from trotline.model.job import Job
from trotline.model.time import Seconds, iso
from trotline.rules.alert_texts import title, unchecked
from trotline.web.api.types import JobPath
from trotline.web.openapi import PREFIX
from trotline.web.route_table import Call, Role, Route
from trotline.web.server_state import Site

MOST_JOBS = 100
"""Those under way, then the newest."""


class AlertView(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    rule: str
    alert: str
    """Its title."""
    object: str
    """What it is about: a worker, a pool, a field; empty: the job."""
    state: AlertState
    severity: Severity
    text: str
    next: str
    """A command that helps."""
    since: str
    fired_at: str | None
    ended_at: str | None
    lasted: Seconds
    """From then to its end, or until now."""


class AlertsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    alerts: list[AlertView]
    """Critical ones first, then the newest."""
    more: int
    """Objects of the same rules that are not listed."""
    jobs: int
    """Jobs that were looked at."""
    jobs_left_out: int
    unreachable: dict[str, str]
    """Frontiers that cannot be asked, with the reason: the last known alerts are listed."""
    unchecked: dict[str, str] = {}
    """Jobs whose rules no process evaluates, with the time of the last evaluation and what to do."""


async def job_alerts(call: Call) -> AlertsAnswer:
    place, job = await call.site.index.find(call.path.job)
    book = await call.site.figures.alerts(job.id)
    return AlertsAnswer(
        alerts=_sorted([view(job.id, alert) for alert in book.alerts]),
        more=sum(book.more.values()),
        jobs=1,
        jobs_left_out=0,
        unreachable={place.name: place.trouble} if place.trouble else {},
        unchecked=await _unchecked(call.site, [job]),
    )


async def all_alerts(call: Call) -> AlertsAnswer:
    places = await call.site.index.places()
    jobs = [job for place in places for job in place.jobs.values()]
    jobs.sort(key=lambda job: (job.ended_at is not None, -job.started_at))
    chosen = jobs[:MOST_JOBS]
    books = await asyncio.gather(*(call.site.figures.alerts(job.id) for job in chosen))
    found = [view(job.id, alert) for job, book in zip(chosen, books, strict=True) for alert in book.alerts]
    return AlertsAnswer(
        alerts=_sorted(found),
        more=sum(sum(book.more.values()) for book in books),
        jobs=len(chosen),
        jobs_left_out=len(jobs) - len(chosen),
        unreachable={place.name: place.trouble for place in places if place.trouble},
        unchecked=await _unchecked(call.site, chosen),
    )


async def _unchecked(site: Site, jobs: Sequence[Job]) -> dict[str, str]:
    """Without jobs whose frontier is unreachable: nothing is known of them."""
    running = [job for job in jobs if job.ended_at is None and not (await site.index.find(job.id))[0].trouble]
    said = {job.id: unchecked(job, await site.figures.alerts_checked(job.id)) for job in running}
    return {job: text for job, text in said.items() if text}


def view(job: str, alert: Alert) -> AlertView:
    """What is public of an alert."""
    ended = alert.ended_at if alert.state is AlertState.RESOLVED else None
    return AlertView(
        job=job,
        rule=alert.rule,
        alert=title(alert),
        object=alert.object,
        state=alert.state,
        severity=alert.severity,
        text=alert.text,
        next=alert.next,
        since=iso(alert.since),
        fired_at=None if alert.fired_at is None else iso(alert.fired_at),
        ended_at=None if alert.ended_at is None else iso(alert.ended_at),
        lasted=round(max(0.0, (time.time() if ended is None else ended) - alert.since), 1),
    )


def _sorted(alerts: list[AlertView]) -> list[AlertView]:
    newest = sorted(alerts, key=lambda one: one.since, reverse=True)
    return sorted(newest, key=lambda one: one.severity is not Severity.CRITICAL)


ROUTES = (
    Route(
        method="GET",
        path=f"{PREFIX}/jobs/{{job}}/alerts",
        role=Role.VIEW,
        summary="The alerts of a job: pending, firing, and those that ended in the last hour.",
        handler=job_alerts,
        takes=JobPath,
        answer=AlertsAnswer,
    ),
    Route(
        method="GET",
        path=f"{PREFIX}/alerts",
        role=Role.VIEW,
        summary="The alerts of all jobs.",
        handler=all_alerts,
        answer=AlertsAnswer,
    ),
)
