"""The series of each job, for pages: read from the notes in its frontier, once for all viewers."""

import asyncio
import time
from collections.abc import Callable

import msgspec

from trotline.coordinator.observer import OBSERVE_EVERY
from trotline.errors import FrontierError
from trotline.model.time import Seconds
from trotline.rules.series import FINEST, Point, Resolution
from trotline.web.jobs_index import WITHIN, JobsIndex

MOST_KEPT = 300
"""Series that are kept in memory; others are read again."""


class _Kept(msgspec.Struct):
    lock: asyncio.Lock
    read_at: Seconds | None = None
    points: tuple[Point, ...] = ()


class Figures:
    def __init__(self, index: JobsIndex, clock: Callable[[], Seconds] = time.monotonic) -> None:
        self._index = index
        self._clock = clock
        self._kept: dict[tuple[str, str], _Kept] = {}

    async def series(self, job: str, resolution: Resolution = FINEST) -> tuple[Point, ...]:
        """The oldest first. While the frontier is unreachable: what was known before."""
        key = (job, resolution.name)
        kept = self._kept.get(key)
        if kept is None:
            while len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            kept = self._kept[key] = _Kept(asyncio.Lock())
        async with kept.lock:
            if kept.read_at is None or self._clock() - kept.read_at >= OBSERVE_EVERY:
                try:
                    async with self._index.opened(job) as opened, asyncio.timeout(WITHIN):
                        kept.points = tuple(await opened.observer.series(resolution))
                except FrontierError:
                    # The page says so: the snapshot of the job knows why.
                    return kept.points
                kept.read_at = self._clock()
            return kept.points
