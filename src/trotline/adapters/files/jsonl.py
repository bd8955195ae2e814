"""Rows as lines of JSON, readable while the crawl runs.

Write protocol, under the index's write lock:
  1 truncate the file to the length in the index (removes a killed writer's tail)
  2 append the lines, fsync
  3 commit the keys and the new length
A kill before 3 leaves a tail that the next writer truncates; a kill after it leaves a complete batch.

A newer version of a record is a new line; `finish` rewrites the file without the old ones:
  1 write the new file next to the old one, fsync
  2 commit the new offsets of the lines together with the flag "pending"
  3 rename, then clear the flag; any process that finds the flag set repeats this step
"""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import msgspec

from trotline.adapters.files.export import line_of
from trotline.adapters.files.file_paths import Place, sync_folder, write_durably
from trotline.adapters.files.sqlite_sidecar import Sidecar, groups
from trotline.adapters.replaced_file_check import rows_gone
from trotline.errors import SinkFileFails
from trotline.model.record import Record
from trotline.model.record_row import Row
from trotline.model.row_counts import Stored
from trotline.model.time import Moment
from trotline.model.visit_row import VisitRow
from trotline.rules.storable_rows import newest_rows

APPLICATION = 0x54524C49
_TABLES = (
    """CREATE TABLE lines (
        start INTEGER PRIMARY KEY, length INTEGER NOT NULL,
        site TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
        seen_at REAL NOT NULL, digest BLOB NOT NULL,
        UNIQUE (site, kind, key))""",
    # length: committed bytes; adopted: bytes at the start of the file that were there before us;
    # dead: lines replaced by a newer version; pending: the new file is ready for the rename.
    "CREATE TABLE state (length INTEGER, adopted INTEGER NOT NULL, dead INTEGER NOT NULL, pending INTEGER NOT NULL)",
    "INSERT INTO state VALUES (NULL, 0, 0, 0)",
)
ADOPTED = "(lines from before)"
"""The kind, in counts, of lines that were in the file before the first crawl."""
_AT_ONCE = 64
_PAGE = 1000
_OF_DATA = 8
"""Bytes of a digest that cover only the data."""

Identity = tuple[str, str, str]
Line = tuple[int, int, str, str, str, float, bytes]


