"""Reads all pages that are wanted, file by file; any number of readers can share the work."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

from trotline.adapters.archive import object_reader, record_reader
from trotline.adapters.archive.capture_finder import Reader
from trotline.adapters.archive.object_reader import PIECE
from trotline.adapters.archive.roll_files import FILE, OPEN, mark_of
from trotline.model.archive import ArchiveDamage, ArchivedPage, ArchiveEntry, ArchiveQuery
from trotline.model.limits import MIB
from trotline.ports.archive import Skipped
from trotline.ports.object_store import ObjectStore
from trotline.rules import warc_reader, warc_writer

_MOST_BODIES = 64 * MIB
"""Bytes of bodies that are kept for the next revisit of them."""
_MOST_PACKED = 64 * MIB
"""And of records that are not rolled yet: as many as a writer rolls at once, by default."""


class PageReader:
    def __init__(self, store: ObjectStore, reader: Reader) -> None:
        self._store = store
        self._reader = reader

    async def units(self, wanted: ArchiveQuery) -> list[str]:
        """Open ones first: they are read before they are rolled. Of a writer, the name of its first object: if that is
        gone when the unit is read, some were rolled meanwhile."""
        writers = dict[str, str]()
        for name in await self._reader.open_files():
            writers.setdefault(_folder(name), name)
        return [*writers.values(), *(one.name for one in await self._reader.indexes(wanted))]

    async def pages(
        self, wanted: ArchiveQuery, part: int, parts: int, units: Sequence[str] | None, skipped: Skipped | None
    ) -> AsyncIterator[ArchivedPage]:
        """Each part of a rolled file is read by itself; what a writer has not rolled is read by one part."""
        seen = set[str]()
        for each in await self.units(wanted) if units is None else units:
            if not each.startswith(f"{OPEN}/"):
                found = self._of_rolled(each, wanted, skipped, part, parts)
            elif crc32(_folder(each).encode()) % parts == part:
                found = self._of_open(each, wanted, skipped)
            else:
                continue
            async for page in found:
                if page.entry.id not in seen:
                    seen.add(page.entry.id)
                    yield page

    async def _of_rolled(
        self, index: str, wanted: ArchiveQuery, skipped: Skipped | None, part: int = 0, parts: int = 1
    ) -> AsyncIterator[ArchivedPage]:
        """By the index: what is not wanted is neither fetched nor unpacked."""
        lines = await self._reader.lines(index, skipped if part == 0 or skipped is None else _named_by_another)
        entries = sorted(lines, key=lambda entry: entry.offset)
        count = len(entries)
        chosen = [one for one in entries[count * part // parts : count * (part + 1) // parts] if wanted.fits(one)]
        if not chosen:
            return
        bodies = _Bodies(self._store, entries) if any(one.is_revisit for one in chosen) else None
        for run in _runs(chosen):
            start, end = run[0].offset, max(one.offset + one.length for one in run)
            try:
                data = await object_reader.get(self._store, run[0].file, start, end - start)
            except KeyError:
                if await self._is_there(index):
                    _all_damaged(run, "its file is missing", skipped)
                    continue
                # It was pruned since it was listed: the index goes first.
                return
            except warc_reader.Bad as error:
                _all_damaged(run, error, skipped)
                continue
            for one in run:
                try:
                    record = record_reader.record_of(one, data[one.offset - start : one.offset - start + one.length])
                    original = await bodies.of(one) if bodies is not None and one.is_revisit else None
                    page = record_reader.page_of(one, record, original)
                except warc_reader.Bad as error:
                    record_reader.told(record_reader.damage_of(one, error), skipped)
                    continue
                yield page

    async def _is_there(self, name: str) -> bool:
        try:
            await self._store.get(name, 0, 1)
        except KeyError:
            return False
        return True

    async def _of_open(self, unit: str, wanted: ArchiveQuery, skipped: Skipped | None) -> AsyncIterator[ArchivedPage]:
        folder = _folder(unit)
        if folder == unit and unit.endswith(FILE):
            names = [unit]
        else:
            names = [one.name for one in await self._store.listed(folder) if one.name.endswith(FILE)]
        originals, orphans, rolled = _Originals(self._store), list[_Orphan](), set[str]()
        is_gone = unit not in names
        for name in names:
            try:
                async for page in self._of_object(name, wanted, skipped, originals, orphans):
                    yield page
            except KeyError:
                # Rolled, or pruned.
                is_gone = True
        if not is_gone and not orphans:
            return
        # Some are rolled, now or by a writer that died before it had removed all of them: the first ones go first.
        mark = mark_of(folder.rpartition("/")[2])
        for index in await self._reader.indexes(wanted):
            if mark in index.name:
                async for page in self._of_rolled(index.name, wanted, skipped):
                    rolled.add(page.entry.id)
                    yield page
        for orphan in orphans:
            if orphan.entry.id not in rolled:
                record_reader.told(record_reader.damage_of(orphan.entry, orphan.error), skipped)

    async def _of_object(
        self,
        name: str,
        wanted: ArchiveQuery,
        skipped: Skipped | None,
        originals: "_Originals",
        orphans: list["_Orphan"],
    ) -> AsyncIterator[ArchivedPage]:
        """Of one without an index; `KeyError` if it is gone."""
        async for entry, stored in record_reader.captures(self._store, name, skipped):
            if not entry.is_revisit and len(stored.record.block) >= warc_writer.LEAST_REVISIT:
                originals.add(entry, stored.packed)
            if not wanted.fits(entry):
                continue
            original: warc_reader.Record | None = None
            try:
                original = await originals.of(entry) if entry.is_revisit else None
                page = record_reader.page_of(entry, stored.record, original)
            except warc_reader.Bad as error:
                if entry.is_revisit and original is None:
                    orphans.append(_Orphan(entry, error))
                else:
                    record_reader.told(record_reader.damage_of(entry, error), skipped)
                continue
            yield page


class _Orphan(NamedTuple):
    """A revisit, and why it is damaged if it is not in a rolled file: the object with its body is not there."""

    entry: ArchiveEntry
    error: warc_reader.Bad


class _Bodies:
    """The records that revisits of one file refer to."""

    def __init__(self, store: ObjectStore, entries: Sequence[ArchiveEntry]) -> None:
        self._store = store
        self._entries = {one.digest: one for one in reversed(entries) if not one.is_revisit}
        self._read: dict[str, warc_reader.Record] = {}
        self._size = 0

    async def of(self, entry: ArchiveEntry) -> warc_reader.Record:
        if entry.digest not in self._read:
            first = self._entries.get(entry.digest)
            if first is None:
                raise warc_reader.Bad("its body is not there")
            while self._size >= _MOST_BODIES:
                self._size -= len(self._read.pop(next(iter(self._read))).block)
            try:
                data = await object_reader.get(self._store, first.file, first.offset, first.length)
            except KeyError:
                raise warc_reader.Bad("its body is gone") from None
            self._read[entry.digest] = record = record_reader.record_of(first, data)
            self._size += len(record.block)
        return self._read[entry.digest]


class _Originals:
    """The records that revisits of a writer's small objects refer to. As many as fit are kept, packed: unpacked, all of
    them may be larger than the memory. The others are read again."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._entries: dict[str, ArchiveEntry] = {}
        self._packed: dict[str, bytes] = {}
        self._room = _MOST_PACKED

    def add(self, entry: ArchiveEntry, packed: bytes) -> None:
        self._entries[entry.digest] = entry
        self._room += len(self._packed.pop(entry.digest, b""))
        if len(packed) <= self._room:
            self._room -= len(packed)
            self._packed[entry.digest] = packed

    async def of(self, revisit: ArchiveEntry) -> warc_reader.Record | None:
        entry = self._entries.get(revisit.digest)
        if entry is None:
            return None
        packed = self._packed.get(revisit.digest)
        if packed is None:
            try:
                packed = await object_reader.get(self._store, entry.file, entry.offset, entry.length)
            except KeyError:
                raise warc_reader.Bad("its body is gone") from None
        return record_reader.record_of(entry, packed)


def _folder(name: str) -> str:
    """Of a writer; a foreign file beside them is one by itself."""
    folder = name.rpartition("/")[0]
    return name if folder == OPEN else folder


def _named_by_another(damage: ArchiveDamage) -> None:
    """An index that is damaged is named by the first of the readers that share it."""


def _runs(entries: Sequence[ArchiveEntry]) -> Iterator[list[ArchiveEntry]]:
    """In the order of their file, so that those of one run are read at once."""
    run = list[ArchiveEntry]()
    for one in entries:
        if run and one.offset + one.length - run[0].offset > PIECE:
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _all_damaged(entries: Sequence[ArchiveEntry], what: object, skipped: Skipped | None) -> None:
    for one in entries:
        record_reader.told(record_reader.damage_of(one, what), skipped)
