"""Rolls the small objects of a writer into one file with an index."""

import hashlib
import logging
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from trotline.adapters.archive import object_reader, record_reader
from trotline.errors import ArchiveDamaged
from trotline.model.archive import LARGEST_RECORD, ArchiveDamage, ArchiveEntry, ArchiveTidied
from trotline.model.time import Moment, Seconds
from trotline.ports.archive import DEAD_AFTER
from trotline.ports.object_store import ObjectStore, StoredObject
from trotline.rules import cdxj, warc_reader, warc_writer
from trotline.rules.archive_urls import MOST_ROLL

log = logging.getLogger("trotline.archive")

OPEN = "open"
ROLLED = "warc"
INDEX = ".cdxj"
FILE = ".warc.gz"
LARGEST_LEFT = MOST_ROLL + LARGEST_RECORD
"""Bytes of a dead writer: it rolls its objects as soon as they have `roll=`."""
_STAMP = "%Y%m%dT%H%M%S"
_LONGEST_MARK = 100
"""Characters of a writer in the name of a file; writers of ours have at most 93."""
_ODD = re.compile(r"[^A-Za-z0-9_.]+")
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
    try:
        first, last = (datetime.strptime(text, _STAMP).replace(tzinfo=UTC).timestamp() for text in match.groups())
    except ValueError:
        return None
    return Span(first, last + 1.0)


class OpenFile:
    """The objects of a writer that will be one file."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.size = 0
        self.since: Seconds = 0.0
        self.entries: list[ArchiveEntry] = []
        """Their offsets are those in that file."""
        self.bodies: dict[str, warc_writer.First] = {}
        """What equal bodies may refer to. Only in the same file: each file is pruned on its own."""

    def add(
        self,
        name: str,
        data: bytes,
        entries: Sequence[ArchiveEntry],
        bodies: dict[str, warc_writer.First],
        now: Seconds,
    ) -> None:
        if not self.names:
            self.since = now
        self.names.append(name)
        self.entries += entries
        self.bodies.update(bodies)
        self.size += len(data)


class Roller:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def roll(self, writer: str, full: OpenFile) -> int:
        """How many captures are gone. The small objects go last: a crash in between leaves captures twice, never
        none."""
        base = _name(writer, full.names, full.entries)
        try:
            await self._store.join(base + FILE, full.names)
        except KeyError:
            # Another process took us for dead and rolled some of them, or they were removed: what is left goes by
            # itself.
            await self._roll_rest(writer, full.names)
            return len({entry.id for entry in full.entries} - await self._rolled(writer))
        await self._index(base, full.names, full.entries)
        return 0

    async def _rolled(self, writer: str) -> set[str]:
        """What is in the files of this writer, by whomever they were rolled: an index is there before the small objects
        go."""
        found, mark = set[str](), mark_of(writer)
        for one in await self._store.listed(ROLLED):
            if mark in one.name and span_of(one.name) is not None:
                try:
                    async for some in object_reader.lines(self._store, one.name):
                        found |= {entry.id for entry in cdxj.read(some, one.name)}
                except (KeyError, ValueError):
                    # Pruned, or damaged: what it names is not found.
                    continue
        return found

    async def tidy(self, now: Moment, but: str = "") -> ArchiveTidied:
        """Roll what dead writers left. `now` is compared with the clock of the place: their times are its own."""
        by_writer: dict[str, list[StoredObject]] = {}
        for one in await self._store.listed(OPEN):
            if one.name.endswith(FILE):
                by_writer.setdefault(one.name.split("/")[1], []).append(one)
        by_writer.pop(but, None)
        rolled = fresh = damaged = 0
        for writer, objects in by_writer.items():
            if max(one.modified for one in objects) >= now - DEAD_AFTER:
                fresh += len(objects)
            elif (is_rolled := await self._roll_left(writer, objects)) is None:
                damaged += len(objects)
            else:
                rolled += is_rolled
        return ArchiveTidied(files=rolled, fresh=fresh, damaged=damaged)

    async def _roll_left(self, writer: str, objects: Sequence[StoredObject]) -> bool | None:
        """None: they stay where they are, with the bodies that others of their writer refer to."""
        if (size := sum(one.size for one in objects)) > LARGEST_LEFT:
            # It would have to be in memory for a place that cannot join objects.
            log.warning("archive.not_rolled %s/%s has %s bytes, too many for one file", OPEN, writer, f"{size:,}")
            return None
        try:
            return bool(await self._roll_rest(writer, [one.name for one in objects]))
        except ArchiveDamaged as error:
            log.warning("archive.not_rolled %s", error.what)
            return None

    async def _roll_rest(self, writer: str, names: Sequence[str]) -> str:
        """Objects whose entries are not known: they are read."""
        there, entries, at = list[str](), list[ArchiveEntry](), 0
        for name in names:
            try:
                found, size = await self._read(name)
            except KeyError:
                continue
            there.append(name)
            entries += [msgspec.structs.replace(one, offset=one.offset + at) for one in found]
            at += size
        if not entries:
            return ""
        base = _name(writer, there, entries)
        try:
            await self._store.join(base + FILE, there)
        except KeyError:
            # Rolled by another process since they were read.
            return await self._roll_rest(writer, there)
        await self._index(base, there, entries)
        return base + INDEX

    async def _read(self, name: str) -> tuple[list[ArchiveEntry], int]:
        """What is in an object, and its size; `ArchiveDamaged` if it has anything else."""
        entries, end = list[ArchiveEntry](), 0
        try:
            async for stored in object_reader.records(self._store, name):
                end = stored.end
                if (entry := warc_reader.capture_of(stored.record)) is not None:
                    entries.append(record_reader.placed(entry, name, stored))
        except warc_reader.Bad as error:
            raise record_reader.damaged(ArchiveDamage(file=name, offset=end, what=str(error))) from error
        return entries, end

    async def _index(self, base: str, names: Sequence[str], entries: Sequence[ArchiveEntry]) -> None:
        """Of a file that is there; then its small objects go."""
        await self._store.put(base + INDEX, cdxj.written(entries, base + FILE))
        await self._store.delete(names)


def _name(writer: str, names: Sequence[str], entries: Sequence[ArchiveEntry]) -> str:
    """From what is in it: who rolls the same objects again writes the same file."""
    first = datetime.fromtimestamp(min(entry.at for entry in entries), UTC)
    last = datetime.fromtimestamp(max(entry.at for entry in entries), UTC)
    of = hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]
    return f"{ROLLED}/{first:%Y%m%d}/{first:{_STAMP}}-{last:{_STAMP}}{mark_of(writer)}{of}"


def mark_of(writer: str) -> str:
    """In the names of all files rolled of this writer. A folder that a person made may have any name, also one that is
    too long for a part of another."""
    name = _ODD.sub("_", writer)
    if len(name) > _LONGEST_MARK:
        name = f"{name[: _LONGEST_MARK - 9]}.{hashlib.sha256(writer.encode()).hexdigest()[:8]}"
    return f"-{name}_"
