"""What the metrics endpoint shows at this moment. Filled by workers and coordinators, read at each scrape.

Counters never go back: figures of processes that have ended are added to those of the running ones. Ended jobs stay
for an hour, so that the last values are scraped.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from trotline.model.job import Progress
from trotline.model.metrics import KEPT_AFTER_END, MOST_JOBS, JobGauges, WorkerFigures
from trotline.model.time import Seconds
from trotline.model.work_stats import total

Clock = Callable[[], Seconds]
Kept = TypeVar("Kept")


class WorkerBoard:
    """The figures of this machine's workers, by job."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: dict[str, Callable[[], WorkerFigures]] = {}
        self._ended: dict[str, tuple[Seconds, WorkerFigures]] = {}

    def begin(self, job: str, figures: Callable[[], WorkerFigures]) -> None:
        self._running[job] = figures

    def end(self, job: str) -> None:
        """Its processes have ended; it may begin again."""
        if (figures := self._running.pop(job, None)) is not None:
            _, before = self._ended.pop(job, (0.0, WorkerFigures()))
            self._ended[job] = self._clock(), _only_counters(_together(before, figures()))

    def workers(self) -> dict[str, WorkerFigures]:
        _forget_old(self._ended, self._clock(), set(self._running))
        found = {job: figures for job, (_, figures) in self._ended.items()}
        for job, figures in self._running.items():
            found[job] = _together(found[job], figures()) if job in found else figures()
        return found


class JobBoard:
    """The state of jobs, from the process that leads them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: dict[str, JobGauges] = {}
        self._ended: dict[str, tuple[Seconds, JobGauges]] = {}
        self._spiders: dict[str, str] = {}
        self.leading: dict[str, bool] = {}
        """By spider: do we lead? Not there: no coordinator runs here."""

    def set(self, job: str, gauges: JobGauges, spider: str = "") -> None:
        self._ended.pop(job, None)
        self._running[job] = gauges
        self._spiders[job] = spider

    def end(self, job: str) -> None:
        if (gauges := self._running.pop(job, None)) is not None:
            self._ended[job] = self._clock(), gauges

    def drop(self, spider: str) -> None:
        """Another process leads the jobs of this spider now: ours would be out of date."""
        for job in [job for job, of in self._spiders.items() if of == spider]:
            self._running.pop(job, None)
            self._ended.pop(job, None)
            del self._spiders[job]

    def jobs(self) -> dict[str, JobGauges]:
        _forget_old(self._ended, self._clock(), set(self._running))
        self._spiders = {job: of for job, of in self._spiders.items() if job in self._running or job in self._ended}
        found = {job: gauges for job, (_, gauges) in self._ended.items()} | self._running
        return dict(list(found.items())[-MOST_JOBS:])


def gauges_of(progress: Progress) -> JobGauges:
    """What the counters of a job say."""
    states = ("waiting", "leased", "done", "dead")
    return JobGauges(
        tasks={state: getattr(progress, state) for state in states},
        delayed=progress.delayed,
        state="finished" if progress.finished_at is not None else progress.state.value,
    )


def _together(before: WorkerFigures, now: WorkerFigures) -> WorkerFigures:
    """`now` with the counters of processes that ended before."""
    stats = msgspec.structs.replace(total((before.stats, now.stats)), lag=now.stats.lag)
    return msgspec.structs.replace(now, stats=stats, restarts=before.restarts + now.restarts)


def _only_counters(figures: WorkerFigures) -> WorkerFigures:
    return WorkerFigures(stats=msgspec.structs.replace(figures.stats, lag=0.0), restarts=figures.restarts)


def _forget_old(ended: dict[str, tuple[Seconds, Kept]], now: Seconds, running: set[str]) -> None:
    """The jobs that ended long ago, and the oldest of too many."""
    finished = [job for job in ended if job not in running]
    for place, job in enumerate(finished):
        if now - ended[job][0] >= KEPT_AFTER_END or place < len(finished) - MOST_JOBS:
            del ended[job]
