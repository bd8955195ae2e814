"""Finds and reads captures: in rolled files by their index, in open ones by reading them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from zlib import crc32

import msgspec

from trotline.adapters.objects.roll import FILE, INDEX, OPEN, ROLLED, scanned, span_of
from trotline.adapters.objects.store import ObjectStore
from trotline.errors import ArchiveDamaged
from trotline.model.archive import ArchivedPage, ArchiveEntry, ArchiveQuery
from trotline.rules import cdxj, warc, warc_reading

SMALL_INDEX = 256 * 1024
"""Bytes of an index that is read whole when one URL is looked for."""
_BLOCK = 16 * 1024
_AT_ONCE = 8


class Reader:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def entries(self, wanted: ArchiveQuery) -> AsyncIterator[ArchiveEntry]:
        seen = set[str]()
        # Open ones first: what is rolled meanwhile is found in its file, and not missed.
        for name in await self._open_files():
            for entry in await self._scanned(name):
                if wanted.fits(entry) and entry.id not in seen:
                    seen.add(entry.id)
                    yield entry
        async for found in self._indexed(wanted):
            for entry in found:
                if wanted.fits(entry) and entry.id not in seen:
                    seen.add(entry.id)
                    yield entry

    async def _open_files(self) -> list[str]:
        return [one.name for one in await self._store.listed(OPEN) if one.name.endswith(FILE)]

    async def _scanned(self, name: str) -> list[ArchiveEntry]:
        try:
            return scanned(await self._store.get(name), name)
        except KeyError:
            # Rolled since it was listed.
            return []

    async def _indexed(self, wanted: ArchiveQuery) -> AsyncIterator[list[ArchiveEntry]]:
        names = []
        for one in await self._store.listed(ROLLED):
            span = span_of(one.name)
            if span is not None and span.first <= wanted.until and span.last >= wanted.since:
                names.append((one.name, one.size))
        for start in range(0, len(names), _AT_ONCE):
            for found in await asyncio.gather(
                *(self._lines(*one, wanted.url) for one in names[start : start + _AT_ONCE])
            ):
                yield found

    async def _lines(self, index: str, size: int, url: str) -> list[ArchiveEntry]:
        """Of one index: all, or those of one URL."""
        file = index.removesuffix(INDEX) + FILE
        try:
            if not url or url.endswith("*") or size <= SMALL_INDEX:
                data = await self._store.get(index)
            else:
                data = await self._bisected(index, size, cdxj.key_of(url).encode() + b" ")
            return list(cdxj.read(data, file))
        except KeyError:
            # Pruned since it was listed.
            return []
        except ValueError as error:
            raise ArchiveDamaged(f"{index}: {error}", hint="See: trotline archive verify") from error

    async def _bisected(self, index: str, size: int, start: bytes) -> bytes:
        """The lines of a sorted index that begin so."""
        low, high = 0, size
        while high - low > _BLOCK:
            middle = (low + high) // 2
            block = await self._store.get(index, middle, min(_BLOCK, size - middle))
            line = block.partition(b"\n")[2].partition(b"\n")[0]
            if line and line[: len(start)] < start:
                low = middle
            else:
                high = middle
        found, at = b"", low
        while at < size:
            block = await self._store.get(index, at, min(4 * _BLOCK, size - at))
            found, at = found + block, at + len(block)
            last = found.rpartition(b"\n")[0].rpartition(b"\n")[2]
            if not block or (last and last[: len(start)] > start):
                break
        return b"\n".join(line for line in found.split(b"\n") if line.startswith(start))

    async def read(self, entry: ArchiveEntry) -> ArchivedPage:
        try:
            data = await self._store.get(entry.file, entry.offset, entry.length)
        except KeyError:
            entry = await self._moved(entry)
            data = await self._store.get(entry.file, entry.offset, entry.length)
        record = _record(entry, data)
        original = await self._original(entry, record) if entry.is_revisit else None
        return _page(entry, record, original)

    async def _moved(self, entry: ArchiveEntry) -> ArchiveEntry:
        """It was rolled into another file since it was found."""
        wanted = ArchiveQuery(url=entry.url, since=entry.at - 1.0, until=entry.at + 1.0)
        async for found in self.entries(wanted):
            if found.id == entry.id:
                return found
        raise ArchiveDamaged(f"{entry.url} of {warc.date_of(entry.at)} is gone from the archive", hint="Was it pruned?")

    async def _original(self, entry: ArchiveEntry, record: warc_reading.Record) -> warc_reading.Record:
        first = warc_reading.refers_to(record)
        async for found in self.entries(ArchiveQuery(url=first.url, until=entry.at + 1.0)):
            if found.digest == entry.digest and not found.is_revisit:
                return _record(found, await self._store.get(found.file, found.offset, found.length))
        raise ArchiveDamaged(
            f"the body of {entry.url} of {warc.date_of(entry.at)} is missing: it is that of {first.url}, {first.date}",
            hint="See: trotline archive verify",
        )

    async def pages(self, wanted: ArchiveQuery, part: int, parts: int) -> AsyncIterator[ArchivedPage]:
        """File by file: a file is fetched once, and holds the bodies that its revisits refer to. The first part reads
        the open files."""
        seen = set[str]()
        by_writer: dict[str, list[str]] = {}
        for name in await self._open_files() if part == 0 else ():
            by_writer.setdefault(name.split("/")[1], []).append(name)
        listed = await self._rolled(wanted)
        for name in listed:
            if crc32(name.encode()) % parts != part:
                continue
            for page in _pages(await self._fetched([name]), wanted):
                seen.add(page.entry.id)
                yield page
        for names in by_writer.values():
            there = await self._fetched(names)
            if len(there) < len(names):
                # Rolled since they were listed.
                since = [name for name in await self._rolled(wanted) if name not in listed]
                there = [*there, *await self._fetched(since)]
            for page in _pages(there, wanted):
                if page.entry.id not in seen:
                    seen.add(page.entry.id)
                    yield page

    async def _rolled(self, wanted: ArchiveQuery) -> list[str]:
        found = []
        for one in await self._store.listed(ROLLED):
            span = span_of(one.name)
            if span is not None and span.first <= wanted.until and span.last >= wanted.since:
                found.append(one.name.removesuffix(INDEX) + FILE)
        return found

    async def _fetched(self, names: list[str]) -> list[tuple[str, bytes]]:
        """Without those that are gone: rolled, or pruned."""
        found = []
        for name in names:
            try:
                found.append((name, await self._store.get(name)))
            except KeyError:
                continue
        return found


def _pages(files: list[tuple[str, bytes]], wanted: ArchiveQuery) -> Iterator[ArchivedPage]:
    originals: dict[str, warc_reading.Record] = {}
    for name, data in files:
        for offset, length, record in _records(name, data):
            entry = warc_reading.capture_of(record)
            if entry is None:
                continue
            if not entry.is_revisit and len(record.block) >= warc.LEAST_REVISIT:
                originals[entry.digest] = record
            if wanted.fits(entry):
                placed = msgspec.structs.replace(entry, file=name, offset=offset, length=length)
                original = originals.get(entry.digest) if entry.is_revisit else None
                yield _page(placed, record, original)


def _records(name: str, data: bytes) -> Iterator[tuple[int, int, warc_reading.Record]]:
    try:
        yield from warc_reading.records(data)
    except warc_reading.Bad as error:
        raise ArchiveDamaged(f"{name} is damaged: {error}", hint="See: trotline archive verify") from error


def _record(entry: ArchiveEntry, data: bytes) -> warc_reading.Record:
    for _, _, record in _records(entry.file, data):
        return record
    raise ArchiveDamaged(
        f"{entry.file} is damaged: it ends before {entry.url}, which is in its index",
        hint="See: trotline archive verify",
    )


def _page(entry: ArchiveEntry, record: warc_reading.Record, original: warc_reading.Record | None) -> ArchivedPage:
    try:
        return warc_reading.page_of(entry, record, original)
    except warc_reading.Bad as error:
        raise ArchiveDamaged(f"{entry.url} in {entry.file}: {error}", hint="See: trotline archive verify") from error
