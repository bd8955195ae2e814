"""Records in an SQLite file: the newest version per (site, kind, key), older versions, and visits."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec

from trotline.adapters import row_counts
from trotline.adapters.replaced_file_check import Presence, rows_gone
from trotline.adapters.sink_file_errors import plain_errors
from trotline.adapters.sqlite import ledger
from trotline.adapters.sqlite.sink_file import connect, count_records, prepare, read_records, snapshot
from trotline.adapters.sqlite.sink_sql_views import MOST_COLUMNS, view_name, view_sql
from trotline.model.record import Record
from trotline.model.record_row import Row, whole
from trotline.model.row_counts import Stored
from trotline.model.time import Moment, Seconds
from trotline.model.visit_row import VisitRow
from trotline.rules.storable_rows import newest_rows

__all__ = ["SqliteSink", "count_records", "read_records", "snapshot"]

T = TypeVar("T")

_HEAD = "INSERT INTO records (site, kind, key, url, seen_at, first_seen_at, changed_at, data) VALUES "
_TAIL = """ ON CONFLICT (site, kind, key) DO UPDATE SET
    url = excluded.url, seen_at = excluded.seen_at, data = excluded.data,
    changed_at = CASE WHEN data <> excluded.data THEN excluded.seen_at ELSE changed_at END,
    changes = changes + (data <> excluded.data)
    WHERE excluded.seen_at > seen_at OR (excluded.seen_at = seen_at AND excluded.data <> data)"""
_LAST = "SELECT (SELECT coalesce(max(rowid), 0) FROM records), (SELECT coalesce(max(rowid), 0) FROM history)"
"""The last row ids of records and history: within a transaction they grow by the number of inserts."""
_COUNT = "SELECT kind, count(*) FROM records GROUP BY kind ORDER BY min(rowid)"
_AT_ONCE = 64
_MOST_SHAPES = 4096


class SqliteSink:
    """Writes to the file at `path`, which several processes may share. `finish` creates the views.

    SQLite runs in a thread of the sink's own, so that an fsync never blocks the event loop; with `inline` in the
    caller's thread, for deterministic simulations. Also a Ledger; with `visits=False` it stores no new ones. `job` and
    `started_at`: the job that the records are counted for.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        job: str = "",
        started_at: Moment = 0.0,
        patience: Seconds = 30.0,
        inline: bool = False,
        visits: bool = True,
    ) -> None:
        self.path = Path(path)
        self._job = (job, started_at)
        self.keeps_visits = visits
        self._patience = patience
        self._thread = None if inline else ThreadPoolExecutor(1, thread_name_prefix="trotline-sink")
        self._connection: sqlite3.Connection | None = None
        self._presence = Presence(path, rows_gone)
        self._shapes: set[tuple[str, ...]] = set()
        self._closed = False

    async def open(self) -> None:
        """Open or create the file before the first write: errors show before any page is fetched."""
        await self._do(self._opened)

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
        kept = visits if self.keeps_visits else ()
        if batch or kept:
            await self._do(lambda: self._write(batch, kept))

    async def count(self, *, rows: bool = True) -> Stored:
        return await self._do(lambda: self._count(rows=rows))

    async def log(self, visits: Sequence[VisitRow]) -> None:
        await self.write((), visits)

    async def story(self, fingerprints: Sequence[int], url: str = "", limit: int = 200) -> list[VisitRow]:
        return await self._do(lambda: ledger.story(self._opened(), fingerprints, url, limit))

    async def rows(self, urls: Sequence[str], limit: int = 200) -> list[Row]:
        return await self._do(lambda: ledger.rows(self._opened(), urls, limit))

    async def finish(self) -> None:
        """Refresh the views and checkpoint the WAL. May be repeated."""
        await self._do(self._finish)

    async def maintain(self, now: Moment) -> None:
        """Nothing to do: a file of rows needs no housekeeping."""

    async def close(self) -> None:
        """Close without `finish`. May be repeated."""
        if self._closed:
            return
        self._closed = True
        await self._do(self._let_go)
        if self._thread is not None:
            self._thread.shutdown(wait=False)

    async def _do(self, operation: Callable[[], T]) -> T:
        if self._thread is None:
            return self._guarded(operation)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._guarded, operation)

    def _guarded(self, operation: Callable[[], T]) -> T:
        try:
            with plain_errors(self.path):
                return operation()
        except BaseException:
            # The connection may be inside a transaction: the next operation uses a new one.
            self._let_go()
            raise

    def _opened(self) -> sqlite3.Connection:
        # Before a new connection, too: it would create the file again.
        self._presence.check()
        if self._connection is None:
            self._connection = connect(self.path, self._patience)
            prepare(self._connection, self.path)
            self._presence.check()
        return self._connection

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _write(self, batch: Sequence[Record], visits: Sequence[VisitRow]) -> None:
        rows = newest_rows(batch)
        connection = self._opened()
        new_shapes = self._new_shapes(batch)
        connection.execute("BEGIN IMMEDIATE")
        if rows:
            row_counts.add(connection, *self._job, _stored(connection, rows, len(batch)))
        ledger.insert(connection, visits)
        for kind, *names in new_shapes:
            _remember_fields(connection, kind, names)
        connection.execute("COMMIT")
        if len(self._shapes) > _MOST_SHAPES:
            self._shapes.clear()
        self._shapes |= new_shapes

    def _new_shapes(self, batch: Sequence[Record]) -> set[tuple[str, ...]]:
        """New combinations of kind and field names: rarely any."""
        return {(record.kind, *record.data) for record in batch} - self._shapes

    def _count(self, *, rows: bool) -> Stored:
        connection = self._opened()
        found = row_counts.read(connection, *self._job)
        return msgspec.structs.replace(found, rows=dict(connection.execute(_COUNT)) if rows else None)

    def _finish(self) -> None:
        connection = self._opened()
        _refresh_views(connection)
        # Best effort: a reader or another writer may prevent it, and nothing is lost then.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _stored(connection: sqlite3.Connection, rows: Sequence[Row], records: int) -> Stored:
    """Store the rows of so many records, and count."""
    last_row, last_version = connection.execute(_LAST).fetchone()
    for start in range(0, len(rows), _AT_ONCE):
        chunk = rows[start : start + _AT_ONCE]
        connection.execute(_upsert(len(chunk)), [value for row in chunk for value in row])
    row, version = connection.execute(_LAST).fetchone()
    new, changed = row - last_row, version - last_version
    return Stored(new=new, changed=changed, again=records - new - changed)


