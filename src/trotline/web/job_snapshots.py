"""The newest figures of each job: read once a second at most, whatever the number of viewers, and kept while the
frontier is unreachable.

Looking at a job also observes it (coordinator/job_observer.py): its series has no gap while a dashboard is open, even
where no coordinator runs.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from trotline.commands.open_pools import pool_watch
from trotline.coordinator import job_eta
from trotline.coordinator.held_back import held_back_of
from trotline.coordinator.job_observer import OBSERVE_EVERY, Observation
from trotline.errors import FrontierError
from trotline.model.job import Job, Progress, State, WorkerView
from trotline.model.time import Seconds
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules.eta import Range, Unknown
from trotline.rules.job_figures import Figures, figures
from trotline.rules.lane_survey import all_rest, rests_after_failures
from trotline.rules.pool_trouble_texts import trouble_line, trouble_lines
from trotline.rules.pool_troubles import PoolTrouble, holds_all, in_question, served_by
from trotline.rules.survey_note import JobSummary
from trotline.rules.time_series import FINEST, Point, rates
from trotline.rules.worker_exit_log import CrewLog
from trotline.web.errors import Refused
from trotline.web.job_views import JobView, job_view, known_by_name
from trotline.web.jobs_index import WITHIN, JobsIndex, Opened, Place

FRESH: Seconds = 1.0
ENDED_FRESH: Seconds = 30.0
"""The figures of a job that has ended change when it is revived; then its entry in the list changes, too."""
POOLS_EVERY: Seconds = 10.0
"""The proxy pools of a job whose lanes wait are looked at so often."""
RATE_WINDOW: Seconds = 15.0
"""Pages per second are those of the last seconds."""
GAP: Seconds = 3 * OBSERVE_EVERY
"""Nobody observed the job for longer: the frontier was unreachable, or no process looked."""
MOST_KEPT = 1000
PATIENCE: Seconds = 0.5
"""A look waits so long for an observation; then it shows the one before."""
OBSERVE_WITHIN: Seconds = 120.0
OBSERVED = 50
"""Unfinished jobs that are observed although nobody looks at them, the newest."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One look at a job."""

    view: JobView
    progress: Progress | None = None
    """None: it was never read."""
    crew: list[WorkerView] = []
    summary: JobSummary = JobSummary()
    log: CrewLog = CrewLog()
    """Workers that left or died."""
    points: Sequence[Point] = ()
    """Of the last hour, the newest from this look."""
    troubles: Mapping[str, str] = {}
    """Lane -> why its tasks wait for their proxy pool."""

    @property
    def figures(self) -> Figures | None:
        return None if self.progress is None else figures(self.progress)


class PoolsLook(msgspec.Struct, frozen=True):
    """The proxy pools of a job at one time."""

    at: Seconds
    troubles: Sequence[PoolTrouble]
    hold_all: bool
    """No task can be visited before one of these is over."""

    @property
    def held_back(self) -> str:
        return "; ".join(trouble_lines(self.troubles, 1)) if self.hold_all else ""


