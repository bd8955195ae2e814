"""Monitors the jobs of a spider during one term: seeding, rescue, alerts, finish, retention."""

import asyncio
import contextlib

from trotline.coordinator import job_gauges
from trotline.coordinator.alert_sample import AlertSampler
from trotline.coordinator.alert_watch import AlertWatch
from trotline.coordinator.dependencies import (
    CoordinatorEvent,
    CoordinatorParts,
    CoordinatorPolicy,
    IsLeader,
    SpiderConfig,
)
from trotline.coordinator.job_list import JobList
from trotline.coordinator.job_observer import Observation, Observer
from trotline.coordinator.merge_at_job_end import FollowUp
from trotline.coordinator.pool_sampler import PoolSampler
from trotline.coordinator.previous_job import last_tallies
from trotline.errors import FrontierError, FrontierUnreachable, SinkError, TermOver, TrotlineError
from trotline.frontier.pool_status import PoolWatch
from trotline.model.job import Job, Progress, State
from trotline.model.leadership import Term
from trotline.model.time import Moment, Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.frontier import BEAT, DEAD_AFTER

DELIVER_WITHIN: Seconds = 3600.0
"""Messages about a job that ended longer ago are not looked for."""


LAST_LOOK: Seconds = 30.0
"""A job that has ended is looked at once more after this time: workers tell of the last pages that are gone from the
archive when they close it."""


class TrackedJob:
    def __init__(
        self, job: Job, opened: OpenJob, observer: Observer, alerts: AlertWatch, pools: PoolSampler | None
    ) -> None:
        self.job = job
        self.opened = opened
        self.observer = observer
        self.alerts = alerts
        self.pools = pools
        self.seeding: asyncio.Task[None] | None = None
        self.error = ""
        """The last one that was reported."""


