"""One JSON file per record, and one line per visit.

A batch is written to `.pending` first, and applied from there: whoever finds the file after a crash applies it again.
All of it under a lock of the file system, so that several processes may share a folder.
"""

import fcntl
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from trotline.model.record import Record
from trotline.model.record_row import Row
from trotline.model.row_counts import Stored
from trotline.model.time import Moment
from trotline.model.visit_row import VisitRow
from trotline.rules.storable_rows import newest_rows


class FolderSink:
    """A Sink and a Ledger."""

    keeps_visits = True

    def __init__(self, folder: Path, *, job: str = "") -> None:
        self.folder = folder
        self._job = job

    async def open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
        rows = newest_rows(batch)
        if not rows and not visits:
            return
        await self.open()
        with self._locked():
            self._apply()
            changes: dict[str, Any] = {"files": {}, "visits": {}}
            counts = Stored(again=len(batch) - len(rows))
            for row in rows:
                file = _file_of(row)
                counts += self._change(file, row, changes["files"])
            for visit in visits:
                changes["visits"][f"{visit.job}-{visit.token}-{visit.leased_at}"] = msgspec.to_builtins(visit)
            changes["counts"] = self._counted(counts)
            _durably(self.folder / ".pending", json.dumps(changes))
            self._apply()

    async def count(self, *, rows: bool = True) -> Stored:
        stored = self._counts().get(self._job, [0, 0, 0])
        new, changed, again = stored
        return Stored(new=new, changed=changed, again=again, rows=kinds_in(self.folder) if rows else None)

    async def finish(self) -> None:
        """Every batch is where it belongs."""

    async def maintain(self, now: Moment) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing is held between two calls."""

    async def log(self, visits: Sequence[VisitRow]) -> None:
        await self.write((), visits)

    async def story(self, fingerprints: Sequence[int], url: str = "", limit: int = 200) -> list[VisitRow]:
        found = [visit for visit in self._visits() if visit.fingerprint in fingerprints or (url and visit.url == url)]
        return sorted(found, key=lambda visit: (visit.leased_at, visit.token))[-limit:]

    async def rows(self, urls: Sequence[str], limit: int = 200) -> list[Row]:
        return [row for row in rows_in(self.folder) if row.url in urls][:limit]

    def _change(self, file: str, row: Row, files: dict[str, list[Any]]) -> Stored:
        path = self.folder / file
        if not path.exists():
            files[file] = list(row)
            return Stored(new=1)
        known = Row(*json.loads(path.read_text()))
        if row.seen_at < known.seen_at:
            return Stored(again=1)
        files[file] = list(row)
        return Stored(changed=1) if row.data != known.data else Stored(again=1)

    def _counts(self) -> dict[str, list[int]]:
        path = self.folder / ".counts"
        found: dict[str, list[int]] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def _counted(self, more: Stored) -> dict[str, list[int]]:
        counts = self._counts()
        new, changed, again = counts.get(self._job, [0, 0, 0])
        counts[self._job] = [new + more.new, changed + more.changed, again + more.again]
        return counts

    def _visits(self) -> Iterator[VisitRow]:
        for path in (self.folder / "visits").glob("*"):
            yield msgspec.convert(json.loads(path.read_text()), VisitRow)

    def _apply(self) -> None:
        pending = self.folder / ".pending"
        if not pending.exists():
            return
        changes = json.loads(pending.read_text())
        for file, row in changes["files"].items():
            _durably(self.folder / file, json.dumps(row))
        (self.folder / "visits").mkdir(exist_ok=True)
        for name, visit in changes["visits"].items():
            _durably(self.folder / "visits" / name, json.dumps(visit))
        _durably(self.folder / ".counts", json.dumps(changes["counts"]))
        pending.unlink()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def rows_in(folder: Path) -> list[Row]:
    return sorted(Row(*json.loads(path.read_text())) for path in folder.glob("*.json"))


def kinds_in(folder: Path) -> dict[str, int]:
    return dict(Counter(row.kind for row in rows_in(folder)))


def _file_of(row: Row) -> str:
    return hashlib.sha256("\0".join(row[:3]).encode()).hexdigest()[:24] + ".json"


def _durably(path: Path, text: str) -> None:
    beside = path.with_name(path.name + ".new")
    with beside.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
