"""Tasks in bulk: JSON lines in, one answer with every bad line's number."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from trotline.commands.input_lines import lines_of
from trotline.commands.push import BadLine, Pushed, PushPlan, push
from trotline.model.time import Seconds
from trotline.rules import redaction
from trotline.rules.refusal_words import plain
from trotline.web.api.types import JobPath, Name
from trotline.web.errors import Refused
from trotline.web.openapi import PREFIX
from trotline.web.route_table import NDJSON, Call, Role, Route

LONGEST_LINE = 1 << 16
"""Bytes."""
SILENT: Seconds = 30.0
"""A client that sends nothing for so long is not waited for."""
MOST_BAD = 100_000
"""Bad lines after which the rest is not read: it is another format."""
_IN_MEMORY = 1 << 20


class TasksQuery(msgspec.Struct, frozen=True):
    route: Name | None = None
    """Of lines that name none; the spider's first, if it is left out."""
    priority: Annotated[int, Meta(ge=-(2**31), le=2**31)] | None = None
    """Of lines that name none; the route's, if it is left out."""


class _Bad(Exception):
    """There are more bad lines than are kept."""


class _Report:
    """Bad lines in a temporary file: they are sent when all lines were read. A client that does not read while it
    sends would wait for us, and we for it."""

    def __init__(self) -> None:
        self.file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by `add`
        self.number = 0

    def add(self, bad: BadLine) -> None:
        self.number += 1
        if self.number > MOST_BAD:
            raise _Bad
        why = plain(redaction.text(bad.why)[:300])
        self.file.write(msgspec.json.encode({"line": bad.number, "why": why}) + b"\n")


async def add(call: Call) -> web.StreamResponse:
    """Every line that can be a task becomes one; the last line of the answer has the totals."""
    if call.request.content_type != NDJSON:
        raise Refused(415, f"the body is {call.request.content_type}", hint=f"Send JSON lines as {NDJSON}.")
    place, job = await call.site.index.find(call.path.job)
    _, spider = call.site.spiders.find(job.spider)
    plan = PushPlan(
        frontier=place.url, job=job.id, route=call.query.route, priority=call.query.priority, pools=call.site.plan.pools
    )
    report, pushed, complaint = _Report(), Pushed(job=job.id), ""

    def show(now: Pushed) -> None:
        nonlocal pushed
        pushed = now

    with report.file:
        try:
            pushed = await push(plan, spider, report.add, show, lines_of(_pieces(call.request), LONGEST_LINE))
        except _Bad:
            complaint = f"more than {MOST_BAD:,} bad lines; what follows was not read"
        except TimeoutError:
            complaint = f"nothing came for {SILENT:g} s; what follows was not read"
        call.site.snapshots.forget(job.id)
        return await _answer(call.request, report, pushed, complaint)


async def _pieces(request: web.Request) -> AsyncIterator[bytes]:
    while True:
        async with asyncio.timeout(SILENT):
            piece = await request.content.readany()
        if not piece:
            return
        yield piece


async def _answer(request: web.Request, report: _Report, pushed: Pushed, complaint: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": NDJSON})
    if complaint:
        response.force_close()
    await response.prepare(request)
    report.file.seek(0)
    while piece := report.file.read(LONGEST_LINE):
        await response.write(piece)
    totals = {name: getattr(pushed, name) for name in ("job", "lines", "new", "duplicate")}
    await response.write(msgspec.json.encode({**totals, "bad": report.number, "stopped": complaint}) + b"\n")
    await response.write_eof()
    return response


ROUTES = (
    Route(
        method="POST",
        path=f"{PREFIX}/jobs/{{job}}/tasks",
        role=Role.OPERATE,
        summary="Add tasks: a URL or a JSON object a line. Answers bad lines with their numbers, then the totals.",
        handler=add,
        takes=JobPath,
        query=TasksQuery,
        body_media=NDJSON,
        media=NDJSON,
    ),
)
