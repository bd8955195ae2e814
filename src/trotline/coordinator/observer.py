"""Observes a job: its counters every few seconds, all its lanes now and then, kept as notes in the frontier itself.

Whoever looks may observe: the leader, the dashboard, `run` and `start`. Notes are written only if nobody else wrote
them meanwhile, so many observers of one job cost reads, and the series has one point per step. What is kept survives
every process that looks.
"""

from collections.abc import Callable

import msgspec

from trotline.model.job import Progress, WorkerView
from trotline.model.time import Seconds
from trotline.ports.console import Console
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules import job_summary, series
from trotline.rules.job_summary import SUMMARY, JobSummary
from trotline.rules.lane_survey import LaneSurvey, Surveyor
from trotline.rules.series import RESOLUTIONS, Chunk, Point, Resolution

OBSERVE_EVERY: Seconds = 5.0


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    progress: Progress
    crew: list[WorkerView]
    """Also dead ones that are not rescued yet."""
    summary: JobSummary


class Observer:
    """Of one job."""

    def __init__(self, console: Console, clock: Callable[[], Seconds]) -> None:
        self._console = console
        self._clock = clock
        self._kept: dict[str, tuple[int, Chunk]] = {}
        """The chunks that are being filled, with the versions of their notes."""

    async def observe(self) -> Observation:
        progress = await self._console.progress()
        crew = await self._console.workers()
        if progress.finished_at is None or progress.now - progress.finished_at < RESOLUTIONS[1].step:
            living = sum(worker.silent_for < DEAD_AFTER for worker in crew)
            point = series.point_of(progress, living)
            for resolution in RESOLUTIONS:
                await self._add(point, resolution)
        return Observation(progress=progress, crew=crew, summary=await self._survey(progress))

    async def series(self, resolution: Resolution) -> list[Point]:
        """What is kept, the oldest first."""
        names = resolution.notes()
        notes = await self._console.read_notes(names)
        now = (await self._console.progress()).now
        return series.joined((series.decode(note.data) for note in notes if note is not None), now, resolution)

    async def _add(self, point: Point, resolution: Resolution) -> None:
        """Once more if somebody else wrote the note since we read it; then it has the point already."""
        name = resolution.note(point.at)
        for _ in range(2):
            if name not in self._kept:
                [note] = await self._console.read_notes([name])
                self._kept[name] = (note.version, series.decode(note.data)) if note is not None else (0, ())
            version, chunk = self._kept[name]
            if not series.is_new(chunk, point, resolution):
                return
            longer = series.add(chunk, point, resolution)
            if await self._console.write_note(name, series.encode(longer), version):
                self._kept = {kept: value for kept, value in self._kept.items() if not _same(kept, name)}
                self._kept[name] = (version + 1, longer)
                return
            del self._kept[name]

    async def _survey(self, progress: Progress) -> JobSummary:
        [note] = await self._console.read_notes([SUMMARY])
        found = job_summary.decode(note.data) if note is not None else JobSummary()
        if progress.finished_at is not None or not found.due(progress.now):
            return found
        started = self._clock()
        lanes = await survey(self._console)
        summary = JobSummary(at=progress.now, took=self._clock() - started, lanes=lanes)
        await self._console.write_note(SUMMARY, job_summary.encode(summary), note.version if note is not None else 0)
        return summary


async def survey(console: Console) -> LaneSurvey:
    surveyor = Surveyor()
    async for page in console.all_lanes():
        surveyor.add(page)
    return surveyor.survey()


def _same(one: str, other: str) -> bool:
    """Chunks of one resolution."""
    return one.rpartition("/")[0] == other.rpartition("/")[0]
