"""Starts a spider's jobs when their time has come."""

from trotline.coordinator.tools import Charge, News, Tools
from trotline.model.job import Job
from trotline.model.moments import Moment, iso
from trotline.model.schedule import Overlap, Schedule
from trotline.model.term import Slot, Term
from trotline.rules import schedules


class Timetable:
    """One term's view of the schedule. What is remembered on the server is read again whenever it may have changed."""

    def __init__(self, term: Term, charge: Charge, tools: Tools) -> None:
        self._term = term
        self._charge = charge
        self._tools = tools
        self._last: Slot | None = None
        self._coming: Moment = 0.0
        """Nothing is due before."""
        self._waits_for = ""

    def forget(self) -> None:
        """A deed may or may not have been done: ask the server before the next one."""
        self._last = None

    async def look(self, now: Moment) -> bool:
        """Start, or pass over, the slot that is due. Was a job started?"""
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
        slot = Slot(at=at, schedule=schedule.text)
        unfinished = await self._unfinished()
        if unfinished is None:
            return await self._start(slot, schedules.shown(schedule, at))
        if schedule.overlap is Overlap.SKIP:
            await self._skip(slot, schedules.shown(schedule, at), unfinished)
        else:
            self._wait(slot, schedules.shown(schedule, at), unfinished)
        return False

    async def _known(self, schedule: Schedule, now: Moment) -> Slot:
        """The last slot; a schedule that is new here begins now, and owes nothing for the time before."""
        last = await self._tools.leadership.slot(self._charge.spider)
        if last is None or last.schedule != schedule.text:
            last = Slot(at=now, schedule=schedule.text)
            await self._tools.leadership.skip(self._term, last)
        self._tell_next(schedule, now)
        return last

    def _tell_next(self, schedule: Schedule, now: Moment) -> None:
        coming = schedules.upcoming(schedule, now)
        self._tell("slot.next", f"next run {schedules.shown(schedule, coming)}", at=iso(coming))

    async def _unfinished(self) -> Job | None:
        """The spider's latest job, if it is still going on."""
        latest = await self._tools.jobs.latest(self._charge.spider)
        if latest is None or latest.finished_at is not None:
            return None
        frontier = await self._tools.open_frontier(latest)
        try:
            return None if await frontier.finished() else latest
        finally:
            await frontier.close()

    async def _start(self, slot: Slot, shown: str) -> bool:
        self.forget()
        job = await self._tools.leadership.start(self._term, slot, self._charge.rules, self._charge.version)
        if job is None:
            return False
        self._tell("slot.started", f"started {job.id}, the run of {shown}", job.id, at=iso(slot.at))
        return True

    async def _skip(self, slot: Slot, shown: str, unfinished: Job) -> None:
        self.forget()
        await self._tools.leadership.skip(self._term, slot)
        text = f"no run of {shown}: {unfinished.id} is unfinished"
        self._tell("slot.skipped", text, unfinished.id, at=iso(slot.at))

    def _wait(self, slot: Slot, shown: str, unfinished: Job) -> None:
        if self._waits_for != unfinished.id:
            self._waits_for = unfinished.id
            text = f"the run of {shown} waits until {unfinished.id} is finished"
            self._tell("slot.waits", text, unfinished.id, at=iso(slot.at))

    def _tell(self, event: str, text: str, job: str = "", **data: object) -> None:
        self._tools.tell(News(event=event, spider=self._charge.spider, text=text, job=job, data=data))
