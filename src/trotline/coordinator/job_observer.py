"""Observes a job: its counters every few seconds, all its lanes now and then, kept as notes in the frontier itself.

Several processes may observe: the leader, the dashboard, `run` and `start`. Notes are written only if no other wrote
them meanwhile, so many observers of one job cost reads, and the series has one point per step. What is kept survives
every process that looks.
"""

from collections.abc import Callable, Collection
from typing import Protocol

import msgspec

from trotline.model.job import Progress, WorkerView
from trotline.model.server_load import ServerUse
from trotline.model.time import Moment, Seconds
from trotline.ports.console import Console
from trotline.ports.frontier import BEAT, DEAD_AFTER
from trotline.rules import archive_loss_note, failure_trend, fleet_rates, survey_note, time_series, worker_exit_log
from trotline.rules.archive_loss_note import ArchiveNote
from trotline.rules.lane_survey import LaneSurvey, Surveyor
from trotline.rules.pool_supply import PoolSupply
from trotline.rules.survey_note import SUMMARY, JobSummary
from trotline.rules.time_series import RESOLUTIONS, Chunk, Point, Resolution
from trotline.rules.worker_exit_log import CrewLog

OBSERVE_EVERY: Seconds = 5.0
KEPT: Seconds = 60.0
"""An observer that cannot ask for pools and servers keeps what another one found, if it is not older."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    progress: Progress
    crew: list[WorkerView]
    """Also dead ones that are not rescued yet."""
    summary: JobSummary
    log: CrewLog = CrewLog()
    """Workers that left or died."""
    archive: ArchiveNote | None = None
    """Pages that are gone from the archive; None: it is not known of any."""


class Extras(Protocol):
    """What the observer of a job may ask for beside its console: for the advice only."""

    async def pools(self, names: Collection[str]) -> list[PoolSupply]: ...

    async def servers(self) -> list[ServerUse]:
        """How busy they were since the last call."""
        ...


class Observer:
    """Of one job."""

    def __init__(self, console: Console, clock: Callable[[], Seconds], extras: Extras | None = None) -> None:
        """Without `extras`, those of another observer are kept for a while."""
        self._console = console
        self._clock = clock
        self._extras = extras
        self._before: list[WorkerView] = []
        """The crew at the last survey."""
        self._kept: dict[str, tuple[int, Chunk]] = {}
        """The chunks that are being filled, with the versions of their notes."""

    async def observe(self) -> Observation:
        progress = await self._console.progress()
        crew = await self._console.workers()
        if progress.finished_at is None or progress.now - progress.finished_at < RESOLUTIONS[1].step:
            living = sum(worker.silent_for < DEAD_AFTER for worker in crew)
            point = time_series.point_of(progress, living)
            for resolution in RESOLUTIONS:
                await self._add(point, resolution)
        log = await self._log(progress, crew)
        [archive] = await self._console.read_notes([archive_loss_note.NOTE])
        return Observation(
            progress=progress,
            crew=crew,
            summary=await self._survey(progress, crew),
            log=log,
            archive=archive_loss_note.of_job(archive, progress),
        )

    async def series(self, resolution: Resolution, now: Moment | None = None) -> list[Point]:
        """What is kept, the oldest first. `now`: the frontier's time; without it, it is asked for."""
        notes = await self._console.read_notes(resolution.notes())
        if now is None:
            now = (await self._console.progress()).now
        return time_series.joined(
            (time_series.decode(note.data) for note in notes if note is not None), now, resolution
        )

    async def _add(self, point: Point, resolution: Resolution) -> None:
        """Once more if somebody else wrote the note since we read it; then it has the point already."""
        name = resolution.note(point.at)
        for _ in range(2):
            if name not in self._kept:
                [note] = await self._console.read_notes([name])
                self._kept[name] = (note.version, time_series.decode(note.data)) if note is not None else (0, ())
            version, chunk = self._kept[name]
            if not time_series.is_new(chunk, point, resolution):
                return
            longer = time_series.add(chunk, point, resolution)
            if await self._console.write_note(name, time_series.encode(longer), version):
                self._kept = {kept: value for kept, value in self._kept.items() if not _same(kept, name)}
                self._kept[name] = (version + 1, longer)
                return
            del self._kept[name]

    async def _log(self, progress: Progress, crew: list[WorkerView]) -> CrewLog:
        """Who left. If another observer wrote it meanwhile, the next look compares with what that one saw."""
        [note] = await self._console.read_notes([worker_exit_log.NOTE])
        known = CrewLog() if note is None else worker_exit_log.decode(note.data)
        log = worker_exit_log.step(known, crew, progress, 2 * BEAT)
        if log is not known:
            await self._console.write_note(
                worker_exit_log.NOTE, worker_exit_log.encode(log), 0 if note is None else note.version
            )
        return log

    async def _survey(self, progress: Progress, crew: list[WorkerView]) -> JobSummary:
        [note] = await self._console.read_notes([SUMMARY])
        found = survey_note.decode(note.data) if note is not None else JobSummary()
        if progress.finished_at is not None or not found.due(progress.now):
            return found
        summary = await self.measure(progress, crew, found)
        await self._console.write_note(SUMMARY, survey_note.encode(summary), note.version if note is not None else 0)
        return summary

    async def measure(self, progress: Progress, crew: list[WorkerView], last: JobSummary) -> JobSummary:
        """A new summary, from the last one and what changed since the last call."""
        started = self._clock()
        steps = fleet_rates.kept(last.steps, fleet_rates.step(self._before, crew, progress.now), progress.now)
        measured = fleet_rates.flow(steps)
        lanes = await survey(self._console, measured.held if measured is not None else 0.0)
        summary = JobSummary(
            at=progress.now,
            took=self._clock() - started,
            lanes=lanes,
            failures=failure_trend.kept(last.failures, progress),
            steps=steps,
            hosts=fleet_rates.hosts_use(self._before, crew) if self._before else last.hosts,
            chains=await self._console.chains(),
        )
        self._before = crew
        return await self._with_extras(summary, last)

    async def _with_extras(self, summary: JobSummary, last: JobSummary) -> JobSummary:
        if self._extras is None:
            known = 0 <= summary.at - last.extras_at < KEPT
            return msgspec.structs.replace(
                summary,
                pools=last.pools if known else (),
                servers=last.servers if known else (),
                extras_at=last.extras_at if known else 0.0,
            )
        pools = await self._extras.pools(summary.lanes.by_pool)
        servers = await self._extras.servers()
        return msgspec.structs.replace(summary, pools=tuple(pools), servers=tuple(servers), extras_at=summary.at)


async def survey(console: Console, held: Seconds = 0.0) -> LaneSurvey:
    surveyor = Surveyor(held)
    async for page in console.all_lanes():
        surveyor.add(page)
    return surveyor.survey()


def _same(one: str, other: str) -> bool:
    """Chunks of one resolution."""
    return one.rpartition("/")[0] == other.rpartition("/")[0]
