"""The jobs, and one of them."""

import asyncio

import msgspec

from trotline.model.time import Seconds
from trotline.web.api.types import JobPath, Limit, Name
from trotline.web.job_views import JobView
from trotline.web.openapi import PREFIX
from trotline.web.route_table import Call, Role, Route
from trotline.web.server_state import Site


class JobsQuery(msgspec.Struct, frozen=True):
    spider: Name = ""
    unfinished: bool = False
    limit: Limit = 30
    """The newest."""


class PlaceView(msgspec.Struct, frozen=True, kw_only=True):
    frontier: str
    jobs: int
    unreadable: tuple[str, ...] = ()
    """Jobs whose entries are damaged."""
    age: Seconds | None = None
    """Seconds since its list of jobs was read; null: never."""
    unreachable: str = ""


class JobsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    jobs: list[JobView]
    """The newest first."""
    more: int
    """Jobs that fit and are not listed: raise `limit`."""
    places: list[PlaceView]
    """The frontiers that this server shows."""


async def jobs(call: Call) -> JobsAnswer:
    return await list_jobs(call.site, call.query)


async def list_jobs(site: Site, asked: JobsQuery) -> JobsAnswer:
    places = await site.index.places()
    fit = [
        (place, job)
        for place in places
        for job in place.jobs.values()
        if asked.spider in ("", job.spider) and not (asked.unfinished and job.finished_at is not None)
    ]
    fit.sort(key=lambda one: -one[1].started_at)
    looks = await asyncio.gather(*(site.snapshots.look(place, job) for place, job in fit[: asked.limit]))
    return JobsAnswer(
        jobs=[look.view for look in looks],
        more=max(0, len(fit) - asked.limit),
        places=[
            PlaceView(
                frontier=place.name,
                jobs=len(place.jobs),
                unreadable=place.unreadable,
                age=site.index.age(place),
                unreachable=place.trouble,
            )
            for place in places
        ],
    )


async def job(call: Call) -> JobView:
    return (await call.site.snapshots.of(call.path.job)).view


ROUTES = (
    Route(
        method="GET",
        path=f"{PREFIX}/jobs",
        role=Role.VIEW,
        summary="The jobs, the newest first.",
        handler=jobs,
        query=JobsQuery,
        answer=JobsAnswer,
    ),
    Route(
        method="GET",
        path=f"{PREFIX}/jobs/{{job}}",
        role=Role.VIEW,
        summary="One job: how far it is.",
        handler=job,
        takes=JobPath,
        answer=JobView,
    ),
)
