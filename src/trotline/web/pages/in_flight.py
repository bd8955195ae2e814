"""What is under way: the longest first."""

from datetime import datetime
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from trotline.commands.proxies_list import MemberNames
from trotline.model.proxy_pool import pool_of
from trotline.web.api import progress as api
from trotline.web.api.types import Limit, Name
from trotline.web.pages import formatting
from trotline.web.pages.page_frame import PageQuery, framed, job_page
from trotline.web.pages.pools import book_of
from trotline.web.route_table import Call

_LOOKED_AT = 1000
"""Leases among which those of one worker or lane are looked for."""


class InFlightQuery(PageQuery, frozen=True):
    limit: Limit = 100
    worker: Name = ""
    lane: Annotated[str, Meta(max_length=300)] = ""


async def page(call: Call) -> web.Response:
    asked: InFlightQuery = call.query
    _, frame = await framed(call, "in-flight")
    narrow = bool(asked.worker or asked.lane)
    wanted = api.InFlightQuery(limit=_LOOKED_AT if narrow else asked.limit)
    found = await api.in_flight(msgspec.structs.replace(call, query=wanted))
    rows = [row for row in found.leases if asked.worker in ("", row.worker) and asked.lane in ("", row.lane)]
    names = MemberNames(book_of(call.site.plan.settings))
    return call.site.pages.page(
        "in_flight.html",
        call.who,
        **frame,
        leased=found.leased,
        rows=[(row, _phase(row), _proxy(row, names)) for row in rows[: asked.limit]],
        more=max(0, found.leased - len(found.leases)) if not narrow else max(0, len(rows) - asked.limit),
        next_limit=min(1000, asked.limit * 4),
        worker=asked.worker,
        lane=asked.lane,
    )


def _phase(row: api.InFlightRow) -> str:
    """A lease may come some moments before its start: the pace of its lane or proxy."""
    if row.leased_at is None or row.starts_at is None or row.for_seconds is None:
        return formatting.UNKNOWN
    early = (datetime.fromisoformat(row.starts_at) - datetime.fromisoformat(row.leased_at)).total_seconds()
    return "waits for its start" if row.for_seconds < early else "visiting"


def _proxy(row: api.InFlightRow, names: MemberNames) -> str:
    if not row.member:
        return "direct"
    return names.name(pool_of(row.lane), int(row.member, 16))


ROUTES = (job_page("/in-flight", "The leases under way.", page, InFlightQuery),)
