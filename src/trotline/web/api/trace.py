"""What became of a URL."""

import asyncio
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from trotline.commands.trace import ledger_at, routes_seen, scrapy_numbers, trace
from trotline.commands.trace_facts import facts_of
from trotline.model.job import Job
from trotline.model.time import Seconds
from trotline.rules import redaction
from trotline.rules.url_history import Facts
from trotline.web.api.types import JobPath, Url
from trotline.web.errors import Refused
from trotline.web.openapi import PREFIX
from trotline.web.route_table import Call, Role, Route

TRACE_WITHIN: Seconds = 30.0


class TraceQuery(msgspec.Struct, frozen=True):
    url: Url
    alone: bool = True
    """Only visits of this job; else also those of the spider's other jobs."""
    limit: Annotated[int, Meta(ge=1, le=200)] = 20
    """Visits, the newest."""


class TraceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """As `trotline trace --json`."""

    url: str
    same_as: str
    job: str
    spider: str
    fate: str
    why: str
    refusal: str
    """Why the spider would not follow it; empty: it would, or its code is not known here."""
    rule: str
    identities: list[dict[str, Any]]
    visits: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    rejected: list[dict[str, Any]]
    lane: dict[str, Any] | None
    workers: int
    state: str
    visits_kept: bool
    """The sink keeps visits; else only the present state is known."""
    spider_known: bool
    """The spider's code is known here: its routes, and whether it would follow the URL."""


class Traced(NamedTuple):
    job: Job
    facts: Facts
    visits_kept: bool
    spider_known: bool


async def look_up(call: Call, url: str, *, alone: bool, limit: int) -> Traced:
    """For the API and for the page."""
    site = call.site
    if "://" not in url:
        raise Refused(400, "this is not a web address", hint="It begins with https:// or http://")
    _, job = await site.index.find(call.path.job)
    # The ledger knows URLs without their secrets: ours must lose the same ones to be found there.
    redaction.hide_keys(job.rules.redact)
    spider = site.spiders.known(job.spider)
    sink = site.plan.settings.sink_of(job.spider)
    async with site.index.opened(job.id) as opened, ledger_at(sink) as ledger, asyncio.timeout(TRACE_WITHIN):
        known = () if spider is not None else await routes_seen(job, opened.console)
        more = await scrapy_numbers(url, job, opened.console)
        facts = await trace(
            url, job.id, opened.console, ledger, spider, routes=known, numbers=more, alone=alone, limit=limit
        )
    return Traced(job, facts, ledger is not None, spider is not None)


async def trace_url(call: Call) -> TraceAnswer:
    asked: TraceQuery = call.query
    traced = await look_up(call, asked.url, alone=asked.alone, limit=asked.limit)
    found = msgspec.to_builtins(facts_of(traced.facts, traced.job))
    kept = {"visits_kept": traced.visits_kept, "spider_known": traced.spider_known}
    return msgspec.convert({**found, **kept}, TraceAnswer)


ROUTES = (
    Route(
        method="GET",
        path=f"{PREFIX}/jobs/{{job}}/trace",
        role=Role.VIEW,
        summary="The history of a URL: where it was found, each visit, what was stored, its state now.",
        handler=trace_url,
        takes=JobPath,
        query=TraceQuery,
        answer=TraceAnswer,
    ),
)