class JsonlSink:
    """Appends to the file at `path`, which several processes may share; an existing file is continued.

    A line is the record's data and nothing else; `envelope` adds `_site`, `_kind`, `_key`, `_url`, `_seen_at`.
    """

    keeps_visits = False

    def __init__(self, path: str | Path, *, envelope: bool = False, job: str = "", started_at: Moment = 0.0) -> None:
        self.place = Place(path)
        self._envelope = envelope
        self._sidecar = Sidecar(self.place, _TABLES, APPLICATION, self._look, (job, started_at))

    async def open(self) -> None:
        """Open or create the file before the first write: errors show before any page is fetched."""
        await self._sidecar.do(lambda: self._settle(opening=True))

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
        """Store the batch. A file of rows keeps no visits."""
        if batch:
            await self._sidecar.do(lambda: self._write(batch))

    async def count(self, *, rows: bool = True) -> Stored:
        return await self._sidecar.do(lambda: self._count(rows=rows))

    async def finish(self) -> None:
        """Remove replaced lines: one line per record. May be repeated."""
        await self._sidecar.do(self._finish)

    async def maintain(self, now: Moment) -> None:
        """Nothing to do: a file of rows needs no housekeeping."""

    async def close(self) -> None:
        """Close without `finish`. May be repeated."""
        await self._sidecar.close()

    def _write(self, batch: Sequence[Record]) -> None:
        rows = newest_rows(batch)
        with self._sidecar.transaction() as index:
            length = self._recovered(index)
            counts = Stored()
            for begin in range(0, len(rows), _AT_ONCE):
                length, counted = self._append(index, rows[begin : begin + _AT_ONCE], length)
                counts += counted
            index.execute("UPDATE state SET length = ?", (length,))
            self._sidecar.add(counts + Stored(again=len(batch) - len(rows)))

    def _append(self, index: sqlite3.Connection, rows: list[Row], length: int) -> tuple[int, Stored]:
        """Append the new rows; returns the file's new length and the counts."""
        known = _known_lines(index, rows)
        noted: list[Line] = []
        text: list[bytes] = []
        start, replaced, changed = length, 0, 0
        for row in rows:
            line = line_of(row, self._envelope)
            digest = _digest_of(line, row, self._envelope)
            old = known.get(row[:3])
            if old is not None and row.seen_at < old[5]:
                continue
            if old is not None and digest == old[6]:
                if row.seen_at > old[5]:
                    noted.append((*old[:5], row.seen_at, digest))
                continue
            if old is not None:
                replaced += 1
                changed += digest[-_OF_DATA:] != old[6][-_OF_DATA:]
            noted.append((start, len(line), row.site, row.kind, row.key, row.seen_at, digest))
            text.append(line)
            start += len(line)
        if text:
            _append_durably(self.place.file, b"".join(text), length)
        if noted:
            # REPLACE also removes the entry of the older version.
            index.execute(
                f"REPLACE INTO lines VALUES {groups(len(noted), 7)}",  # noqa: S608
                [value for line_note in noted for value in line_note],
            )
        if replaced:
            index.execute("UPDATE state SET dead = dead + ?", (replaced,))
        new = len(text) - replaced
        return start, Stored(new=new, changed=changed, again=len(rows) - new - changed)

    def _count(self, *, rows: bool) -> Stored:
        index = self._sidecar.opened()
        found = self._sidecar.counted()
        if not rows:
            return found
        kinds = dict(index.execute("SELECT kind, count(*) FROM lines GROUP BY kind ORDER BY min(start)"))
        [adopted] = index.execute("SELECT adopted FROM state").fetchone()
        if adopted and (others := _lines_in(self.place.file, adopted)):
            kinds[ADOPTED] = others
        return msgspec.structs.replace(found, rows=kinds)

    def _settle(self, *, opening: bool = False) -> None:
        with self._sidecar.transaction() as index:
            self._recovered(index, opening=opening)

    def _recovered(self, index: sqlite3.Connection, *, opening: bool = False) -> int:
        """Recover from a killed writer; returns the committed length. Under the lock, before every operation."""
        length, pending = index.execute("SELECT length, pending FROM state").fetchone()
        if pending:
            if self.place.new.exists():
                self.place.move_in()
            index.execute("UPDATE state SET pending = 0")
        try:
            size = self.place.file.stat().st_size
        except FileNotFoundError:
            if length is not None and not opening:
                # Lines of settled pages are lost: accepted when a run starts, an error while it runs.
                raise rows_gone(self.place.file) from None
            return self._started_anew(index)
        if length is None:
            index.execute("UPDATE state SET length = ?1, adopted = ?1", (size,))
            return size
        if size < length:
            raise SinkFileFails(
                f"{self.place.file} was truncated by another program: {size} bytes instead of {length}",
                hint=f"Restore it; or remove it together with {self.place.index} to start over.",
            )
        if size > length:
            os.truncate(self.place.file, length)
        return int(length)

    def _started_anew(self, index: sqlite3.Connection) -> int:
        """No file: a first run, or the user removed the rows."""
        self.place.file.touch()
        sync_folder(self.place.file.parent)
        index.execute("DELETE FROM lines")
        index.execute("UPDATE state SET length = 0, adopted = 0, dead = 0")
        return 0

    def _look(self) -> None:
        """Raises unless the file looks like JSON lines, and can be continued."""
        if not self.place.file.exists() or not self.place.file.stat().st_size:
            return
        with self.place.file.open("rb") as lines:
            first = lines.read(1)
            lines.seek(-1, os.SEEK_END)
            last = lines.read(1)
        if first != b"{" or last != b"\n":
            raise SinkFileFails(
                f"{self.place.file} exists already and does not look like JSON lines",
                hint="Choose another file name, or move that file.",
            )

    def _finish(self) -> None:
        with self._sidecar.transaction() as index:
            self._recovered(index)
            dead, adopted = index.execute("SELECT dead, adopted FROM state").fetchone()
            if not dead:
                return
            length = write_durably(self.place.new, lambda out: self._compact(index, adopted, out))
            index.execute("UPDATE state SET length = ?, dead = 0, pending = 1", (length,))
        self._settle()

    def _compact(self, index: sqlite3.Connection, adopted: int, out: BinaryIO) -> int:
        """Copy the live lines, in order; returns the new length."""
        with self.place.file.open("rb") as lines:
            _copy(lines, out, adopted)
            at, last = adopted, -1
            while page := index.execute(
                "SELECT start, length FROM lines WHERE start > ? ORDER BY start LIMIT ?", (last, _PAGE)
            ).fetchall():
                moves = []
                for start, length in page:
                    lines.seek(start)
                    out.write(lines.read(length))
                    moves.append((at, start))
                    at, last = at + length, start
                # Lines only move towards the start, in order: offsets never collide.
                index.executemany("UPDATE lines SET start = ? WHERE start = ?", moves)
        return at


def _digest_of(line: bytes, row: Row, envelope: bool) -> bytes:
    """Digest of the line; with an envelope, which contains the time, also of the data alone."""
    digest = blake2b(line, digest_size=16).digest()
    return digest + blake2b(row.data.encode(), digest_size=_OF_DATA).digest() if envelope else digest


def _known_lines(index: sqlite3.Connection, rows: list[Row]) -> dict[Identity, Line]:
    # CROSS JOIN fixes the join order: one lookup per key, instead of a scan of the index.
    found = index.execute(
        f"SELECT lines.* FROM (VALUES {groups(len(rows), 3)}) AS wanted CROSS JOIN lines"  # noqa: S608
        " ON site = wanted.column1 AND kind = wanted.column2 AND key = wanted.column3",
        [value for row in rows for value in row[:3]],
    )
    return {line[2:5]: line for line in found}


def _lines_in(path: Path, length: int) -> int:
    """The number of lines in the first `length` bytes."""
    found = 0
    with path.open("rb") as lines:
        while length and (piece := lines.read(min(length, 1 << 20))):
            found += piece.count(b"\n")
            length -= len(piece)
    return found


def _append_durably(path: Path, text: bytes, length: int) -> None:
    with path.open("r+b", buffering=0) as lines:
        lines.seek(length)
        try:
            view = memoryview(text)
            while view:
                view = view[lines.write(view) :]
            os.fsync(lines.fileno())
        except OSError:
            # Readers should not see a partial line; if this fails, too, the next writer truncates the tail.
            with suppress(OSError):
                lines.truncate(length)
            raise


def _copy(source: BinaryIO, out: BinaryIO, count: int) -> None:
    while count:
        piece = source.read(min(count, 1 << 20))
        out.write(piece)
        count -= len(piece)
