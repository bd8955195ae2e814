"""Stored records: by kind, by the beginning of their key or URL, page by page; and as a file."""

import asyncio
import json
from typing import Annotated, Any

import msgspec
from aiohttp import web
from msgspec import Meta

from trotline.commands.export import kinds
from trotline.config import backends
from trotline.config.backend_urls import shown
from trotline.errors import SettingsError
from trotline.model.record_row import Row, RowPage
from trotline.rules import redaction
from trotline.rules.field_coverage import is_empty
from trotline.web.api.records import sink_of
from trotline.web.api.types import Name
from trotline.web.errors import Refused
from trotline.web.jobs_index import WITHIN
from trotline.web.pages import formatting
from trotline.web.pages.page_frame import PageQuery, framed, job_page
from trotline.web.route_table import Call

_ROWS = 50
_COLUMNS = 6
"""Fields that are columns; all are in the details of a record."""
_KINDS = 30
_AT_ONCE = 200
_LOOKED_THROUGH = 5_000
"""Records among which those without a field are looked for, for one page."""


class RecordsQuery(PageQuery, frozen=True):
    kind: Name = ""
    prefix: Annotated[str, Meta(max_length=2000)] = ""
    after: Annotated[str, Meta(max_length=4000)] = ""
    lacks: Name = ""
    """Only records in which this field is empty, or missing."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One record."""

    kind: str
    key: str
    url: str
    seen: str
    cells: list[str | None]
    """None: it has no such field, or an empty one."""
    data: str
    """All of it, as JSON text."""


async def page(call: Call) -> web.Response:
    asked: RecordsQuery = call.query
    _, frame = await framed(call, "records")
    empty: dict[str, Any] = {
        "kinds": {},
        "rows": [],
        "columns": [],
        "next": "",
        "trouble": "",
        "hint": "",
        "sink": "",
        "looked": 0,
    }
    given = {"kind": asked.kind, "prefix": asked.prefix, "after": asked.after, "lacks": asked.lacks}
    try:
        _, sink = await sink_of(call)
        found = await _found(sink, asked)
    except (Refused, SettingsError) as error:
        # No sink here, or one that is only written: the page says where records are then.
        found = {"trouble": error.what, "hint": error.hint}
    return call.site.pages.page("records.html", call.who, **frame, **(empty | given | found))


async def _found(sink: str, asked: RecordsQuery) -> dict[str, Any]:
    async with asyncio.timeout(WITHIN * 2):
        counts = await asyncio.to_thread(kinds, sink)
        portion, looked = await _portion(sink, asked)
    fields = [row.fields() for row in portion.rows]
    columns = list(dict.fromkeys([*filter(None, [asked.lacks]), *(name for one in fields for name in one)]))[:_COLUMNS]
    return {
        "kinds": dict(list(counts.items())[:_KINDS]),
        "rows": [_shown(row, one, columns) for row, one in zip(portion.rows, fields, strict=True)],
        "columns": columns,
        "next": portion.after,
        "looked": looked,
        "sink": shown(sink),
    }


async def _portion(sink: str, asked: RecordsQuery) -> tuple[RowPage, int]:
    """Up to a page of records, and how many were looked through. Sinks cannot search by fields."""
    if not asked.lacks:
        found = await backends.row_page(sink, asked.kind or None, asked.prefix, asked.after, _ROWS)
        return found, len(found.rows)
    rows: list[Row] = []
    after, looked = asked.after, 0
    while len(rows) < _ROWS and looked < _LOOKED_THROUGH:
        portion = await backends.row_page(sink, asked.kind or None, asked.prefix, after, _AT_ONCE)
        rows += [row for row in portion.rows if is_empty(row.fields().get(asked.lacks))]
        after, looked = portion.after, looked + len(portion.rows)
        if not after:
            break
    return RowPage(rows=rows, after=after), looked


def _shown(row: Row, fields: dict[str, Any], columns: list[str]) -> Shown:
    return Shown(
        kind=row.kind,
        key=row.key,
        url=redaction.url(row.url),
        seen=formatting.moment(row.seen_at),
        cells=[_cell(fields.get(name)) for name in columns],
        data=json.dumps(fields, ensure_ascii=False, indent=2),
    )


def _cell(value: Any) -> str | None:
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


ROUTES = (job_page("/records", "Stored records.", page, RecordsQuery),)
