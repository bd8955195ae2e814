"""The newest figures of each job: read once a second at most, whatever the number of viewers, and kept while the
frontier is unreachable."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

import msgspec

from trotline.errors import FrontierError
from trotline.model.job import Job, Progress, WorkerView
from trotline.model.time import Seconds
from trotline.web.job_views import JobView, job_view, known_by_name
from trotline.web.jobs_index import WITHIN, JobsIndex, Place

FRESH: Seconds = 1.0
ENDED_FRESH: Seconds = 30.0
"""The figures of a job that has ended change when it is revived; then its entry in the list changes, too."""
_RATE_WINDOW: Seconds = 15.0
MOST_KEPT = 1000


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One look at a job."""

    view: JobView
    progress: Progress | None = None
    """None: it was never read."""
    crew: list[WorkerView] = []


class _Kept(msgspec.Struct, kw_only=True):
    lock: asyncio.Lock
    read_at: Seconds | None = None
    job: Job | None = None
    snapshot: Snapshot | None = None
    pages: deque[tuple[Seconds, int]] = msgspec.field(default_factory=lambda: deque(maxlen=30))


class Snapshots:
    def __init__(self, index: JobsIndex, clock: Callable[[], Seconds] = time.monotonic) -> None:
        self._index = index
        self._clock = clock
        self._kept: dict[tuple[str, str], _Kept] = {}

    async def of(self, job: str) -> Snapshot:
        """404: there is no such job. While its frontier is unreachable: the last known one."""
        place, found = await self._index.find(job)
        return await self.look(place, found)

    async def look(self, place: Place, job: Job) -> Snapshot:
        key = (place.url, job.id)
        kept = self._kept.get(key)
        if kept is None:
            self._make_room()
            kept = self._kept[key] = _Kept(lock=asyncio.Lock())
        async with kept.lock:
            if kept.snapshot is not None and not self._is_stale(kept, job):
                return kept.snapshot
            try:
                return await self._read(kept, place, job)
            except FrontierError as error:
                return self._last_known(kept, place, job, error.what)

    def forget(self, job: str) -> None:
        """It was changed by us: the next look reads it anew."""
        for (_, name), kept in self._kept.items():
            if name == job:
                kept.read_at = None

    def _is_stale(self, kept: _Kept, job: Job) -> bool:
        if kept.read_at is None or kept.job != job:
            return True
        fresh = FRESH if job.finished_at is None else ENDED_FRESH
        return self._clock() - kept.read_at >= fresh

    async def _read(self, kept: _Kept, place: Place, job: Job) -> Snapshot:
        async with self._index.opened(job.id) as opened, asyncio.timeout(WITHIN):
            progress = await opened.console.progress()
            crew = await opened.console.workers() if progress.finished_at is None else []
        now = self._clock()
        kept.pages.append((now, progress.ended))
        view = job_view(place.url, job, progress, crew, _rate(kept.pages, now))
        kept.snapshot = Snapshot(view=view, progress=progress, crew=crew)
        kept.read_at, kept.job = now, job
        return kept.snapshot

    def _last_known(self, kept: _Kept, place: Place, job: Job, why: str) -> Snapshot:
        if kept.snapshot is None or kept.read_at is None:
            view = msgspec.structs.replace(known_by_name(place.url, job), unreachable=why)
            return Snapshot(view=view)
        age = round(self._clock() - kept.read_at, 1)
        view = msgspec.structs.replace(kept.snapshot.view, age=age, unreachable=why, pages_per_second=None)
        return msgspec.structs.replace(kept.snapshot, view=view)

    def _make_room(self) -> None:
        while len(self._kept) >= MOST_KEPT:
            del self._kept[next(iter(self._kept))]


def _rate(pages: "deque[tuple[Seconds, int]]", now: Seconds) -> float | None:
    """Pages per second between the looks of the last seconds."""
    while len(pages) > 2 and now - pages[0][0] > _RATE_WINDOW:
        pages.popleft()
    (since, before), (until, after) = pages[0], pages[-1]
    if until <= since or after < before:
        return None
    return round((after - before) / (until - since), 3)
