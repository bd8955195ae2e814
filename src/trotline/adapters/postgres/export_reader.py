"""Reads rows for exports, by synchronous iteration."""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import msgspec

from trotline.adapters.postgres import migrate, sink_statements
from trotline.adapters.postgres.errors import plain_errors
from trotline.adapters.postgres.pool import Connection, dial, end
from trotline.adapters.postgres.sink_url import Address, parse
from trotline.errors import SinkUnreachable
from trotline.model.record_row import Row

T = TypeVar("T")
_AT_ONCE = 1000
_COUNT_WITHIN = 20
_FETCH_WITHIN = 1800
"""Seconds for some rows: the first ones of a large table are there when it is sorted. A reader that was given up, as by
a browser that left, does not keep the server busy for ever."""
_COUNTS_SINCE = 3
"""The migration that created row_counts: older schemas do not say which jobs wrote."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _SyncRunner:
    """Runs coroutines for synchronous callers: in a thread of its own, as the caller may be inside an event loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="trotline-reading")
        self._runner = asyncio.Runner()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._thread.submit(self._runner.run, coroutine).result()

    def close(self) -> None:
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()


class FieldOrder:
    """The order in which spiders gave the fields of each kind; jsonb has its own."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._orders: dict[str, list[str]] = {}
        for kind, name in names:
            self._orders.setdefault(kind, []).append(name)

    @classmethod
    async def read(cls, connection: Connection, address: Address) -> Self:
        return cls(await connection.fetch(f"SELECT kind, name FROM {address.quoted}.fields ORDER BY number"))

    def sorted(self, row: Row) -> Row:
        data = _decode(row.data)
        ordered = {name: data.pop(name) for name in self._orders.get(row.kind, ()) if name in data}
        return row._replace(data=_encode({**ordered, **data}).decode())


class Snapshot:
    """A snapshot of the rows, in the order they were first seen. Can be iterated more than once."""

    def __init__(
        self, runner: _SyncRunner, connection: Connection, address: Address, chosen: tuple[str | None, ...]
    ) -> None:
        self._runner = runner
        self._connection = connection
        self._address = address
        self._schema = address.quoted
        self._chosen = chosen
        self._order = runner.run(FieldOrder.read(connection, address))

    def __iter__(self) -> Iterator[Row]:
        cursor = self._runner.run(self._cursor())
        while rows := self._runner.run(cursor.fetch(_AT_ONCE)):
            for row in rows:
                yield self._order.sorted(Row(*row))

    def counts(self) -> dict[str, int]:
        """Rows by kind, without the filters; raises if counting takes too long."""
        self._runner.run(self._connection.execute(f"SET LOCAL statement_timeout = {_COUNT_WITHIN * 1000}"))
        return dict(self._runner.run(self._connection.fetch(sink_statements.rows_by_kind(self._schema))))

    def jobs(self) -> set[str]:
        """The jobs that have stored rows or visits, as far as retention has kept their lines."""
        if self._runner.run(migrate.version(self._connection, self._address)) < _COUNTS_SINCE:
            return set()
        return {job for (job,) in self._runner.run(self._connection.fetch(sink_statements.writing_jobs(self._schema)))}

    async def _cursor(self) -> Any:
        return await self._connection.cursor(
            "SELECT site, kind, key, url, extract(epoch FROM seen_at)::float8, data::text"
            f" FROM {self._schema}.records WHERE kind = coalesce($1, kind) AND site = coalesce($2, site)"
            " ORDER BY first_seen_at, site, kind, key",
            *self._chosen,
        )


@contextmanager
def snapshot(url: str, kind: str | None = None, site: str | None = None) -> Iterator[Snapshot]:
    """Read-only, also while a crawl writes."""
    address = parse(url)
    runner = _SyncRunner()
    try:
        with plain_errors(address, "read rows from"):
            connection = runner.run(_connect(address))
            try:
                yield Snapshot(runner, connection, address, (kind, site))
            finally:
                runner.run(end(connection))
    finally:
        runner.close()


def read_records(url: str, kind: str | None = None, site: str | None = None) -> Iterator[Row]:
    """The rows, once."""
    with snapshot(url, kind, site) as rows:
        yield from rows


def count_records(url: str) -> dict[str, int]:
    with snapshot(url) as rows:
        return rows.counts()


def writing_jobs(url: str) -> set[str]:
    with snapshot(url) as rows:
        return rows.jobs()


def no_tables(address: Address) -> SinkUnreachable:
    return SinkUnreachable(
        f"there are no rows in {address.public}: it has no tables in schema {address.schema!r}",
        hint="Run the spider first, or name the schema that it writes to: ?schema=NAME",
    )


async def _connect(address: Address) -> Connection:
    connection = await dial(address, "trotline export")
    try:
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        await connection.execute(f"SET LOCAL statement_timeout = {_FETCH_WITHIN * 1000}")
        if not await migrate.version(connection, address):
            raise no_tables(address)
    except BaseException:
        await end(connection)
        raise
    return connection
