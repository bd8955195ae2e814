"""Stored records, as a file."""

from typing import Literal

import msgspec
from aiohttp import web

from trotline.commands.export import Wanted
from trotline.config import backends
from trotline.config.settings import file_name
from trotline.config.urls import shown
from trotline.model.job import Job
from trotline.web.api.types import JobPath, Name
from trotline.web.downloads import MOST_ROWS
from trotline.web.errors import Refused
from trotline.web.openapi import PREFIX
from trotline.web.route_table import Call, Role, Route


class DownloadQuery(msgspec.Struct, frozen=True):
    format: Literal["jsonl", "csv", "parquet"] = "jsonl"
    kind: Name | None = None
    site: Name | None = None
    envelope: bool = False
    """Add _site, _kind, _key, _url and _seen_at."""
    all: bool = False
    """All records of the spider's sink; else those that were seen during the job."""


async def sink_of(call: Call) -> tuple[Job, str]:
    """The job and its sink; 404 if there is none."""
    _, job = await call.site.index.find(call.path.job)
    sink = call.site.plan.settings.sink_of(job.spider)
    if backends.is_missing(sink):
        raise Refused(
            404,
            f"there are no records of {job.id} in {shown(sink)}",
            hint="Where are they? trotline web --sink URL, as in the run.",
        )
    return job, sink


async def download(call: Call) -> web.StreamResponse:
    asked: DownloadQuery = call.query
    job, sink = await sink_of(call)
    wanted = Wanted(
        form=asked.format,
        kind=asked.kind,
        site=asked.site,
        since=0.0 if asked.all else job.started_at,
        until=float("inf") if asked.all or job.finished_at is None else job.finished_at,
        envelope=asked.envelope,
    )
    return await call.site.downloads.send(call.request, sink, wanted, file_name(job.id), MOST_ROWS)


ROUTES = (
    Route(
        method="GET",
        path=f"{PREFIX}/jobs/{{job}}/records/download",
        role=Role.VIEW,
        summary="The records as a file; at most 1,000,000 rows, and the answer says if there are more.",
        handler=download,
        takes=JobPath,
        query=DownloadQuery,
        media="application/octet-stream",
    ),
)
