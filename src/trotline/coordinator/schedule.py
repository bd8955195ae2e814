"""Starts a spider's jobs when their time has come."""

from trotline.coordinator.tools import Charge, News, Tools
from trotline.model.job import Job
from trotline.model.leadership import Term, Tick
from trotline.model.schedule import Overlap, Schedule
from trotline.model.time import Moment, Seconds, iso
from trotline.rules import schedules

LOOK_AGAIN: Seconds = 5.0
"""How often a tick that waits looks whether the job before is finished."""


class Timetable:
    """One term's view of the schedule. What is remembered on the server is read again whenever it may have changed."""

    def __init__(self, term: Term, charge: Charge, tools: Tools) -> None:
        self._term = term
        self._charge = charge
        self._tools = tools
        self._last: Tick | None = None
        self._coming: Moment = 0.0
        """Nothing is due before."""
        self._waits_for = ""

    def forget(self) -> None:
        """A deed may or may not have been done: ask the server before the next one."""
        self._last = None

    async def look(self, now: Moment) -> bool:
        """Start, or pass over, the tick that is due. Was a job started?"""
        schedule = self._charge.schedule
        if schedule is None:
            return False
        if self._last is None:
            self._last = await self._known(schedule, now)
            self._coming = schedules.upcoming(schedule, self._last.at)
        if now < self._coming:
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
            self._coming = now + LOOK_AGAIN
        return False

    async def _known(self, schedule: Schedule, now: Moment) -> Tick:
        """The last tick; a schedule that is new here begins now, and owes nothing for the time before."""
        last = await self._tools.leadership.tick(self._charge.spider)
        if last is None or last.schedule != schedule.text:
            last = Tick(at=now, schedule=schedule.text)
            await self._tools.leadership.skip(self._term, last)
        self._tell_next(schedule, now)
        return last

    def _tell_next(self, schedule: Schedule, now: Moment) -> None:
        coming = schedules.upcoming(schedule, now)
        self._tell("tick.next", f"next run {schedules.shown(schedule, coming)}", at=iso(coming))

    async def _unfinished(self) -> Job | None:
        """The spider's latest job, if it is still going on."""
        latest = await self._tools.jobs.latest(self._charge.spider)
        if latest is None or latest.finished_at is not None:
            return None
        opened = await self._tools.open_frontier(latest)
        try:
            return None if await opened.frontier.finished() else latest
        finally:
            await opened.close()

    async def _start(self, tick: Tick, shown: str) -> bool:
        self.forget()
        job = await self._tools.leadership.start(self._term, tick, self._charge.rules, self._charge.version)
        if job is None:
            return False
        self._tell("tick.started", f"started {job.id}, the run of {shown}", job.id, at=iso(tick.at))
        return True

    async def _skip(self, tick: Tick, shown: str, unfinished: Job) -> None:
        self.forget()
        await self._tools.leadership.skip(self._term, tick)
        text = f"no run of {shown}: {unfinished.id} is unfinished"
        self._tell("tick.skipped", text, unfinished.id, at=iso(tick.at))

    def _wait(self, tick: Tick, shown: str, unfinished: Job) -> None:
        if self._waits_for != unfinished.id:
            self._waits_for = unfinished.id
            text = f"the run of {shown} waits until {unfinished.id} is finished"
            self._tell("tick.waits", text, unfinished.id, at=iso(tick.at))

    def _tell(self, event: str, text: str, job: str = "", **data: object) -> None:
        self._tools.tell(News(event=event, spider=self._charge.spider, text=text, job=job, data=data))
