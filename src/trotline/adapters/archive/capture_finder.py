"""Finds captures: in rolled files by their index, in open ones by reading them."""

import asyncio
from collections.abc import AsyncIterator

from trotline.adapters.archive import object_reader, record_reader
from trotline.adapters.archive.roll_files import FILE, INDEX, OPEN, ROLLED, span_of
from trotline.errors import ArchiveDamaged
from trotline.model.archive import ArchiveDamage, ArchivedPage, ArchiveEntry, ArchiveQuery
from trotline.ports.archive import Skipped
from trotline.ports.object_store import ObjectStore, StoredObject
from trotline.rules import cdxj, warc_reader, warc_writer

SMALL_INDEX = 256 * 1024
"""Bytes of an index that is read whole when one URL is looked for."""
_BLOCK = 16 * 1024
_LINES = 4 * _BLOCK
"""Bytes of it that are read first, where those of one URL begin."""
_AT_ONCE = 8


class Reader:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def entries(self, wanted: ArchiveQuery, skipped: Skipped | None = None) -> AsyncIterator[ArchiveEntry]:
        seen = set[str]()
        # Open ones first: what is rolled meanwhile is found in its file, and not missed.
        for name in await self.open_files():
            async for entry in self._scanned(name, skipped):
                if wanted.fits(entry) and entry.id not in seen:
                    seen.add(entry.id)
                    yield entry
        async for found in self._indexed(wanted, skipped):
            for entry in found:
                if wanted.fits(entry) and entry.id not in seen:
                    seen.add(entry.id)
                    yield entry

    async def open_files(self) -> list[str]:
        return [one.name for one in await self._store.listed(OPEN) if one.name.endswith(FILE)]

    async def _scanned(self, name: str, skipped: Skipped | None) -> AsyncIterator[ArchiveEntry]:
        try:
            async for entry, _ in record_reader.captures(self._store, name, skipped):
                yield entry
        except KeyError:
            # Rolled since it was listed.
            return

    async def indexes(self, wanted: ArchiveQuery) -> list[StoredObject]:
        """Of rolled files that may have what is wanted."""
        found = []
        for one in await self._store.listed(ROLLED):
            span = span_of(one.name)
            if span is not None and span.first <= wanted.until and span.last >= wanted.since:
                found.append(one)
        return found

    async def _indexed(self, wanted: ArchiveQuery, skipped: Skipped | None) -> AsyncIterator[list[ArchiveEntry]]:
        indexes = await self.indexes(wanted)
        for start in range(0, len(indexes), _AT_ONCE):
            some = indexes[start : start + _AT_ONCE]
            for found in await asyncio.gather(*(self.lines(one.name, skipped, one.size, wanted.url) for one in some)):
                yield found

    async def lines(self, index: str, skipped: Skipped | None, size: int = 0, url: str = "") -> list[ArchiveEntry]:
        """Of one index: all, or those of one URL."""
        file, found = index.removesuffix(INDEX) + FILE, list[ArchiveEntry]()
        try:
            if not url or url.endswith("*") or size <= SMALL_INDEX:
                async for some in object_reader.lines(self._store, index):
                    found += cdxj.read(some, file)
            else:
                async for some in self._lines_of(index, size, cdxj.key_of(url).encode() + b" "):
                    found += cdxj.read(some, file)
            return found
        except KeyError:
            # Pruned since it was listed.
            return []
        except ValueError as error:
            what = f"the index cannot be read: {error}. Without it, and in a folder of open/, its file is read again"
            record_reader.told(ArchiveDamage(file=index, what=what), skipped)
            return []

    async def _lines_of(self, index: str, size: int, start: bytes) -> AsyncIterator[bytes]:
        """The lines of a sorted index that begin so."""
        low, high = 0, size
        while high - low > _BLOCK:
            middle = (low + high) // 2
            block = await object_reader.get(self._store, index, middle, min(_BLOCK, size - middle))
            line = block.partition(b"\n")[2].partition(b"\n")[0]
            if line and line[: len(start)] < start:
                low = middle
            else:
                high = middle
        async for some in object_reader.lines(self._store, index, low, _LINES):
            yield b"\n".join(line for line in some.split(b"\n") if line.startswith(start))
            if some.rpartition(b"\n")[2][: len(start)] > start:
                return

    async def read(self, entry: ArchiveEntry) -> ArchivedPage:
        try:
            entry, record = await self._record(entry)
            original = await self._original(entry, record) if entry.is_revisit else None
            return record_reader.page_of(entry, record, original, check=True)
        except warc_reader.Bad as error:
            raise record_reader.damaged(record_reader.damage_of(entry, error)) from error

    async def _record(self, entry: ArchiveEntry) -> tuple[ArchiveEntry, warc_reader.Record]:
        """Where it is now."""
        try:
            data = await self._data(entry)
        except warc_reader.Bad:
            entry = await self._moved(entry)
            data = await self._data(entry)
        return entry, record_reader.record_of(entry, data)

    async def _data(self, entry: ArchiveEntry) -> bytes:
        try:
            return await object_reader.get(self._store, entry.file, entry.offset, entry.length)
        except KeyError:
            raise warc_reader.Bad("its file is missing") from None

    async def _moved(self, entry: ArchiveEntry) -> ArchiveEntry:
        """It was rolled into another file since it was found."""
        wanted = ArchiveQuery(url=entry.url, since=entry.at - 1.0, until=entry.at + 1.0)
        async for found in self.entries(wanted, _other):
            if found.id == entry.id:
                return found
        raise ArchiveDamaged(
            f"{entry.url} of {warc_writer.date_of(entry.at)} is gone from the archive", hint="Was it pruned?"
        )

    async def _original(self, entry: ArchiveEntry, record: warc_reader.Record) -> warc_reader.Record:
        first = warc_reader.refers_to(record)
        async for found in self.entries(ArchiveQuery(url=first.url, until=entry.at + 1.0), _other):
            if found.digest == entry.digest and not found.is_revisit:
                return (await self._record(found))[1]
        raise warc_reader.Bad(f"its body is missing: it is that of {first.url}, {first.date}")


def _other(damage: ArchiveDamage) -> None:
    """Damage elsewhere, while one capture is looked for: a caller that does not find it says so."""
