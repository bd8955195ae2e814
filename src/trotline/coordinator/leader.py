"""Leader election for one spider: campaign, renew the term (heartbeat), and run the leader's work while it lasts."""

import asyncio
import contextlib

from trotline.coordinator.dependencies import CoordinatorEvent, CoordinatorParts, CoordinatorPolicy, SpiderConfig
from trotline.coordinator.job_list import JobList
from trotline.coordinator.job_monitor import JobMonitor
from trotline.coordinator.scheduler import Scheduler
from trotline.errors import FrontierError, TermOver, TrotlineError
from trotline.model.leadership import Term
from trotline.model.time import Moment, Seconds
from trotline.ports.leadership import RENEW


class LocalTerm:
    """A term by the local clock: never longer than by the server's, even if this process was suspended meanwhile."""

    def __init__(self, term: Term, asked_at: Seconds, answered_at: Seconds) -> None:
        self.term = term
        # The server granted it at some moment between request and reply: count from the request.
        self._ends_at = asked_at + term.lasts
        self._answered_at = answered_at

    def runs(self, at: Seconds) -> bool:
        return at < self._ends_at

    def server_time(self, at: Seconds) -> Moment:
        """A lower bound, so that no tick starts early."""
        return self.term.now + (at - self._answered_at)


class Leader:
    def __init__(
        self, name: str, config: SpiderConfig, parts: CoordinatorParts, policy: CoordinatorPolicy, job_list: JobList
    ) -> None:
        self._name = name
        self._job_list = job_list
        self._config = config
        self._parts = parts
        self._policy = policy
        self._term: LocalTerm | None = None
        self._leader = ""
        self._errors: dict[str, str] = {}
        """Operation -> its current error: each is reported once."""

    async def run(self) -> None:
        """Runs until cancelled, then resigns."""
        self._show_leading(False)
        try:
            while True:
                await self._campaign()
        finally:
            if self._term is not None and self._is_leader():
                with contextlib.suppress(FrontierError):
                    await self._parts.leadership.resign(self._term.term)

    async def _campaign(self) -> None:
        try:
            current = await self._request_term()
        except FrontierError as error:
            self._report_error("campaign", error)
            await self._parts.clock.sleep(RENEW)
            return
        if current.term.holder == self._name:
            self._term = current
            await self._lead()
        else:
            self._stand_by(current.term)
            await self._parts.clock.sleep(
                min(RENEW, max(0.0, current.term.lasts)) + self._parts.chance.uniform(0.05, 0.5)
            )

    async def _request_term(self) -> LocalTerm:
        asked_at = self._parts.clock.now()
        term = await self._parts.leadership.campaign(self._config.election, self._name)
        self._recover("campaign")
        if self._parts.frontier_watch is not None:
            self._parts.frontier_watch.worked()
        return LocalTerm(term, asked_at, self._parts.clock.now())

    def _stand_by(self, term: Term) -> None:
        if self._leader != term.holder:
            self._leader = term.holder
            self._emit(
                "coordinator.stands_by",
                f"{term.holder} leads (term {term.epoch}); standing by",
                term=term.epoch,
                leader=term.holder,
            )

    async def _lead(self) -> None:
        """Renew the term and do the leader's work until the term is over."""
        assert self._term is not None  # noqa: S101 - we were just elected
        self._leader = self._name
        term = self._term.term
        unscheduled = "" if self._config.schedule else "; no schedule: start jobs with trotline start"
        self._emit("coordinator.leads", f"leading (term {term.epoch}){unscheduled}", term=term.epoch, leader=self._name)
        self._show_leading(True)
        renewing = asyncio.create_task(self._renew(term))
        working = asyncio.create_task(self._work(term))
        try:
            await asyncio.wait({renewing, working}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._show_leading(False)
            for task in (renewing, working):
                task.cancel()
            ends = await asyncio.gather(renewing, working, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end
        self._emit("coordinator.lost", f"term {term.epoch} is over", term=term.epoch)

    async def _renew(self, term: Term) -> None:
        pause = RENEW
        while True:
            await self._parts.clock.sleep(pause)
            try:
                renewed = await self._request_term()
            except FrontierError as error:
                self._report_error("campaign", error)
                if not self._is_leader():
                    return
                pause = RENEW / 5
                continue
            if (renewed.term.holder, renewed.term.epoch) != (self._name, term.epoch):
                # Also if we were elected again: our state is from before the gap.
                return
            self._term = renewed
            pause = RENEW

    async def _work(self, term: Term) -> None:
        scheduler = Scheduler(term, self._config, self._parts)
        monitor = JobMonitor(self._name, term, self._config, self._parts, self._policy, self._job_list, self._is_leader)
        try:
            while self._is_leader():
                try:
                    now = self._now()
                    if await scheduler.check(now):
                        monitor.check_soon()
                    # A server that is out of memory answers questions: it has recovered when it takes a write again.
                    if await monitor.check(now):
                        self._recover("work")
                except TermOver:
                    return
                except TrotlineError as error:
                    scheduler.forget()
                    self._report_error("work", error)
                await self._parts.clock.sleep(self._policy.schedule_every)
        finally:
            self._errors.pop("work", None)
            await monitor.close()

    def _is_leader(self) -> bool:
        return self._term is not None and self._term.runs(self._parts.clock.now())

    def _now(self) -> Moment:
        assert self._term is not None  # noqa: S101 - called only while leading
        return self._term.server_time(self._parts.clock.now())

    def _report_error(self, operation: str, error: TrotlineError) -> None:
        """Once per error, however often it is retried and whichever operation meets it."""
        if operation == "campaign" and self._parts.frontier_watch is not None:
            self._parts.frontier_watch.failed(error.what)
        known = error.what in self._errors.values()
        self._errors[operation] = error.what
        if not known:
            self._emit("coordinator.trouble", f"{error.what}; retrying")

    def _recover(self, operation: str) -> None:
        """Report the end of an error: otherwise the last event would be that it is retried."""
        error = self._errors.pop(operation, "")
        if error and error not in self._errors.values():
            self._emit("coordinator.recovered", f"recovered from: {error}")

    def _show_leading(self, leads: bool) -> None:
        """In the metrics. Jobs that we do not lead any more are not ours to show."""
        if self._parts.board is not None:
            self._parts.board.leading[self._config.spider] = leads
            if not leads:
                self._parts.board.drop(self._config.spider)

    def _emit(self, event: str, text: str, **data: object) -> None:
        self._parts.emit(CoordinatorEvent(event=event, spider=self._config.spider, text=text, data=data))