_statements: dict[int, str] = {}


def _upsert(count: int) -> str:
    """One statement for all rows: the GIL is released once, not once per row. With a busy event loop that is 20 ms a
    batch instead of 240."""
    if count not in _statements:
        groups = (
            f"(?{n + 1},?{n + 2},?{n + 3},?{n + 4},?{n + 5},?{n + 5},?{n + 5},?{n + 6})" for n in range(0, count * 6, 6)
        )
        _statements[count] = _HEAD + ",".join(groups) + _TAIL
    return _statements[count]


def _remember_fields(connection: sqlite3.Connection, kind: str, names: Sequence[object]) -> None:
    for name in names[:MOST_COLUMNS]:
        connection.execute(
            "INSERT OR IGNORE INTO fields (kind, name) SELECT ?1, ?2"
            " WHERE (SELECT count(*) FROM fields WHERE kind = ?1) < ?3",
            (whole(kind), whole(str(name)), MOST_COLUMNS),
        )


def _refresh_views(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    fields: dict[str, list[str]] = {}
    for kind, name in connection.execute("SELECT kind, name FROM fields ORDER BY number"):
        fields.setdefault(kind, []).append(name)
    views = dict(connection.execute("SELECT lower(name), sql FROM sqlite_master WHERE type = 'view'"))
    others = {name for (name,) in connection.execute("SELECT lower(name) FROM sqlite_master WHERE type <> 'view'")}
    made = set(others)
    for kind, names in fields.items():
        view, sql = view_name(kind), view_sql(kind, names)
        if view is None or sql is None or view.lower() in made:
            continue
        made.add(view.lower())
        # Unchanged views are kept: a new schema would make other processes prepare their statements again.
        if views.get(view.lower()) != sql:
            connection.execute("DROP VIEW IF EXISTS " + sql.split(" AS SELECT ", 1)[0].removeprefix("CREATE VIEW "))
            connection.execute(sql)
    connection.execute("COMMIT")
