"""Rolls the small objects of a writer into one file with an index."""

import hashlib
import logging
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from trotline.adapters.archive import record_reader
from trotline.errors import ArchiveDamaged
from trotline.model.archive import ArchiveEntry, ArchiveTidied
from trotline.model.time import Moment, Seconds
from trotline.ports.archive import DEAD_AFTER
from trotline.ports.object_store import ObjectStore, StoredObject
from trotline.rules import cdxj, warc_writer

log = logging.getLogger("trotline.archive")

OPEN = "open"
ROLLED = "warc"
INDEX = ".cdxj"
FILE = ".warc.gz"
_STAMP = "%Y%m%dT%H%M%S"
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
                    found |= {entry.id for entry in cdxj.read(await self._store.get(one.name), one.name)}
                except (KeyError, ValueError):
                    # Pruned, or damaged: what it names is not found.
                    continue
        return found

    async def tidy(self, now: Moment, but: str = "") -> ArchiveTidied:
        """Roll what dead writers left. `now` is compared with the clock of the place: their times are its own."""
        by_writer: dict[str, list[StoredObject]] = {}
        for one in await self._store.listed(OPEN):
            by_writer.setdefault(one.name.split("/")[1], []).append(one)
        by_writer.pop(but, None)
        rolled = fresh = damaged = 0
        for writer, objects in by_writer.items():
            if max(one.modified for one in objects) >= now - DEAD_AFTER:
                fresh += len(objects)
                continue
            try:
                rolled += bool(await self._roll_rest(writer, [one.name for one in objects]))
            except ArchiveDamaged as error:
                # It stays where it is, with the bodies that others of its writer refer to.
                log.warning("archive.not_rolled %s", error.what)
                damaged += len(objects)
        return ArchiveTidied(files=rolled, fresh=fresh, damaged=damaged)

    async def _roll_rest(self, writer: str, names: Sequence[str]) -> str:
        """Objects whose entries are not known: they are read."""
        there, data, entries, at = [], [], list[ArchiveEntry](), 0
        for name in names:
            try:
                found = await self._store.get(name)
            except KeyError:
                continue
            entries += [
                msgspec.structs.replace(one, offset=one.offset + at)
                for one, _ in record_reader.captures(name, found, None)
            ]
            there.append(name)
            data.append(found)
            at += len(found)
        if not entries:
            return ""
        base = _name(writer, there, entries)
        await self._store.put(base + FILE, b"".join(data))
        await self._index(base, there, entries)
        return base + INDEX

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
    """In the names of all files rolled of this writer. A folder that a person made may have any name."""
    return f"-{_ODD.sub('_', writer)}_"
