"""Records, their history and visits in PostgreSQL."""

import shlex
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from trotline.model.row import Row, RowPage
from trotline.model.schema import SchemaStatus, SchemaUpgrade
from trotline.model.server_load import ServerLoad
from trotline.model.time import Moment
from trotline.ports.backend import Backend, RowReader, SchemaAdmin, SinkOffer
from trotline.ports.ledger import Ledger
from trotline.ports.sink import Sink
from trotline.rules.backend_urls import server_url

if TYPE_CHECKING:
    from trotline.adapters.postgres.sink import PostgresSink


def _open(url: str, job: str = "", started_at: Moment = 0.0) -> "PostgresSink":
    from trotline.adapters.postgres.sink import PostgresSink

    return PostgresSink(url, job=job, started_at=started_at)


def _sink(url: str, job: str, started_at: Moment) -> Sink:
    return _open(url, job, started_at)


def _ledger(url: str) -> Ledger:
    return _open(url)


async def _status(url: str) -> SchemaStatus:
    sink = _open(url)
    try:
        return await sink.status()
    finally:
        await sink.close()


async def _upgrade(url: str) -> SchemaUpgrade:
    sink = _open(url)
    try:
        return await sink.upgrade()
    finally:
        await sink.close()


async def _load(url: str) -> ServerLoad:
    from trotline.adapters.postgres.load import load

    return await load(url)


def _snapshot(url: str, kind: str | None, site: str | None) -> AbstractContextManager[Iterable[Row]]:
    from trotline.adapters.postgres.export_reader import snapshot

    return snapshot(url, kind, site)


def _count(url: str) -> dict[str, int]:
    from trotline.adapters.postgres.export_reader import count_records

    return count_records(url)


def _page(url: str, kind: str | None, prefix: str, after: str, limit: int) -> Awaitable[RowPage]:
    from trotline.adapters.postgres.row_pages import page

    return page(url, kind, prefix, after, limit)


def _look(url: str, kinds: Mapping[str, int]) -> str:
    # Without our own options, which psql does not know.
    place, _, options = url.partition("?")
    schema = dict(parse_qsl(options)).get("schema", "trotline")
    query = f"select kind, key, data from {schema}.records limit 5"
    return f"psql {shlex.quote(place)} -c {shlex.quote(query)}"


def _table(url: str, table: str) -> AsyncIterator[dict[str, Any]]:
    from trotline.adapters.postgres.table_reader import rows

    return rows(url, table)


BACKEND = Backend(
    name="postgres",
    schemes=("postgresql", "postgres"),
    local=False,
    extra="postgres",
    sink=SinkOffer(
        forms=("postgresql://HOST/DATABASE",),
        parse=server_url,
        open=_sink,
        # `open` would create the tables.
        check=_status,
        look=_look,
        ledger=_ledger,
        rows=RowReader(snapshot=_snapshot, count=_count, page=_page),
        schema=SchemaAdmin(status=_status, upgrade=_upgrade),
        load=_load,
    ),
    table=_table,
)