class JobMonitor:
    def __init__(
        self,
        name: str,
        term: Term,
        config: SpiderConfig,
        parts: CoordinatorParts,
        policy: CoordinatorPolicy,
        job_list: JobList,
        is_leader: IsLeader,
    ) -> None:
        self._name = name
        self._job_list = job_list
        self._list_version = 0
        self._term = term
        self._config = config
        self._parts = parts
        self._policy = policy
        self._is_leader = is_leader
        self._tracked: dict[str, TrackedJob] = {}
        self._checked_at = self._retired_at = float("-inf")
        self._retiring: asyncio.Task[None] | None = None
        self._cancelled: set[str] = set()
        """Jobs that were looked at for the last time: they are not announced, and would be tracked again."""
        self._draining: dict[str, asyncio.Task[None]] = {}
        """Jobs that have ended, while messages about them are delivered."""
        self._follow_up = FollowUp(parts, self._emit, policy.seed_backoff)
        self._pools = PoolWatch(parts.open_proxy_pools) if parts.open_proxy_pools is not None else None

    def check_soon(self) -> None:
        """A job was started: do not wait for the next interval."""
        self._checked_at = float("-inf")

    async def check(self, now: Moment) -> bool:
        """Were the jobs looked at? Only now and then. What failed the last time was done again then."""
        is_due = now - self._checked_at >= self._policy.monitor_every
        if is_due:
            self._checked_at = now
            await self._check_jobs()
        if not self._config.during and now - self._retired_at >= self._policy.retire_every:
            self._retired_at = now
            # In the background: a slow database must not delay a scheduled start.
            self._retiring = asyncio.create_task(self._retire(now))
        return is_due

    async def close(self) -> None:
        seeding = (tracked.seeding for tracked in self._tracked.values())
        background = [self._retiring, *self._draining.values(), *self._follow_up.tasks, *seeding]
        tasks = [task for task in background if task is not None]
        for task in tasks:
            # Cancel all of them before the first await: that await may be cancelled itself.
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for tracked in list(self._tracked.values()):
            await self._untrack(tracked, drain=False)
        if self._pools is not None:
            with contextlib.suppress(FrontierError):
                await self._pools.close()

    async def _check_jobs(self) -> None:
        scheduled = await self._scheduled_job()
        changed = await self._changed()
        for job in changed:
            if job.announced and job.id in self._tracked:
                await self._finished_elsewhere(self._tracked[job.id])
            elif job.cancelled_at is not None and job.id in self._cancelled:
                continue
            elif not job.announced:
                self._cancelled.discard(job.id)
                await self._track(job)
            elif job.id not in self._draining:
                await self._deliver_leftovers(job)
        if changed and changed[-1].announced:
            # It may have ended while no coordinator ran, or the last one died while it merged.
            self._follow(changed[-1])
        for tracked in list(self._tracked.values()):
            try:
                await self._check_job(tracked, seeds=tracked.job.id == scheduled)
            except FrontierUnreachable:
                raise
            except FrontierError as error:
                # An error of this job alone (its state is missing): check the others all the same.
                self._report_error(tracked, f"{tracked.job.id} cannot be monitored: {error.what}")
            except (TermOver, SinkError):
                raise
            except Exception as error:
                # What is read there may be damaged in ways that nobody thought of: the other jobs are not.
                self._report_error(tracked, f"{tracked.job.id} cannot be monitored: {_message(error)}")

    async def _scheduled_job(self) -> str:
        """The job that the schedule started: we seed it. Other jobs are seeded by the command that started them."""
        if self._config.during:
            return ""
        last = await self._parts.leadership.tick(self._config.spider)
        return "" if last is None else last.job

    async def _changed(self) -> list[Job]:
        """The newest job, and all jobs whenever the list was refreshed."""
        latest = await self._job_list.latest(self._config.spider)
        self._list_version, jobs = await self._job_list.changes(self._list_version)
        older = [job for job in jobs if job.spider == self._config.spider and (latest is None or job.id != latest.id)]
        return older if latest is None else [*older, latest]

    async def _track(self, job: Job) -> None:
        if job.id not in self._tracked:
            self._tracked[job.id] = self._opened(job, await self._parts.open_frontier(job))

    def _opened(self, job: Job, opened: OpenJob) -> TrackedJob:
        console, parts, plan = opened.console, self._parts, self._parts.alerts
        extras = parts.extras(job) if parts.extras is not None else None
        observer = Observer(console, parts.clock.now, extras)
        pools = None if self._pools is None else PoolSampler(console, self._pools, self._policy.pools_every)
        before = last_tallies(parts.jobs, parts.open_frontier, job)
        sampler = AlertSampler(job, observer, plan.rules, last_tallies=before, pools=pools)

        def emit(event: str, text: str, **data: object) -> None:
            self._emit(event, text, job, **data)

        alerts = AlertWatch(job, console, plan, sampler, parts.clock.now, emit)
        return TrackedJob(job, opened, observer, alerts, pools)

    async def _deliver_leftovers(self, job: Job) -> None:
        """Messages that a leader that died left in the book of a job that has ended: looked for once."""
        ended = job.ended_at or 0.0
        if not self._parts.alerts.receivers or self._term.now - ended > DELIVER_WITHIN:
            return
        opened = await self._parts.open_frontier(job)
        self._draining[job.id] = asyncio.create_task(self._drain(self._opened(job, opened)))

    def _drains(self, job: str) -> bool:
        return job in self._draining and not self._draining[job].done()

    async def _drain(self, tracked: TrackedJob, *, look_again: bool = False) -> None:
        try:
            await tracked.alerts.deliver()
            await tracked.alerts.drain()
            if look_again:
                await self._parts.clock.sleep(LAST_LOOK)
                await tracked.alerts.check(await tracked.observer.observe(), final=True)
                await tracked.alerts.drain()
        except FrontierError as error:
            self._report_error(tracked, f"{tracked.job.id}: messages about its alerts were not delivered: {error.what}")
        finally:
            await tracked.alerts.close()
            with contextlib.suppress(FrontierError):
                await tracked.opened.close()

    async def _check_job(self, tracked: TrackedJob, *, seeds: bool) -> None:
        observation = await tracked.observer.observe()
        progress = observation.progress
        ended = progress.finished_at is not None or progress.state is State.CANCELLED
        await tracked.alerts.check(observation, final=ended)
        self._show(tracked, observation)
        if progress.finished_at is not None:
            await self._finish(tracked, progress)
            return
        if progress.leased:
            await self._rescue(tracked, observation)
        if progress.state is State.CANCELLED:
            # A job that is resumed later is found again when the list is refreshed.
            self._cancelled.add(tracked.job.id)
            await self._untrack(tracked)
        elif seeds and not progress.sealed and tracked.seeding is None:
            tracked.seeding = asyncio.create_task(self._seed(tracked))

    async def _rescue(self, tracked: TrackedJob, observation: Observation) -> None:
        """Workers rescue each other's leases within a heartbeat; this is for a fleet in which all of them died."""
        if any(worker.leased and worker.silent_for > DEAD_AFTER + BEAT for worker in observation.crew):
            # `lease` rescues. The one task it may return is given back at once, with no attempt counted.
            await tracked.opened.frontier.lease(self._name, 1)
            await tracked.opened.frontier.leave(self._name)
            self._emit("job.rescued", f"{tracked.job.id}: leases of dead workers are waiting again", tracked.job)

    def _show(self, tracked: TrackedJob, observation: Observation) -> None:
        """In the metrics."""
        if self._parts.board is None:
            return
        down = tracked.pools.down if tracked.pools is not None else {}
        gauges = job_gauges.gauges(observation, tracked.alerts.firing, down)
        self._parts.board.set(tracked.job.id, gauges, self._config.spider)

    async def _finish(self, tracked: TrackedJob, progress: Progress) -> None:
        try:
            # Before the announcement: after a crash in between the next leader concludes the job again.
            await self._parts.hooks.conclude(tracked.job)
        except SinkError as error:
            self._report_error(tracked, f"{tracked.job.id} is finished, its sink is not: {error.what}")
            return
        if await tracked.opened.frontier.announce_finish():
            self._emit_finish("job.finished", tracked, progress)
            self._follow(tracked.job)
            await self._untrack(tracked, ended=True)
        else:
            await self._finished_elsewhere(tracked)

    async def _finished_elsewhere(self, tracked: TrackedJob) -> None:
        """A worker announced the finish: check the final counts once more."""
        observation = await tracked.observer.observe()
        await tracked.alerts.check(observation, final=True)
        self._show(tracked, observation)
        self._emit_finish("job.over", tracked, observation.progress)
        self._follow(tracked.job)
        await self._untrack(tracked, ended=True)

    def _follow(self, job: Job) -> None:
        if not self._config.during:
            self._follow_up.begin(job)

    def _emit_finish(self, event: str, tracked: TrackedJob, progress: Progress) -> None:
        text = f"{tracked.job.id} finished: {progress.done:,} done, {progress.dead:,} dead"
        self._emit(event, text, tracked.job, done=progress.done, dead=progress.dead)

    async def _seed(self, tracked: TrackedJob) -> None:
        """Put every seed, then seal. The next leader may repeat it: duplicates are ignored."""
        job = tracked.job
        self._emit("job.seeding", f"{job.id}: seeding", job)
        failures = 0
        while self._is_leader():
            try:
                await self._parts.hooks.seed(
                    job, tracked.opened, self._is_leader, lambda text: self._seeding(job, text)
                )
                await tracked.opened.frontier.seal()
                self._emit("job.seeded", f"{job.id}: all seeds are in", job)
                return
            except TermOver:
                return
            except FrontierError as error:
                # Not the seeds' fault: not counted as a failure.
                self._emit("job.trouble", f"{job.id}: seeding starts again: {error.what}", job)
            except Exception as error:
                # Seeds are the author's code and other people's sitemaps: any exception is possible.
                failures += 1
                if await self._gave_up(tracked, failures, _message(error)):
                    return
            await self._parts.clock.sleep(self._policy.seed_backoff * 2 ** max(0, failures - 1))

    def _seeding(self, job: Job, text: str) -> None:
        if text:
            self._emit("job.seeding", f"{job.id}: {text}", job)

    async def _gave_up(self, tracked: TrackedJob, failures: int, what: str) -> bool:
        """After some failures the job continues with the seeds it has; unsealed it would block the next run."""
        job = tracked.job
        if failures < self._policy.seed_tries:
            self._emit("job.trouble", f"{job.id}: seeding failed, retrying: {what}", job)
            return False
        self._emit("job.trouble", f"{job.id}: seeding failed, the job continues with the seeds it has: {what}", job)
        if self._is_leader():
            await tracked.opened.frontier.seal()
        return True

    async def _retire(self, now: Moment) -> None:
        spider = self._config.spider
        try:
            for job in await self._parts.leadership.retire(self._term, now - self._policy.keep):
                text = f"{job} is past its retention and was deleted"
                self._parts.emit(CoordinatorEvent(event="job.retired", spider=spider, text=text, job=job))
            await self._parts.hooks.maintain(now)
        except TermOver:
            return
        except TrotlineError as error:
            text = f"maintenance failed, retrying later: {error.what}"
            self._parts.emit(CoordinatorEvent(event="coordinator.trouble", spider=spider, text=text))

    async def _untrack(self, tracked: TrackedJob, *, drain: bool = True, ended: bool = False) -> None:
        """`drain`: deliver the messages that are left, in the background. `ended`: and look at it once more later."""
        del self._tracked[tracked.job.id]
        if self._parts.board is not None:
            self._parts.board.end(tracked.job.id)
        if tracked.seeding is not None:
            tracked.seeding.cancel()
            await asyncio.gather(tracked.seeding, return_exceptions=True)
        if drain and (ended or tracked.alerts.undelivered) and not self._drains(tracked.job.id):
            self._draining[tracked.job.id] = asyncio.create_task(self._drain(tracked, look_again=ended))
            return
        await tracked.alerts.close()
        with contextlib.suppress(FrontierError):
            await tracked.opened.close()

    def _report_error(self, tracked: TrackedJob, text: str) -> None:
        """Once for the same error."""
        if tracked.error != text:
            tracked.error = text
            self._emit("job.trouble", text, tracked.job)

    def _emit(self, event: str, text: str, job: Job, **data: object) -> None:
        self._parts.emit(CoordinatorEvent(event=event, spider=self._config.spider, text=text, job=job.id, data=data))


def _message(error: Exception) -> str:
    return error.what if isinstance(error, TrotlineError) else f"{type(error).__name__}: {error}"
