"""Records and visits in PostgreSQL: one row per (site, kind, key), every older version, and one line per visit."""

import logging
import secrets
import time
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import asyncpg

from trotline.adapters.postgres import migrate, schema_admin, sink_statements
from trotline.adapters.postgres.bad_rows import find_faults
from trotline.adapters.postgres.errors import is_of_a_row, plain_errors
from trotline.adapters.postgres.field_order import Fields
from trotline.adapters.postgres.partition_periods import HISTORY
from trotline.adapters.postgres.partitions import Maintained, Partitions
from trotline.adapters.postgres.pool import Connection, Connections
from trotline.adapters.postgres.row_columns import (
    VISIT_TYPES,
    Placed,
    columns_of_rows,
    ledger_lines,
    pieces,
    placed,
    signed,
)
from trotline.adapters.postgres.sink_url import Address, parse
from trotline.adapters.postgres.write_check import in_time, try_write
from trotline.errors import SinkRejects, SinkUnreachable
from trotline.model.record import Record
from trotline.model.record_row import Row
from trotline.model.row_counts import Stored
from trotline.model.schema import Retention, SchemaStatus, SchemaUpgrade
from trotline.model.time import Moment, Seconds
from trotline.model.visit_row import VisitRow

log = logging.getLogger("trotline.postgres")

_LEASED_AT = list(VISIT_TYPES).index("leased_at")
_TOKEN = list(VISIT_TYPES).index("token")
_COUNT_WITHIN: Seconds = 20.0
"""Timeout for counting rows; a larger table is not counted."""
_COUNTS_KEPT: Seconds = 90 * 86400.0


class PreparedBatch(NamedTuple):
    """A batch as it is stored."""

    rows: list[Placed]
    lines: list[tuple[Any, ...]]
    """Of the ledger."""
    job: str
    records: int
    """Of the batch: some may be the same row."""


