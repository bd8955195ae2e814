"""The series and the alerts of each job, for pages: read from the notes in its frontier, once for all viewers."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

import msgspec

from trotline.coordinator.job_observer import OBSERVE_EVERY
from trotline.errors import FrontierError
from trotline.model.alert import AlertBook
from trotline.model.time import Moment, Seconds
from trotline.rules import alert_states, archive_loss_note, merge_note
from trotline.rules.archive_loss_note import ArchiveNote
from trotline.rules.merge_note import MergeNote
from trotline.rules.time_series import FINEST, Point, Resolution
from trotline.web.jobs_index import WITHIN, JobsIndex, Opened

MOST_KEPT = 500
"""Series and alerts that are kept in memory; others are read again."""
T = TypeVar("T")


class _Kept(msgspec.Struct):
    lock: asyncio.Lock
    read_at: Seconds | None = None
    value: object = None


class _Alerts(NamedTuple):
    book: AlertBook = AlertBook()
    now: Moment = 0.0
    read_at: Seconds = 0.0


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
        return (await self._alerts(job)).book

    async def merge(self, job: str) -> MergeNote | None:
        """What the merge after the job gave. None: there was none, or it is not known."""

        async def read(opened: Opened) -> MergeNote | None:
            [note] = await opened.console.read_notes([merge_note.NOTE])
            return merge_note.decode(note.data) if note is not None else None

        return await self._of(job, "merge", read, None)

    async def archive(self, job: str) -> ArchiveNote | None:
        """Pages that are gone from the archive. None: it is not known of any."""

        async def read(opened: Opened) -> ArchiveNote | None:
            [note] = await opened.console.read_notes([archive_loss_note.NOTE])
            if note is None:
                return None
            return archive_loss_note.of_job(note, await opened.console.progress())

        return await self._of(job, "archive", read, None)

    async def alerts_checked(self, job: str) -> Seconds | None:
        """How long ago a process evaluated the alert rules; None: none did, or that is not known."""
        found = await self._alerts(job)
        if not found.book.checked_at:
            return None
        return max(0.0, found.now - found.book.checked_at) + self._clock() - found.read_at

    async def _alerts(self, job: str) -> "_Alerts":
        async def read(opened: Opened) -> _Alerts:
            [note] = await opened.console.read_notes([alert_states.NOTE])
            book = AlertBook() if note is None else alert_states.decode(note.data)
            # Its times are those of the frontier.
            return _Alerts(book, (await opened.console.progress()).now, self._clock())

        return await self._of(job, "alerts", read, _Alerts())

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
