"""The scheduler: starts a spider's jobs at the ticks of its schedule."""

from trotline.coordinator.dependencies import CoordinatorEvent, CoordinatorParts, SpiderConfig
from trotline.model.job import Job
from trotline.model.leadership import Term, Tick
from trotline.model.schedule import Overlap, Schedule
from trotline.model.time import Moment, Seconds, iso
from trotline.rules import schedules

RECHECK: Seconds = 5.0
"""Interval at which a tick that waits checks whether the previous job is finished."""


class Scheduler:
    """The schedule during one term. The last tick is cached, and read again whenever it may have changed."""

    def __init__(self, term: Term, config: SpiderConfig, parts: CoordinatorParts) -> None:
        self._term = term
        self._config = config
        self._parts = parts
        self._last: Tick | None = None
        self._next: Moment = 0.0
        """Nothing is due before this."""
        self._waits_for = ""

    def forget(self) -> None:
        """A write may or may not have succeeded: read the last tick again."""
        self._last = None

    async def check(self, now: Moment) -> bool:
        """Start, or skip, the tick that is due. Was a job started?"""
        schedule = self._config.schedule
        if schedule is None:
            return False
        if self._last is None:
            self._last = await self._last_tick(schedule, now)
            self._next = schedules.upcoming(schedule, self._last.at)
        if now < self._next:
            return False
        at = schedules.due(schedule, self._last.at, now)
        if at is None:
            return False
        tick = Tick(at=at, schedule=schedule.text)
        unfinished = await self._unfinished()
        if unfinished is None:
            return await self._start(tick, schedules.shown(schedule, at))
        if schedule.overlap is Overlap.SKIP:
            await self._skip(tick, schedules.shown(schedule, at), unfinished)
        else:
            self._wait(tick, schedules.shown(schedule, at), unfinished)
            self._next = now + RECHECK
        return False

    async def _last_tick(self, schedule: Schedule, now: Moment) -> Tick:
        """The last tick; a new schedule begins now, without catching up."""
        last = await self._parts.leadership.tick(self._config.spider)
        if last is None or last.schedule != schedule.text:
            last = Tick(at=now, schedule=schedule.text)
            await self._parts.leadership.skip(self._term, last)
        upcoming = schedules.upcoming(schedule, now)
        self._emit("tick.next", f"next run {schedules.shown(schedule, upcoming)}", at=iso(upcoming))
        return last

    async def _unfinished(self) -> Job | None:
        """The spider's latest job, if it is not finished."""
        latest = await self._parts.jobs.latest(self._config.spider)
        if latest is None or latest.finished_at is not None:
            return None
        opened = await self._parts.open_frontier(latest)
        try:
            return None if await opened.frontier.finished() else latest
        finally:
            await opened.close()

    async def _start(self, tick: Tick, shown: str) -> bool:
        self.forget()
        job = await self._parts.leadership.start(self._term, tick, self._config.rules, self._config.version)
        if job is None:
            return False
        self._emit("tick.started", f"started {job.id}, the run of {shown}", job.id, at=iso(tick.at))
        return True

    async def _skip(self, tick: Tick, shown: str, unfinished: Job) -> None:
        self.forget()
        await self._parts.leadership.skip(self._term, tick)
        text = f"skipped the run of {shown}: {unfinished.id} is not finished"
        self._emit("tick.skipped", text, unfinished.id, at=iso(tick.at))

    def _wait(self, tick: Tick, shown: str, unfinished: Job) -> None:
        if self._waits_for != unfinished.id:
            self._waits_for = unfinished.id
            text = f"the run of {shown} waits until {unfinished.id} is finished"
            self._emit("tick.waits", text, unfinished.id, at=iso(tick.at))

    def _emit(self, event: str, text: str, job: str = "", **data: object) -> None:
        self._parts.emit(CoordinatorEvent(event=event, spider=self._config.spider, text=text, job=job, data=data))
