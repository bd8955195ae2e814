"""Collects what the alert rules are evaluated on: the series of the job, its crew, its pools, the job before."""

import math
from collections import deque
from collections.abc import Mapping

from trotline.coordinator.held_back import held_back_by
from trotline.coordinator.job_eta import living, of_series
from trotline.coordinator.job_observer import Observation, Observer
from trotline.coordinator.pool_sampler import PoolSampler
from trotline.coordinator.previous_job import LastTallies
from trotline.model.job import Job, Progress, WorkerView
from trotline.model.time import Moment, Seconds
from trotline.model.work_stats import Timing
from trotline.ports.frontier import BEAT, DEAD_AFTER
from trotline.rules import commit_times, field_coverage, time_series
from trotline.rules.alerts import AlertRules, JobSample, LostWorker
from trotline.rules.eta import Range, Unknown
from trotline.rules.field_coverage import CoverageDrop, FieldCoverage, RecentCoverage
from trotline.rules.lane_survey import all_rest
from trotline.rules.time_series import FINEST, Point

COMMITS_OVER: Seconds = 60.0
"""The time over which commits are measured."""
OLD: Seconds = 120.0
"""An older survey of the lanes says nothing about now, unless the lanes are so many that they are surveyed seldom."""
_RESCUED = "rescued"
"""The counter of tasks that dead workers held."""


class AlertSampler:
    """Of one job. What it remembers between two samples is lost with its process, except the series."""

    def __init__(
        self,
        job: Job,
        observer: Observer,
        rules: AlertRules,
        *,
        last_tallies: LastTallies,
        pools: PoolSampler | None = None,
    ) -> None:
        self._job = job
        self._observer = observer
        self._rules = rules
        self._last_tallies = last_tallies
        self._pools = pools
        self._points: list[Point] = []
        self._commits: deque[tuple[Moment, dict[str, Timing]]] = deque()
        self._crew: dict[str, WorkerView] | None = None
        self._rescued = 0
        self._recent = RecentCoverage()
        self._before: list[FieldCoverage] | None = None
        """Coverage in the last job; None: not read yet."""

    async def sample(self, observation: Observation) -> JobSample:
        progress, crew = observation.progress, observation.crew
        await self._add_point(progress, crew)
        held_back = held_back_by(crew)
        return JobSample(
            job=self._job,
            progress=progress,
            points=self._points,
            estimate=self._estimate(observation, held_back),
            held_back=held_back,
            workers=living(crew),
            resting=_resting(observation),
            pools=None if self._pools is None else await self._pools.sample(progress, crew),
            commit_p95=self._commit_p95(progress.now, crew),
            drops=await self._drops(progress),
            lost=self._lost(progress, crew),
            living=[worker.name for worker in crew if worker.silent_for < DEAD_AFTER],
            broken_files=_broken_files(crew),
            archive=observation.archive,
        )

    async def _add_point(self, progress: Progress, crew: list[WorkerView]) -> None:
        if not self._points:
            self._points = await self._observer.series(FINEST, progress.now)
            if progress.now - progress.started_at < FINEST.span:
                # It began with nothing, also if the first look at it came later.
                self._points.insert(0, Point(math.floor(progress.started_at)))
        point = time_series.point_of(progress, living(crew))
        oldest = point.at - 2 * self._rules.window - self._rules.stalled
        self._points = [one for one in self._points if oldest <= one.at < point.at] + [point]

    def _estimate(self, seen: Observation, held_back: str) -> Range | Unknown | None:
        """By the lanes of the survey: to walk all of them for every sample would keep the frontier busy."""
        if not self._job.rules.deadline or seen.progress.finished_at is not None:
            return None
        lanes = seen.summary.lanes.most_waiting
        return of_series(self._points, seen.progress, lanes, held_back, alive=living(seen.crew) > 0)

    def _commit_p95(self, now: Moment, crew: list[WorkerView]) -> Seconds | None:
        timings = {worker.name: worker.about.stats.commit for worker in crew if worker.about.stats is not None}
        self._commits.append((now, timings))
        while len(self._commits) > 1 and now - self._commits[1][0] >= COMMITS_OVER:
            self._commits.popleft()
        return commit_times.p95(self._commits[0][1], timings)

    async def _drops(self, progress: Progress) -> list[CoverageDrop] | None:
        if "coverage" in self._rules.off:
            return None
        now = field_coverage.coverage(progress.tallies)
        recent = self._recent.add(now)
        least = self._rules.coverage_records
        if all(each.records < least for each in now):
            return None
        if self._before is None:
            tallies: Mapping[str, int] | None = await self._last_tallies()
            self._before = [] if tallies is None else field_coverage.coverage(tallies)
        return field_coverage.recent_drops(recent, now, self._before, fell=self._rules.coverage_clear, least=least)

    def _lost(self, progress: Progress, crew: list[WorkerView]) -> list[LostWorker]:
        """Workers that are silent; and those that are gone without having left: others have rescued their tasks, which
        is often done between two looks."""
        known, self._crew = self._crew, {worker.name: worker for worker in crew}
        before, self._rescued = self._rescued, progress.tallies.get(_RESCUED, 0)
        silent = [worker for worker in crew if worker.silent_for >= DEAD_AFTER]
        found = [LostWorker(worker.name, worker.silent_for, worker.leased, rescued=False) for worker in silent]
        if known is None:
            return found
        gone = [worker for name, worker in known.items() if name not in self._crew]
        late = [worker for worker in gone if worker.silent_for > 2 * BEAT]
        rescued = self._rescued - before
        if rescued > 0 and not late:
            # Its process ended, and that was seen at once.
            late = [worker for worker in gone if worker.leased] or gone
        return found + [LostWorker(one.name, one.silent_for + BEAT, one.leased, rescued=True) for one in late]


def _resting(observation: Observation) -> str | None:
    summary, now = observation.summary, observation.progress.now
    lanes = summary.lanes
    if not summary.at or now - summary.at >= max(OLD, 2 * summary.every):
        return None
    if lanes.probed and lanes.down + lanes.probed >= lanes.with_work:
        # The answer to the probe decides.
        return None
    return all_rest(lanes, now - summary.at)


def _broken_files(crew: list[WorkerView]) -> dict[str, str]:
    """One of each host: its workers share a file."""
    living = [worker.about for worker in crew if worker.silent_for < DEAD_AFTER]
    return {about.host or "unknown host": about.proxies_trouble for about in living if about.proxies_trouble}