class PostgresSink:
    """A sink (S1 to S6) and a ledger (V1 to V3); sink_url.py has the options of the URL.

    `job` is stored with the records; by default it is the job of their visits.
    """

    keeps_visits = True

    def __init__(self, url: str | Address, *, job: str = "", started_at: Moment = 0.0) -> None:
        self.address = parse(url) if isinstance(url, str) else url
        self._job = job
        self._started_at = started_at
        self._writer = secrets.token_hex(8)
        self._connections = Connections(self.address)
        self._partitions = Partitions(self._connections, self.address)
        self._history = Partitions(self._connections, self.address, HISTORY)
        self._fields = Fields(self._connections, self.address)
        self._ready = False
        self._upsert = sink_statements.upsert(self.address.quoted, self.address.window)
        self._log = sink_statements.log(self.address.quoted)

    async def open(self) -> None:
        """Connect, and create or check the tables: errors show before any page is fetched."""
        try:
            with plain_errors(self.address, "open"):
                await self._prepare()
        except BaseException:
            # The caller does not close a sink that failed to open.
            await self.close()
            raise

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
        """In one transaction. `SinkRejects` names records that can never be stored: nothing was stored, and the others
        can be."""
        prepared = await self.prepared(batch, visits)
        if prepared.rows or prepared.lines:
            with plain_errors(self.address, used=self._ready):
                await self._store(prepared)

    async def prepared(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> PreparedBatch:
        """The batch as it is stored; its tables and partitions exist. Raises `SinkRejects`, see `write`."""
        rows, rejected = placed(batch)
        if rejected:
            raise SinkRejects(rejected)
        lines = ledger_lines(visits)
        if rows or lines:
            with plain_errors(self.address, used=self._ready):
                await self._prepare()
                await self._fields.remember(batch)
                await self._partitions.cover(line[_LEASED_AT] for line in lines)
        return PreparedBatch(rows, lines, self._job or (visits[0].job if visits else ""), len(batch))

    async def count(self, *, rows: bool = True) -> Stored:
        with plain_errors(self.address, "count rows in"):
            if not self._ready and not await migrate.has_tables(self._connections, self.address):
                return Stored(rows={} if rows else None)
            async with self._connections.transaction(within=_COUNT_WITHIN) as connection:
                asked = sink_statements.counts(self.address.quoted)
                new, changed, again = await connection.fetchrow(asked, self._job, self._started_at)
            kinds = await self._rows_by_kind() if rows else None
        return Stored(new=new, changed=changed, again=again, rows=kinds)

    async def log(self, visits: Sequence[VisitRow]) -> None:
        await self.write((), visits)

    async def story(self, fingerprints: Sequence[int], url: str = "", limit: int = 200) -> list[VisitRow]:
        asked = sink_statements.story(self.address.quoted)
        found = await self._fetch(asked, [signed(each) for each in fingerprints], url, limit)
        return [VisitRow(**line) for line in found]

    async def rows(self, urls: Sequence[str], limit: int = 200) -> list[Row]:
        found = await self._fetch(sink_statements.rows(self.address.quoted), list(urls), limit)
        return [Row(*row) for row in found]

    async def maintain(self, now: Moment) -> None:
        log.info("postgres.maintained %s", await self.renew_partitions(now))

    async def renew_partitions(self, now: Moment) -> Maintained:
        """Create partitions ahead, and retire expired ones and old counts."""
        with plain_errors(self.address, "maintain"):
            await self._prepare()
            maintained = await self._partitions.maintain(now) + await self._history.maintain(now)
            async with self._connections.transaction() as connection:
                await connection.execute(sink_statements.forget_counts(self.address.quoted), now - _COUNTS_KEPT)
            return maintained

    async def upgrade(self) -> SchemaUpgrade:
        """Create or migrate the tables; may be repeated, also while others write."""
        with plain_errors(self.address, "upgrade"):
            return await schema_admin.upgrade(self._connections, self.address)

    async def status(self) -> SchemaStatus:
        with plain_errors(self.address, "read the status of"):
            return await schema_admin.status(self._connections, self.address)

    async def check(self) -> None:
        """Can it be used? Creates nothing."""
        await self.status()
        with plain_errors(self.address, "write to"):
            async with in_time(self.address, SinkUnreachable), self._connections.transaction() as connection:
                await try_write(connection, self.address)

    async def retention(self, now: Moment) -> Retention:
        """What the next maintenance would do. Changes nothing."""
        with plain_errors(self.address, "read the status of"):
            return await schema_admin.retention(self._connections, self.address, now)

    async def finish(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """May be repeated."""
        await self._connections.close()

    async def _fetch(self, question: str, *arguments: Any) -> list[Any]:
        """Reads only: creates no tables."""
        with plain_errors(self.address, "read from"):
            if not self._ready and not await migrate.has_tables(self._connections, self.address):
                return []
            async with self._connections.transaction() as connection:
                found: list[Any] = await connection.fetch(question, *arguments)
        return found

    async def _prepare(self) -> None:
        if self._ready:
            return
        await migrate.prepare(self._connections, self.address)
        try:
            await self._partitions.make_ahead(time.time())
            await self._history.make_ahead(time.time())
        except asyncpg.InsufficientPrivilegeError:
            # Without this privilege it relies on a coordinator that has it; the existing partitions suffice for now.
            log.info("postgres.partitions.not_ours %s", self.address.public)
        self._ready = True

    async def _rows_by_kind(self) -> dict[str, int] | None:
        """None: timeout."""
        try:
            async with self._connections.transaction(within=_COUNT_WITHIN) as connection:
                return dict(await connection.fetch(sink_statements.rows_by_kind(self.address.quoted)))
        except asyncpg.QueryCanceledError:
            return None

    async def _store(self, prepared: PreparedBatch) -> None:
        try:
            await self._put(prepared)
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            if not is_of_a_row(error):
                raise
        else:
            return
        if refused := await self.refused(prepared):
            raise SinkRejects(refused)
        await self._put(await self.with_good_lines(prepared))

    async def _put(self, prepared: PreparedBatch) -> None:
        """One transaction for the whole batch."""
        statements = len(pieces(prepared.rows)) + bool(prepared.lines)
        async with self._connections.transaction(statements=statements) as connection:
            await self.put_with(connection, prepared)

    async def put_with(self, connection: Connection, prepared: PreparedBatch) -> None:
        """In the transaction of a connection."""
        given = self._given(prepared)
        repeats = prepared.records - len(prepared.rows)
        for part in pieces(prepared.rows):
            await connection.execute(self._upsert, *columns_of_rows(part), *given, len(part) + repeats)
            repeats = 0
        if prepared.lines:
            await connection.execute(self._log, *zip(*prepared.lines, strict=True))

    def _given(self, prepared: PreparedBatch) -> tuple[Any, ...]:
        return (prepared.job, self.address.freshness, self._started_at, self._writer)

    def part_of(self, prepared: PreparedBatch, records: Collection[int], tokens: Collection[int]) -> PreparedBatch:
        """Only records at these positions of the batch, and visits with these tokens."""
        rows = [row for row in prepared.rows if row.position in records]
        lines = [line for line in prepared.lines if line[_TOKEN] in tokens]
        return PreparedBatch(rows, lines, prepared.job, len(records))

    async def with_good_lines(self, prepared: PreparedBatch) -> PreparedBatch:
        return prepared._replace(lines=await self._good_lines(prepared.lines))

    async def refused(self, prepared: PreparedBatch) -> dict[int, str]:
        """The rows that can never be stored: positions of their records in the batch, and the reasons."""
        parts = pieces(prepared.rows)
        others = (*self._given(prepared), prepared.records)
        faults = await find_faults(self._connections, self._upsert, [columns_of_rows(part) for part in parts], others)
        return {
            part[place].position: why for part, found in zip(parts, faults, strict=True) for place, why in found.items()
        }

    async def _good_lines(self, lines: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """One of them was rejected: because its partition was just retired, or else it is left out, so that no records
        are lost."""
        if not lines:
            return lines
        self._partitions.forget()
        await self._partitions.cover(line[_LEASED_AT] for line in lines)
        [faults] = await find_faults(self._connections, self._log, [list(zip(*lines, strict=True))])
        for place, why in faults.items():
            log.warning("postgres.visit.refused job=%s token=%s %s", *lines[place][:2], why)
        return [line for place, line in enumerate(lines) if place not in faults]