class _Kept(msgspec.Struct, kw_only=True):
    lock: asyncio.Lock
    read_at: Seconds | None = None
    changed: bool = False
    """By us, since it was read."""
    observed_at: Seconds | None = None
    job: Job | None = None
    snapshot: Snapshot | None = None
    points: list[Point] = []
    summary: JobSummary = JobSummary()
    log: CrewLog = CrewLog()
    pools: PoolsLook | None = None
    observing: asyncio.Task[None] | None = None


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
                async with self._index.opened(job.id) as opened, asyncio.timeout(WITHIN):
                    kept.snapshot = await self._read(kept, place, job, opened)
            except FrontierError as error:
                return self._last_known(kept, place, job, error.what)
            kept.read_at, kept.job, kept.changed = self._clock(), job, False
            return kept.snapshot

    def forget(self, job: str) -> None:
        """It was changed by us: the next look reads it anew."""
        for (_, name), kept in self._kept.items():
            if name == job:
                kept.changed = True

    async def observe_all(self) -> None:
        """Every few seconds, so that series have no gaps while nobody looks."""
        while True:
            places = await self._index.places()
            jobs = [(place, job) for place in places for job in place.jobs.values() if job.ended_at is None]
            for place, job in sorted(jobs, key=lambda one: -one[1].started_at)[:OBSERVED]:
                await self.look(place, job)
            await asyncio.sleep(OBSERVE_EVERY)

    def _is_stale(self, kept: _Kept, job: Job) -> bool:
        if kept.read_at is None or kept.changed or kept.job != job:
            return True
        fresh = FRESH if job.finished_at is None else ENDED_FRESH
        return self._clock() - kept.read_at >= fresh

    async def _read(self, kept: _Kept, place: Place, job: Job, opened: Opened) -> Snapshot:
        if kept.observing is None and (kept.observed_at is None or self._clock() - kept.observed_at >= OBSERVE_EVERY):
            kept.observing = asyncio.create_task(self._observe(kept, place, job.id))
        if kept.observing is not None:
            await asyncio.wait([kept.observing], timeout=PATIENCE)
        progress = await opened.console.progress()
        crew = await opened.console.workers()
        summary = kept.summary
        if progress.finished_at is not None:
            # After the end a late heartbeat may still list a worker that has left.
            crew = []
        points = _with_now(kept.points, progress)
        pools = kept.pools if kept.pools is not None and progress.state is State.RUNNING and crew else None
        held_back = progress.missing or await held_back_of(opened.console, job, crew) or progress.broker
        if pools is not None and not progress.leased:
            held_back = held_back or pools.held_back
        stands = Unknown.POOLS if pools is not None and pools.hold_all and not progress.leased else None
        eta = _eta(points, progress, crew, summary, held_back, stands)
        view = job_view(place.url, job, progress, crew, held_back, _rate(points, progress), eta)
        found = pools.troubles if pools is not None else ()
        view = msgspec.structs.replace(view, pool_troubles=tuple(trouble_lines(found)))
        return Snapshot(
            view=view,
            progress=progress,
            crew=crew,
            summary=summary,
            log=kept.log,
            points=points,
            troubles={trouble.lane: trouble_line(trouble) for trouble in found},
        )

    async def _observe(self, kept: _Kept, place: Place, job: str) -> None:
        """Besides the look: a survey of a hundred thousand lanes takes longer than a page may."""
        try:
            async with self._index.opened(job) as opened, asyncio.timeout(OBSERVE_WITHIN):
                seen = await opened.observer.observe()
                kept.points = await opened.observer.series(FINEST, seen.progress.now)
                kept.summary, kept.log = seen.summary, seen.log
                if kept.pools is None or self._clock() - kept.pools.at >= POOLS_EVERY:
                    kept.pools = await self._pools(place, opened, seen)
        except (FrontierError, Refused):
            # The look itself says why the job cannot be read.
            return
        finally:
            kept.observed_at, kept.observing = self._clock(), None

    async def _pools(self, place: Place, opened: Opened, seen: Observation) -> PoolsLook:
        ended = seen.progress.finished_at is not None
        lanes = [] if ended else await opened.console.lanes()
        if not any(map(in_question, lanes)):
            return PoolsLook(self._clock(), (), hold_all=False)
        served = served_by([worker for worker in seen.crew if worker.silent_for < DEAD_AFTER])
        async with pool_watch(place.url) as pools:
            troubles = await pools.troubles(lanes, served, seen.progress.tallies)
        return PoolsLook(self._clock(), troubles, hold_all=holds_all(lanes, troubles, seen.progress.waiting))

    def _last_known(self, kept: _Kept, place: Place, job: Job, why: str) -> Snapshot:
        if kept.snapshot is None or kept.read_at is None:
            view = msgspec.structs.replace(known_by_name(place.url, job), unreachable=why)
            return Snapshot(view=view)
        age = round(self._clock() - kept.read_at, 1)
        view = msgspec.structs.replace(kept.snapshot.view, age=age, unreachable=why, pages_per_second=None, eta=None)
        return msgspec.structs.replace(kept.snapshot, view=view)

    def _make_room(self) -> None:
        while len(self._kept) >= MOST_KEPT:
            del self._kept[next(iter(self._kept))]


def _with_now(points: list[Point], progress: Progress) -> list[Point]:
    now = Point(
        at=int(progress.now), waiting=progress.waiting, leased=progress.leased, done=progress.done, dead=progress.dead
    )
    return [*(point for point in points if point.at < now.at), now]


def _rate(points: list[Point], progress: Progress) -> float | None:
    """Pages per second over the last seconds; None until two looks are known."""
    if progress.finished_at is not None:
        return 0.0
    since = progress.now - RATE_WINDOW
    # One point before the window, so that it is covered; but not from before a gap: an outage is no slow job.
    first = max((place for place, point in enumerate(points) if point.at <= since), default=0)
    recent = points[first:]
    for place in range(len(recent) - 1, 0, -1):
        if recent[place].at - recent[place - 1].at > GAP:
            recent = recent[place:]
            break
    found = rates([recent[0], recent[-1]] if len(recent) >= 2 else [])
    return round(found[0].ended, 3) if found else None


def _eta(
    points: list[Point],
    progress: Progress,
    crew: list[WorkerView],
    summary: JobSummary,
    held_back: str,
    stands: Unknown | None,
) -> Range | Unknown | None:
    if progress.finished_at is not None:
        return None
    first = summary.lanes.next_probe
    if first is not None and rests_after_failures(first) and all_rest(summary.lanes, progress.now - summary.at):
        stands = stands or Unknown.RESTING
    alive = job_eta.living(crew) > 0
    if stands is not None and job_eta.no_estimate(progress, held_back, alive=alive) is None:
        return stands
    return job_eta.of_series(
        points[:-1],
        progress,
        summary.lanes.most_waiting,
        held_back,
        alive=alive,
    )
