"""An archive over whole objects. Implements `ports.archive.Archive`.

open/WRITER/00000007.warc.gz         one per group commit: durable before the pages are settled
warc/DAY/FROM-TO-WRITER.warc.gz      those of one writer rolled into one, by size and by time
warc/DAY/FROM-TO-WRITER.cdxj         its index; written last, so a file with an index is whole

An object cannot be appended to, and is there whole or not at all: so a crash leaves no torn record, and no multipart
upload is ever begun.
"""

import asyncio
import logging
import re
import time
from collections import ChainMap
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple, TypedDict
from uuid import uuid4

from trotline.adapters.archive import prune, verify
from trotline.adapters.archive.capture_finder import Reader
from trotline.adapters.archive.page_reader import PageReader
from trotline.adapters.archive.roll_files import OPEN, OpenFile, Roller
from trotline.errors import ArchiveError
from trotline.model.archive import (
    ArchiveCheck,
    ArchiveCut,
    ArchivedPage,
    ArchiveEntry,
    ArchiveQuery,
    ArchiveTidied,
    Capture,
    CaptureKind,
)
from trotline.model.limits import MIB
from trotline.model.time import Moment, Seconds
from trotline.ports.archive import Skipped
from trotline.ports.object_store import ObjectStore
from trotline.rules import warc_writer
from trotline.rules.archive_urls import ArchiveUrl

log = logging.getLogger("trotline.archive")

ROLL_SIZE = 64 * MIB
"""Open objects of one writer are rolled into one file from this size on."""
_STEP = 512 * 1024
"""Bytes of bodies that are packed at once, within two milliseconds; then others have their turn. A thread would cost
more than it gives: it and the handlers would take the interpreter from each other at every page."""
_LARGE = 4 * _STEP
"""A body of this size is packed in a thread."""
ROLL_TIME: Seconds = 900.0
"""And after this time."""


class _Rolls(TypedDict, total=False):
    roll_size: int
    roll_time: Seconds


def rolls(url: ArchiveUrl) -> _Rolls:
    """What its options say about rolling."""
    found: _Rolls = {}
    if url.roll_size is not None:
        found["roll_size"] = url.roll_size
    if url.roll_time is not None:
        found["roll_time"] = url.roll_time
    return found


class _Batch(NamedTuple):
    data: bytes
    entries: list[ArchiveEntry]
    """Their offsets are those in the file that will be rolled."""
    new: dict[str, warc_writer.First]


class ObjectArchive:
    """One writer (`writer`: its name), and any number of readers."""

    def __init__(
        self,
        store: ObjectStore,
        writer: str = "",
        *,
        roll_size: int = ROLL_SIZE,
        roll_time: Seconds = ROLL_TIME,
        clock: Callable[[], Seconds] = time.monotonic,
    ) -> None:
        # Of this process only: objects of an earlier one of the same name are never written over.
        name = re.sub(r"[^A-Za-z0-9.]+", "_", writer).strip("._")[:80]
        self._writer = f"{name or 'writer'}_{uuid4().hex[:12]}"
        self._store = store
        self._reader = Reader(store)
        self._pages = PageReader(store, self._reader)
        self._roller = Roller(store)
        self._roll_size = roll_size
        self._roll_time = roll_time
        self._clock = clock
        self._open = OpenFile()
        self._number = 0
        self._writing = asyncio.Lock()
        """One batch after the other: each has a number and a file of its own."""
        self._rolling: asyncio.Task[None] | None = None
        self.lost = 0

    async def open(self) -> None:
        await self._store.check()

    async def write(self, batch: Sequence[Capture]) -> None:
        if not batch:
            return
        async with self._writing:
            packed = await _packed(batch, self._open.bodies, self._open.size)
            name = f"{OPEN}/{self._writer}/{self._number:08d}.warc.gz"
            # The same name again after an error: the object may be there although no answer came.
            await self._store.put(name, packed.data)
            self._number += 1
            self._open.add(name, packed.data, packed.entries, packed.new, self._clock())
            if self._open.size >= self._roll_size or self._clock() - self._open.since >= self._roll_time:
                self._roll()

    def _roll(self) -> None:
        """In the background. While one is under way, small objects collect."""
        if self._rolling is not None and not self._rolling.done():
            return
        full, self._open = self._open, OpenFile()
        self._rolling = asyncio.create_task(self._roll_now(full))

    async def _roll_now(self, full: OpenFile) -> None:
        try:
            lost = await self._roller.roll(self._writer, full)
        except ArchiveError as error:
            # Nothing is lost: the small objects stay, and are found. `tidy` rolls them later.
            log.warning("archive.not_rolled %s", error.what)
            return
        if lost:
            self.lost += lost
            log.warning(
                "archive.lost %s captures that %s had written are gone: their files were removed from %s/",
                lost,
                self._writer,
                OPEN,
            )

    def entries(self, wanted: ArchiveQuery, skipped: Skipped | None = None) -> AsyncIterator[ArchiveEntry]:
        return self._reader.entries(wanted, skipped)

    async def read(self, entry: ArchiveEntry) -> ArchivedPage:
        return await self._reader.read(entry)

    async def units(self, wanted: ArchiveQuery) -> list[str]:
        return await self._pages.units(wanted)

    def pages(
        self,
        wanted: ArchiveQuery,
        part: int = 0,
        parts: int = 1,
        units: Sequence[str] | None = None,
        skipped: Skipped | None = None,
    ) -> AsyncIterator[ArchivedPage]:
        return self._pages.pages(wanted, part, parts, units, skipped)

    async def check(self) -> ArchiveCheck:
        return await verify.check(self._store)

    async def prune(self, before: Moment, *, dry_run: bool = False) -> ArchiveCut:
        return await prune.prune(self._store, before, dry_run=dry_run)

    async def tidy(self, now: Moment) -> ArchiveTidied:
        return await self._roller.tidy(now, but=self._writer)

    async def close(self) -> None:
        if self._rolling is not None:
            await asyncio.gather(self._rolling, return_exceptions=True)
            self._rolling = None
        full, self._open = self._open, OpenFile()
        if full.names:
            await self._roll_now(full)
        await self._store.close()


async def _packed(batch: Sequence[Capture], known: dict[str, warc_writer.First], at: int) -> _Batch:
    """`at`: the size of what is in the file already."""
    data, entries, new, fresh = [], list[ArchiveEntry](), dict[str, warc_writer.First](), 0
    bodies = ChainMap(new, known)
    for capture in batch:
        size = len(capture.body)
        if size >= _LARGE:
            written = await asyncio.to_thread(warc_writer.encode, capture, bodies, at)
        else:
            written = warc_writer.encode(capture, bodies, at)
        entries.append(written.entry)
        if capture.kind is CaptureKind.RESPONSE and not written.entry.is_revisit:
            new[written.entry.digest] = warc_writer.First(written.entry.url, written.date)
        data.append(written.data)
        at += len(written.data)
        fresh += size
        if fresh >= _STEP:
            fresh = 0
            await asyncio.sleep(0)
    return _Batch(b"".join(data), entries, new)
