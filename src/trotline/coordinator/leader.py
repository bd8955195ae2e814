"""One spider's office: campaign for it, keep it, and do what its leader does."""

import asyncio
import contextlib

from trotline.coordinator.job_list import Roster
from trotline.coordinator.job_monitor import Caretaker
from trotline.coordinator.schedule import Timetable
from trotline.coordinator.tools import Charge, News, Policy, Tools
from trotline.errors import FrontierError, TermOver, TrotlineError
from trotline.model.leadership import Term
from trotline.model.time import Moment, Seconds
from trotline.ports.leadership import RENEW


class Watch:
    """Our term as we see it: never longer than the server does, whatever happens to our process meanwhile."""

    def __init__(self, term: Term, asked_at: Seconds, answered_at: Seconds) -> None:
        self.term = term
        # The term runs from some moment between question and answer: we count from the question.
        self._over_at = asked_at + term.lasts
        self._answered_at = answered_at

    def leads(self, at: Seconds) -> bool:
        return at < self._over_at

    def server_time(self, at: Seconds) -> Moment:
        """Not later than it really is, so that no tick is early."""
        return self.term.now + (at - self._answered_at)


class Office:
    def __init__(self, name: str, charge: Charge, tools: Tools, policy: Policy, roster: Roster) -> None:
        self._name = name
        self._roster = roster
        self._charge = charge
        self._tools = tools
        self._policy = policy
        self._watch: Watch | None = None
        self._leader = ""
        self._trouble: dict[str, str] = {}
        """What could not be done -> why, as it was told last."""

    async def run(self) -> None:
        """For ever. Cancelled, it leaves the office to others at once."""
        try:
            while True:
                await self._campaign()
        finally:
            if self._watch is not None and self._leads():
                with contextlib.suppress(FrontierError):
                    await self._tools.leadership.resign(self._watch.term)

    async def _campaign(self) -> None:
        try:
            watch = await self._ask()
        except FrontierError as error:
            self._complain("campaign", error)
            await self._tools.clock.sleep(RENEW)
            return
        if watch.term.holder == self._name:
            self._watch = watch
            await self._lead()
        else:
            self._stand_by(watch.term)
            await self._tools.clock.sleep(
                min(RENEW, max(0.0, watch.term.lasts)) + self._tools.chance.uniform(0.05, 0.5)
            )

    async def _ask(self) -> Watch:
        asked_at = self._tools.clock.now()
        term = await self._tools.leadership.campaign(self._charge.office, self._name)
        self._recover("campaign")
        return Watch(term, asked_at, self._tools.clock.now())

    def _stand_by(self, term: Term) -> None:
        if self._leader != term.holder:
            self._leader = term.holder
            self._tell(
                "coordinator.stands_by",
                f"{term.holder} leads (term {term.epoch}); standing by",
                term=term.epoch,
                leader=term.holder,
            )

    async def _lead(self) -> None:
        """Until the term is over: renew it, and do the leader's work beside."""
        assert self._watch is not None  # noqa: S101 - we were just elected
        self._leader = self._name
        term = self._watch.term
        alone = "" if self._charge.schedule else "; no schedule, so jobs start when somebody starts them"
        self._tell("coordinator.leads", f"leading (term {term.epoch}){alone}", term=term.epoch, leader=self._name)
        keeping = asyncio.create_task(self._keep(term))
        working = asyncio.create_task(self._work(term))
        try:
            await asyncio.wait({keeping, working}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (keeping, working):
                task.cancel()
            ends = await asyncio.gather(keeping, working, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end
        self._tell("coordinator.lost", f"term {term.epoch} is over", term=term.epoch)

    async def _keep(self, term: Term) -> None:
        pause = RENEW
        while True:
            await self._tools.clock.sleep(pause)
            try:
                watch = await self._ask()
            except FrontierError as error:
                self._complain("campaign", error)
                if not self._leads():
                    return
                pause = RENEW / 5
                continue
            if (watch.term.holder, watch.term.epoch) != (self._name, term.epoch):
                # Also if it is ours again: what we know is from before the gap.
                return
            self._watch = watch
            pause = RENEW

    async def _work(self, term: Term) -> None:
        timetable = Timetable(term, self._charge, self._tools)
        caretaker = Caretaker(self._name, term, self._charge, self._tools, self._policy, self._roster, self._leads)
        try:
            while self._leads():
                try:
                    now = self._now()
                    if await timetable.look(now):
                        caretaker.hurry()
                    await caretaker.look(now)
                    self._recover("work")
                except TermOver:
                    return
                except TrotlineError as error:
                    timetable.forget()
                    self._complain("work", error)
                await self._tools.clock.sleep(self._policy.look)
        finally:
            self._trouble.pop("work", None)
            await caretaker.close()

    def _leads(self) -> bool:
        return self._watch is not None and self._watch.leads(self._tools.clock.now())

    def _now(self) -> Moment:
        assert self._watch is not None  # noqa: S101 - only leaders ask
        return self._watch.server_time(self._tools.clock.now())

    def _complain(self, deed: str, error: TrotlineError) -> None:
        """Once for the same trouble, however often we try again, and whatever it keeps us from."""
        known = error.what in self._trouble.values()
        self._trouble[deed] = error.what
        if not known:
            self._tell("coordinator.trouble", f"{error.what}; trying again")

    def _recover(self, deed: str) -> None:
        """The last word must not be that we try again."""
        was = self._trouble.pop(deed, "")
        if was and was not in self._trouble.values():
            self._tell("coordinator.recovered", f"recovered from: {was}")

    def _tell(self, event: str, text: str, **data: object) -> None:
        self._tools.tell(News(event=event, spider=self._charge.spider, text=text, data=data))
