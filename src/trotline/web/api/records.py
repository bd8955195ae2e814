"""Stored records: in pages, and as a file."""

import asyncio
from typing import Annotated, Any, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from trotline.commands.export import Wanted
from trotline.config import backends
from trotline.config.backend_urls import public, shown
from trotline.config.settings import file_name
from trotline.model.job import Job
from trotline.model.record_row import Row
from trotline.model.time import Seconds, iso
from trotline.web.api.types import JobPath, Limit, Name
from trotline.web.downloads import MEDIA, MOST_ROWS
from trotline.web.errors import Refused
from trotline.web.openapi import PREFIX
from trotline.web.route_table import Call, Role, Route

PAGE_WITHIN: Seconds = 30.0
Prefix = Annotated[str, Meta(max_length=2000)]
After = Annotated[str, Meta(max_length=10_000)]


class RecordsQuery(msgspec.Struct, frozen=True):
    kind: Name | None = None
    prefix: Prefix = ""
    """Only rows whose key or URL starts like this."""
    after: After = ""
    """`next` of the page before."""
    limit: Limit = 50


class RecordRow(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    kind: str
    key: str
    url: str
    """Without user name, password and the values of secret parameters."""
    seen_at: str
    data: Any
    """The record."""


class RecordsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    sink: str
    """Where they are. It has the records of all jobs of the spider."""
    kinds: dict[str, int]
    """Rows by kind; empty: there are none, or the sink cannot say."""
    counted_ago: Seconds
    """Seconds since they were counted."""
    records: list[RecordRow]
    """In the order of the sink. A page may have fewer than `limit` rows, even none, before the end."""
    next: str
    """The next page: after=...; empty: this was the last one."""


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


async def records(call: Call) -> RecordsAnswer:
    asked: RecordsQuery = call.query
    job, sink = await sink_of(call)
    async with asyncio.timeout(PAGE_WITHIN):
        page = await backends.row_page(sink, asked.kind, asked.prefix, asked.after, asked.limit)
        counted = await call.site.row_counts.of(sink)
    return RecordsAnswer(
        job=job.id,
        sink=shown(sink),
        kinds=counted.rows,
        counted_ago=counted.age,
        records=[record_row(row) for row in page.rows],
        next=page.after,
    )


def record_row(row: Row) -> RecordRow:
    return RecordRow(
        site=row.site, kind=row.kind, key=row.key, url=public(row.url), seen_at=iso(row.seen_at), data=row.fields()
    )


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
        path=f"{PREFIX}/jobs/{{job}}/records",
        role=Role.VIEW,
        summary="Stored records of the job's spider, by kind, and by the start of their key or URL.",
        handler=records,
        takes=JobPath,
        query=RecordsQuery,
        answer=RecordsAnswer,
    ),
    Route(
        method="GET",
        path=f"{PREFIX}/jobs/{{job}}/records/download",
        role=Role.VIEW,
        summary="The records as a file; at most 1,000,000 rows, and the answer says if there are more.",
        handler=download,
        takes=JobPath,
        query=DownloadQuery,
        media=MEDIA["jsonl"],
        other_media=(MEDIA["csv"], MEDIA["parquet"]),
    ),
)
