"""Streams for pages: the newest snapshot each second, if it changed."""

import msgspec
from aiohttp import web

from trotline.rules.job_figures import Figures
from trotline.web.api.jobs import JobsAnswer, JobsQuery, list_jobs
from trotline.web.api.types import JobPath
from trotline.web.job_views import JobView
from trotline.web.openapi import PREFIX
from trotline.web.route_table import SSE, Call, Role, Route


class JobEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Data of an event `snapshot` of a job's stream."""

    job: JobView
    figures: Figures | None
    """null: unknown."""


async def job_events(call: Call) -> web.StreamResponse:
    name: str = call.path.job
    # 404 before the stream begins.
    await call.site.index.find(name)

    async def compute() -> JobEvent:
        look = await call.site.snapshots.of(name)
        return JobEvent(job=look.view, figures=look.figures)

    return await call.site.feeds.stream(call, f"job {name}", compute)


async def events(call: Call) -> web.StreamResponse:
    async def compute() -> JobsAnswer:
        return await list_jobs(call.site, JobsQuery())

    return await call.site.feeds.stream(call, "jobs", compute)


ROUTES = (
    Route(
        method="GET",
        path=f"{PREFIX}/events",
        role=Role.VIEW,
        summary="Server-sent events: the newest jobs, each second if they changed.",
        handler=events,
        media=SSE,
        errors=(429, 503),
    ),
    Route(
        method="GET",
        path=f"{PREFIX}/jobs/{{job}}/events",
        role=Role.VIEW,
        summary="Server-sent events: the job's figures, each second if they changed.",
        handler=job_events,
        takes=JobPath,
        media=SSE,
        errors=(429, 503),
    ),
)
