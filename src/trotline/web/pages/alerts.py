"""The alerts of all jobs: what fires, what may fire soon, and what is over."""

import asyncio

import msgspec
from aiohttp import web

from trotline.model.alert import Alert, AlertState, Severity
from trotline.web.openapi import PREFIX
from trotline.web.pages.frame import PageQuery
from trotline.web.route_table import HTML, Call, Role, Route

_JOBS = 100
"""The newest, with those under way before all others."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    alert: Alert


async def page(call: Call) -> web.Response:
    places = await call.site.index.places()
    jobs = [job for place in places for job in place.jobs.values()]
    jobs.sort(key=lambda job: (job.ended_at is not None, -job.started_at))
    books = await asyncio.gather(*(call.site.figures.alerts(job.id) for job in jobs[:_JOBS]))
    entries = [Entry(job=job.id, alert=alert) for job, book in zip(jobs, books, strict=False) for alert in book.alerts]
    entries.sort(key=lambda one: (one.alert.severity != Severity.CRITICAL, -one.alert.since))
    groups = {state.value: [one for one in entries if one.alert.state is state] for state in AlertState}
    return call.site.pages.page(
        "alerts.html",
        call.who,
        here="alerts",
        stream=f"{PREFIX}/events",
        groups=groups,
        more=sum(sum(book.more.values()) for book in books),
        jobs=min(len(jobs), _JOBS),
        others=max(0, len(jobs) - _JOBS),
        troubles=[(place.name, place.trouble) for place in places if place.trouble],
    )


ROUTES = (
    Route(
        method="GET",
        path="/alerts",
        role=Role.VIEW,
        summary="The alerts of all jobs.",
        handler=page,
        query=PageQuery,
        media=HTML,
    ),
)
