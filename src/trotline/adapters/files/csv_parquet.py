"""CSV and Parquet cannot be updated in place: rows go into a spool, and `finish` writes the whole file."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from trotline.adapters.files.export import need_pyarrow, to_csv, to_parquet
from trotline.adapters.files.file_paths import Place, write_durably
from trotline.adapters.files.sqlite_sidecar import Sidecar, groups
from trotline.errors import SinkFileFails
from trotline.model.record import Record
from trotline.model.record_row import Row
from trotline.model.row_counts import Stored
from trotline.model.time import Moment
from trotline.model.visit_row import VisitRow
from trotline.rules.storable_rows import newest_rows

APPLICATION = 0x54524C50
_TABLES = (
    """CREATE TABLE rows (
        site TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, url TEXT NOT NULL,
        seen_at REAL NOT NULL, data TEXT NOT NULL, UNIQUE (site, kind, key))""",
    # revision: batches stored; written: the revision that the file shows.
    "CREATE TABLE state (revision INTEGER NOT NULL, written INTEGER NOT NULL)",
    "INSERT INTO state VALUES (0, -1)",
)
_UPSERT = """ ON CONFLICT (site, kind, key) DO UPDATE SET url = excluded.url, seen_at = excluded.seen_at,
    data = excluded.data WHERE excluded.seen_at >= seen_at"""
_AT_ONCE = 64

Writer = Callable[["Spool", BinaryIO], int]


class Spool:
    """The rows in the order they were first stored. Can be iterated more than once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __iter__(self) -> Iterator[Row]:
        for row in self._connection.execute("SELECT site, kind, key, url, seen_at, data FROM rows ORDER BY rowid"):
            yield Row(*row)


class SpooledSink:
    """Keeps rows in a spool next to the file at `path`; `finish` writes the file from all of them."""

    keeps_visits = False

    def __init__(self, path: str | Path, writer: Writer, job: tuple[str, Moment] = ("", 0.0)) -> None:
        self.place = Place(path)
        self._writer = writer
        self._sidecar = Sidecar(self.place, _TABLES, APPLICATION, self._look, job)

    async def open(self) -> None:
        """Open or create the spool before the first write: errors show before any page is fetched."""
        await self._sidecar.do(self._sidecar.opened)

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
        """Store the batch. A file of rows keeps no visits."""
        if batch:
            await self._sidecar.do(lambda: self._write(batch))

    async def count(self, *, rows: bool = True) -> Stored:
        return await self._sidecar.do(lambda: self._count(rows=rows))

    async def finish(self) -> None:
        """Write the file from everything stored so far. May be called many times."""
        await self._sidecar.do(self._finish)

    async def maintain(self, now: Moment) -> None:
        """Nothing to do: a file of rows needs no housekeeping."""

    async def close(self) -> None:
        """Close without `finish`. May be repeated."""
        await self._sidecar.close()

    def _write(self, batch: Sequence[Record]) -> None:
        rows = newest_rows(batch)
        with self._sidecar.transaction() as spool:
            new = changed = 0
            for begin in range(0, len(rows), _AT_ONCE):
                chunk = rows[begin : begin + _AT_ONCE]
                known = _known_rows(spool, chunk)
                new += len(chunk) - len(known)
                changed += sum(
                    row.seen_at >= known[row[:3]][0] and row.data != known[row[:3]][1]
                    for row in chunk
                    if row[:3] in known
                )
                spool.execute(
                    f"INSERT INTO rows VALUES {groups(len(chunk), 6)} {_UPSERT}",  # noqa: S608
                    [value for row in chunk for value in row],
                )
            spool.execute("UPDATE state SET revision = revision + 1")
            self._sidecar.add(Stored(new=new, changed=changed, again=len(batch) - new - changed))

    def _count(self, *, rows: bool) -> Stored:
        found = self._sidecar.counted()
        asked = "SELECT kind, count(*) FROM rows GROUP BY kind ORDER BY min(rowid)"
        return msgspec.structs.replace(found, rows=dict(self._sidecar.opened().execute(asked)) if rows else None)

    def _finish(self) -> None:
        self._sidecar.opened()
        # Concurrent calls: the one with the older snapshot must not write last.
        with self.place.only_one():
            with self._sidecar.transaction("DEFERRED") as spool:
                revision, written = spool.execute("SELECT revision, written FROM state").fetchone()
                if revision == written and self.place.file.exists():
                    return
                write_durably(self.place.new, lambda out: self._writer(Spool(spool), out))
            self.place.move_in()
            self._sidecar.opened().execute("UPDATE state SET written = ?", (revision,))

    def _look(self) -> None:
        """A file without a spool is not ours: `finish` would replace it."""
        if self.place.file.exists() and self.place.file.stat().st_size:
            raise SinkFileFails(
                f"{self.place.file} exists already, without a spool to continue from",
                hint="Choose another file name, or move that file.",
            )


def _known_rows(spool: sqlite3.Connection, rows: Sequence[Row]) -> dict[tuple[str, str, str], tuple[Moment, str]]:
    """(site, kind, key) -> seen_at and data, of the rows that are stored already."""
    # CROSS JOIN fixes the join order: one lookup per key, instead of a scan of the spool.
    found = spool.execute(
        f"SELECT rows.* FROM (VALUES {groups(len(rows), 3)}) AS wanted CROSS JOIN rows"  # noqa: S608
        " ON site = wanted.column1 AND kind = wanted.column2 AND key = wanted.column3",
        [value for row in rows for value in row[:3]],
    )
    return {line[:3]: line[4:] for line in found}


class CsvSink(SpooledSink):
    """One CSV table, UTF-8. `raw` leaves cells that look like formulas as they are; `envelope` adds `_key` and such."""

    def __init__(
        self,
        path: str | Path,
        *,
        envelope: bool = False,
        raw: bool = False,
        job: str = "",
        started_at: Moment = 0.0,
    ) -> None:
        super().__init__(path, lambda rows, out: to_csv(rows, out, envelope=envelope, raw=raw), (job, started_at))


class ParquetSink(SpooledSink):
    """One Parquet table with typed columns; needs `trotline[parquet]`."""

    def __init__(self, path: str | Path, *, envelope: bool = False, job: str = "", started_at: Moment = 0.0) -> None:
        need_pyarrow()
        super().__init__(path, lambda rows, out: to_parquet(rows, out, envelope=envelope), (job, started_at))
