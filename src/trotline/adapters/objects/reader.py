"""Finds and reads captures: in rolled files by their index, in open ones by reading them."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from zlib import crc32

import msgspec

from trotline.adapters.objects.roll import FILE, INDEX, OPEN, ROLLED, scanned, span_of
from trotline.errors import ArchiveDamaged
from trotline.model.archive import ArchivedPage, ArchiveEntry, ArchiveQuery
from trotline.ports.object_store import ObjectStore
from trotline.rules import cdxj, warc, warc_reading

SMALL_INDEX = 256 * 1024
"""Bytes of an index that is read whole when one URL is looked for."""
_BLOCK = 16 * 1024
_AT_ONCE = 8
_MOST_BODIES = 32
"""Bodies that are kept for the next revisit of them."""
_VERIFY = "See: trotline archive verify"


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
            raise ArchiveDamaged(f"{index}: {error}", hint=_VERIFY) from error

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
        return _page(entry, record, original, check=True)

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
            hint=_VERIFY,
        )

    async def units(self, wanted: ArchiveQuery) -> list[str]:
        """Open ones first: they are read before they are rolled."""
        writers = {name.rpartition("/")[0]: None for name in await self._open_files()}
        return [*writers, *await self._rolled(wanted)]

    async def _rolled(self, wanted: ArchiveQuery) -> list[str]:
        """Their indexes."""
        found = []
        for one in await self._store.listed(ROLLED):
            span = span_of(one.name)
            if span is not None and span.first <= wanted.until and span.last >= wanted.since:
                found.append(one.name)
        return found

    async def pages(self, wanted: ArchiveQuery, part: int, parts: int, unit: str) -> AsyncIterator[ArchivedPage]:
        """Each part of a rolled file is read by itself; what a writer has not rolled is read by one part."""
        seen = set[str]()
        for each in [unit] if unit else await self.units(wanted):
            if not each.startswith(f"{OPEN}/"):
                found = self._of_rolled(each, wanted, part, parts)
            elif crc32(each.encode()) % parts == part:
                found = self._of_open(each, wanted)
            else:
                continue
            async for page in found:
                if page.entry.id not in seen:
                    seen.add(page.entry.id)
                    yield page

    async def _of_rolled(
        self, index: str, wanted: ArchiveQuery, part: int = 0, parts: int = 1
    ) -> AsyncIterator[ArchivedPage]:
        """By the index: what is not wanted is neither fetched nor unpacked."""
        entries = sorted(await self._lines(index, 0, ""), key=lambda entry: entry.offset)
        count = len(entries)
        chosen = [one for one in entries[count * part // parts : count * (part + 1) // parts] if wanted.fits(one)]
        if not chosen:
            return
        start, end = chosen[0].offset, chosen[-1].offset + chosen[-1].length
        try:
            data = await self._store.get(chosen[0].file, start, end - start)
        except KeyError:
            # Pruned since it was listed.
            return
        bodies = _Bodies(self._store, entries) if any(one.is_revisit for one in chosen) else None
        for one in chosen:
            record = _record(one, data[one.offset - start : one.offset - start + one.length])
            original = await bodies.of(one) if bodies is not None and one.is_revisit else None
            yield _page(one, record, original)

    async def _of_open(self, writer: str, wanted: ArchiveQuery) -> AsyncIterator[ArchivedPage]:
        names = [one.name for one in await self._store.listed(writer) if one.name.endswith(FILE)]
        there = await self._fetched(names)
        for page in _pages(there, wanted):
            yield page
        if len(there) < len(names) or not names:
            # Rolled since they were listed.
            mark = f"-{writer.rpartition('/')[2]}_"
            for index in await self._rolled(wanted):
                if mark in index:
                    async for page in self._of_rolled(index, wanted):
                        yield page

    async def _fetched(self, names: list[str]) -> list[tuple[str, bytes]]:
        """Without those that are gone: rolled, or pruned."""
        found = []
        for name in names:
            try:
                found.append((name, await self._store.get(name)))
            except KeyError:
                continue
        return found


class _Bodies:
    """The records that revisits of one file refer to."""

    def __init__(self, store: ObjectStore, entries: Sequence[ArchiveEntry]) -> None:
        self._store = store
        self._entries = {one.digest: one for one in reversed(entries) if not one.is_revisit}
        self._read: dict[str, warc_reading.Record] = {}

    async def of(self, entry: ArchiveEntry) -> warc_reading.Record:
        if entry.digest not in self._read:
            first = self._entries.get(entry.digest)
            if first is None:
                raise ArchiveDamaged(f"{entry.url} in {entry.file}: its body is not there", hint=_VERIFY)
            if len(self._read) >= _MOST_BODIES:
                del self._read[next(iter(self._read))]
            data = await self._store.get(first.file, first.offset, first.length)
            self._read[entry.digest] = _record(first, data)
        return self._read[entry.digest]


def _pages(files: list[tuple[str, bytes]], wanted: ArchiveQuery) -> Iterator[ArchivedPage]:
    """Of files without an index."""
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
        raise ArchiveDamaged(f"{name} is damaged: {error}", hint=_VERIFY) from error


def _record(entry: ArchiveEntry, data: bytes) -> warc_reading.Record:
    try:
        record = warc_reading.record(data)
        if warc_reading.id_of(record) != entry.id:
            raise warc_reading.Bad("the index has another place for it")
    except warc_reading.Bad as error:
        raise ArchiveDamaged(f"{entry.file} is damaged at {entry.url}: {error}", hint=_VERIFY) from error
    return record


def _page(
    entry: ArchiveEntry, record: warc_reading.Record, original: warc_reading.Record | None, *, check: bool = False
) -> ArchivedPage:
    try:
        page = warc_reading.page_of(entry, record, original)
        if check or (entry.is_revisit and original is None):
            warc_reading.check_digest(page, record)
        return page
    except warc_reading.Bad as error:
        raise ArchiveDamaged(f"{entry.url} in {entry.file}: {error}", hint=_VERIFY) from error
