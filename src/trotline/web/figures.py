"""The series and the alerts of each job, for pages: read from the notes in its frontier, once for all viewers."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from trotline.coordinator.observer import OBSERVE_EVERY
from trotline.errors import FrontierError
from trotline.model.alert import AlertBook
from trotline.model.time import Seconds
from trotline.rules import alert_book
from trotline.rules.series import FINEST, Point, Resolution
from trotline.web.jobs_index import WITHIN, JobsIndex, Opened

MOST_KEPT = 500
"""Series and alerts that are kept in memory; others are read again."""
T = TypeVar("T")


class _Kept(msgspec.Struct):
    lock: asyncio.Lock
    read_at: Seconds | None = None
    value: object = None


class Figures:
    def __init__(self, index: JobsIndex, clock: Callable[[], Seconds] = time.monotonic) -> None:
        self._index = index
        self._clock = clock
        self._kept: dict[tuple[str, str], _Kept] = {}

    async def series(self, job: str, resolution: Resolution = FINEST) -> tuple[Point, ...]:
        """The oldest first. While the frontier is unreachable: what was known before."""

        async def read(opened: Opened) -> tuple[Point, ...]:
            return tuple(await opened.observer.series(resolution))

        return await self._of(job, f"series {resolution.name}", read, ())

    async def alerts(self, job: str) -> AlertBook:
        """While the frontier is unreachable: what was known before."""

        async def read(opened: Opened) -> AlertBook:
            [note] = await opened.console.read_notes([alert_book.NOTE])
            return AlertBook() if note is None else alert_book.decode(note.data)

        return await self._of(job, "alerts", read, AlertBook())

    async def _of(self, job: str, what: str, read: Callable[[Opened], Awaitable[T]], nothing: T) -> T:
        kept = self._kept.get((job, what))
        if kept is None:
            while len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            kept = self._kept[job, what] = _Kept(asyncio.Lock(), value=nothing)
        async with kept.lock:
            if kept.read_at is None or self._clock() - kept.read_at >= OBSERVE_EVERY:
                try:
                    async with self._index.opened(job) as opened, asyncio.timeout(WITHIN):
                        kept.value = await read(opened)
                except FrontierError:
                    # The page says so: the snapshot of the job knows why.
                    return kept.value  # type: ignore[return-value]
                kept.read_at = self._clock()
            return kept.value  # type: ignore[return-value]
