"""Rolls the small objects of a writer into one file with an index."""

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from trotline.errors import ArchiveDamaged
from trotline.model.archive import ArchiveEntry
from trotline.model.time import Moment, Seconds
from trotline.ports.object_store import ObjectStore, StoredObject
from trotline.rules import cdxj, warc, warc_reading

OPEN = "open"
ROLLED = "warc"
INDEX = ".cdxj"
FILE = ".warc.gz"
DEAD_AFTER: Seconds = 3600.0
"""A writer whose last object is older has died: its objects are rolled by others."""
_STAMP = "%Y%m%dT%H%M%S"
_NAME = re.compile(r"warc/\d{8}/(\d{8}T\d{6})-(\d{8}T\d{6})-[\w.]+\.cdxj")


class Span(NamedTuple):
    """The times of the captures of a rolled file, by its name: whole seconds."""

    first: Moment
    last: Moment


def span_of(index: str) -> Span | None:
    """None: it is no index of ours."""
    match = _NAME.fullmatch(index)
    if match is None:
        return None
    first, last = (datetime.strptime(text, _STAMP).replace(tzinfo=UTC).timestamp() for text in match.groups())
    return Span(first, last + 1.0)


class OpenFile:
    """The objects of a writer that will be one file."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.size = 0
        self.since: Seconds = 0.0
        self.entries: list[ArchiveEntry] = []
        self.bodies: dict[str, warc.First] = {}
        """What equal bodies may refer to. Only in the same file: each file is pruned on its own."""

    def add(
        self,
        name: str,
        data: bytes,
        entries: Sequence[ArchiveEntry],
        bodies: dict[str, warc.First],
        now: Seconds,
    ) -> None:
        if not self.names:
            self.since = now
        self.names.append(name)
        self.entries += [msgspec.structs.replace(entry, offset=entry.offset + self.size) for entry in entries]
        self.bodies.update(bodies)
        self.size += len(data)


class Roller:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def roll(self, writer: str, full: OpenFile) -> str:
        """The name of the index. The small objects go last: a crash in between leaves captures twice, never none."""
        data = []
        for name in full.names:
            try:
                data.append(await self._store.get(name))
            except KeyError:
                # Another process took us for dead and rolled some of them: what is left goes by itself.
                return await self._roll_rest(writer, full.names)
        return await self._put(writer, full.names, b"".join(data), full.entries)

    async def tidy(self, now: Moment, but: str = "") -> int:
        """Roll what dead writers left. `now` is compared with the clock of the place: their times are its own."""
        by_writer: dict[str, list[StoredObject]] = {}
        for one in await self._store.listed(OPEN):
            by_writer.setdefault(one.name.split("/")[1], []).append(one)
        rolled = 0
        for writer, objects in by_writer.items():
            if writer != but and max(one.modified for one in objects) < now - DEAD_AFTER:
                rolled += bool(await self._roll_rest(writer, [one.name for one in objects]))
        return rolled

    async def _roll_rest(self, writer: str, names: Sequence[str]) -> str:
        """Objects whose entries are not known: they are read."""
        there, data, entries, at = [], [], list[ArchiveEntry](), 0
        for name in names:
            try:
                found = await self._store.get(name)
            except KeyError:
                continue
            entries += [msgspec.structs.replace(one, offset=one.offset + at) for one in scanned(found, name)]
            there.append(name)
            data.append(found)
            at += len(found)
        return await self._put(writer, there, b"".join(data), entries) if entries else ""

    async def _put(self, writer: str, names: Sequence[str], data: bytes, entries: Sequence[ArchiveEntry]) -> str:
        base = _name(writer, names, entries)
        await self._store.put(base + FILE, data)
        placed = [msgspec.structs.replace(entry, file=base + FILE) for entry in entries]
        await self._store.put(base + INDEX, cdxj.written(placed))
        await self._store.delete(names)
        return base + INDEX


def scanned(data: bytes, name: str) -> list[ArchiveEntry]:
    """The entries of a file without an index; `ArchiveDamaged` if it is not one."""
    try:
        return [
            msgspec.structs.replace(entry, file=name, offset=offset, length=length)
            for offset, length, record in warc_reading.records(data)
            if (entry := warc_reading.capture_of(record)) is not None
        ]
    except warc_reading.Bad as error:
        raise ArchiveDamaged(f"{name} is damaged: {error}", hint="See: trotline archive verify") from error


def _name(writer: str, names: Sequence[str], entries: Sequence[ArchiveEntry]) -> str:
    """From what is in it: who rolls the same objects again writes the same file."""
    first = datetime.fromtimestamp(min(entry.at for entry in entries), UTC)
    last = datetime.fromtimestamp(max(entry.at for entry in entries), UTC)
    of = hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]
    return f"{ROLLED}/{first:%Y%m%d}/{first:{_STAMP}}-{last:{_STAMP}}-{writer}_{of}"
