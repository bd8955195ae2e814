"""The series and the survey of lanes of each job, for pages: read from the notes in its frontier, once for all viewers.

A job that nobody else observes is observed by looking at it: its points are kept for all who look later.
"""

import asyncio
import time
from collections.abc import Callable

import msgspec

from trotline.coordinator.observer import OBSERVE_EVERY, Observer
from trotline.errors import FrontierError
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.rules.job_summary import JobSummary
from trotline.rules.series import RESOLUTIONS, Point, Resolution
from trotline.web.jobs_index import WITHIN, JobsIndex

MOST_KEPT = 200
"""Jobs whose figures are kept in memory; the rest is read again."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept about a job."""

    summary: JobSummary = JobSummary()
    points: tuple[Point, ...] = ()
    """The oldest first, in the resolution that was asked for."""
    age: Seconds = 0.0
    """Since they were read."""


class _Kept(msgspec.Struct):
    lock: asyncio.Lock
    summary: JobSummary = JobSummary()
    observed: Seconds | None = None
    points: dict[str, tuple[Seconds, tuple[Point, ...]]] = {}


class Figures:
    def __init__(self, index: JobsIndex, clock: Callable[[], Seconds] = time.monotonic) -> None:
        self._index = index
        self._clock = clock
        self._kept: dict[str, _Kept] = {}

    async def of(self, job: str, resolution: Resolution = RESOLUTIONS[0]) -> Seen:
        """While the frontier is unreachable: what was known before."""
        kept = self._kept.get(job)
        if kept is None:
            while len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            kept = self._kept[job] = _Kept(asyncio.Lock(), points={})
        async with kept.lock:
            read, points = kept.points.get(resolution.name, (None, ()))
            now = self._clock()
            if read is None or now - read >= OBSERVE_EVERY:
                try:
                    async with self._index.opened(job) as opened, asyncio.timeout(WITHIN):
                        points = await self._read(kept, opened, resolution)
                    read = self._clock()
                    kept.points[resolution.name] = (read, points)
                except FrontierError:
                    # The page says so by its snapshot of the job.
                    read = now if read is None else read
            return Seen(summary=kept.summary, points=points, age=max(0.0, self._clock() - read))

    def forget(self, job: str) -> None:
        self._kept.pop(job, None)

    async def _read(self, kept: _Kept, opened: OpenJob, resolution: Resolution) -> tuple[Point, ...]:
        observer = Observer(opened.console, self._clock)
        if kept.observed is None or self._clock() - kept.observed >= OBSERVE_EVERY:
            kept.summary = (await observer.observe()).summary
            kept.observed = self._clock()
        return tuple(await observer.series(resolution))
