"""Looks after the jobs of a spider: seeds, rescue, alerts, their end, and what is left of them."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

from trotline.coordinator.job_list import Roster
from trotline.coordinator.tools import Charge, Leads, News, Policy, Tools
from trotline.errors import FrontierError, FrontierUnreachable, SinkError, TermOver, TrotlineError
from trotline.model.job import Job, Progress, State
from trotline.model.leadership import Term
from trotline.model.time import Moment
from trotline.ports.backend import OpenJob
from trotline.ports.frontier import BEAT, DEAD_AFTER
from trotline.rules.alerts import AlertRules, alerts


class Ward:
    """One job that is looked after."""

    def __init__(self, job: Job, opened: OpenJob, looks: int) -> None:
        self.job = job
        self.opened = opened
        self.books: deque[Progress] = deque(maxlen=looks)
        self.alerts: dict[str, str] = {}
        self.seeding: asyncio.Task[None] | None = None
        self.trouble = ""


class Caretaker:
    """For one term."""

    def __init__(
        self, name: str, term: Term, charge: Charge, tools: Tools, policy: Policy, roster: Roster, leads: Leads
    ) -> None:
        self._name = name
        self._roster = roster
        self._surveyed = 0
        self._term = term
        self._charge = charge
        self._tools = tools
        self._policy = policy
        self._leads = leads
        self._wards: dict[str, Ward] = {}
        self._watched_at = self._tidied_at = float("-inf")
        self._tidying: asyncio.Task[None] | None = None

    def hurry(self) -> None:
        """There is a new job: do not wait for the next look."""
        self._watched_at = float("-inf")

    async def look(self, now: Moment) -> None:
        if now - self._watched_at >= self._policy.watch:
            self._watched_at = now
            await self._watch()
        if not self._charge.beside and now - self._tidied_at >= self._policy.tidy:
            self._tidied_at = now
            # Beside the rest: a slow database must not keep a run from starting.
            self._tidying = asyncio.create_task(self._tidy(now))

    async def close(self) -> None:
        beside = [self._tidying, *(ward.seeding for ward in self._wards.values())]
        for task in beside:
            # All of them before the first wait: whoever is in a hurry may cancel that.
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in beside if task is not None), return_exceptions=True)
        for ward in list(self._wards.values()):
            await self._let_go(ward)

    async def _watch(self) -> None:
        started = await self._started_by_schedule()
        for job in await self._changed():
            if job.announced and job.id in self._wards:
                await self._see_off(self._wards[job.id])
            elif not job.announced:
                await self._ward(job)
        for ward in list(self._wards.values()):
            try:
                await self._care(ward, started_here=ward.job.id == started)
            except FrontierUnreachable:
                raise
            except FrontierError as error:
                # This job's own trouble (its books are gone): the others are looked after all the same.
                self._complain(ward, f"{ward.job.id} cannot be looked after: {error.what}")

    async def _started_by_schedule(self) -> str:
        """The job whose seeds are ours to put. Others have somebody who started them, and who seeds them."""
        if self._charge.beside:
            return ""
        last = await self._tools.leadership.tick(self._charge.spider)
        return "" if last is None else last.job

    async def _changed(self) -> list[Job]:
        """Jobs as they are now: the newest one, and now and then all of them."""
        latest = await self._roster.latest(self._charge.spider)
        self._surveyed, jobs = await self._roster.survey(self._surveyed)
        older = [job for job in jobs if job.spider == self._charge.spider and (latest is None or job.id != latest.id)]
        return older if latest is None else [*older, latest]

    async def _ward(self, job: Job) -> Ward:
        if job.id not in self._wards:
            looks = int(AlertRules().window / self._policy.watch) + 2
            self._wards[job.id] = Ward(job, await self._tools.open_frontier(job), looks)
        return self._wards[job.id]

    async def _care(self, ward: Ward, *, started_here: bool) -> None:
        progress = await ward.opened.console.progress()
        ward.books.append(progress)
        self._alert(ward)
        if progress.finished_at is not None:
            await self._end(ward, progress)
            return
        if progress.leased:
            await self._rescue(ward)
        if progress.state is State.CANCELLED:
            # Until somebody resumes it: the next look at all jobs finds it again.
            await self._let_go(ward)
        elif started_here and not progress.sealed and ward.seeding is None:
            ward.seeding = asyncio.create_task(self._seed(ward))

    async def _rescue(self, ward: Ward) -> None:
        """Workers rescue each other within a beat; this is for the time when none of them is left."""
        workers = await ward.opened.console.workers()
        if any(worker.leased and worker.silent_for > DEAD_AFTER + BEAT for worker in workers):
            # Whoever asks for work rescues. We ask for one task, and hand it back at once with no attempt counted.
            await ward.opened.frontier.lease(self._name, 1)
            await ward.opened.frontier.leave(self._name)
            self._tell("job.rescued", f"{ward.job.id}: what dead workers held waits for others", ward.job)

    def _alert(self, ward: Ward) -> None:
        """What is wrong is told once, and once more when it is over."""
        found = alerts(ward.books)
        for name in sorted(found.keys() - ward.alerts.keys()):
            self._tell("alert.raised", f"{ward.job.id}: {name}: {found[name]}", ward.job, alert=name)
        for name in sorted(ward.alerts.keys() - found.keys()):
            self._tell("alert.over", f"{ward.job.id}: {name} is over", ward.job, alert=name)
        ward.alerts = found

    async def _end(self, ward: Ward, progress: Progress) -> None:
        try:
            # Told last of all: after a crash before that line the next leader concludes it once more.
            await self._tools.duties.conclude(ward.job)
        except SinkError as error:
            self._complain(ward, f"{ward.job.id} is finished, but not its sink: {error.what}")
            return
        if await ward.opened.frontier.announce_finish():
            self._tell("job.finished", _ended(ward, progress), ward.job, done=progress.done, dead=progress.dead)
            await self._let_go(ward)
        else:
            await self._see_off(ward)

    async def _see_off(self, ward: Ward) -> None:
        """A worker has told the end of the job: a last look at its books, and no second word of its finish."""
        progress = await ward.opened.console.progress()
        ward.books.append(progress)
        self._alert(ward)
        self._tell("job.over", _ended(ward, progress), ward.job, done=progress.done, dead=progress.dead)
        await self._let_go(ward)

    async def _seed(self, ward: Ward) -> None:
        """Put every seed, then seal. Whoever comes after us does it again, and what is known stays known."""
        self._tell("job.seeding", f"{ward.job.id}: seeding", ward.job)
        failures = 0
        while self._leads():
            try:
                await self._tools.duties.seed(ward.job, ward.opened, self._leads, self._say(ward.job))
                await ward.opened.frontier.seal()
                self._tell("job.seeded", f"{ward.job.id}: all seeds are in", ward.job)
                return
            except TermOver:
                return
            except FrontierError as error:
                # Not the seeds' fault, and no reason to go on without them.
                self._tell("job.trouble", f"{ward.job.id}: seeding begins again: {error.what}", ward.job)
            except Exception as error:
                # Seeds are the author's code and other people's sitemaps: anything may happen there.
                failures += 1
                if await self._gave_up(ward, failures, _told(error)):
                    return
            await self._tools.clock.sleep(self._policy.patience * 2 ** max(0, failures - 1))

    async def _gave_up(self, ward: Ward, failures: int, what: str) -> bool:
        """After some tries the job goes on with the seeds it has; unsealed it would stand in the way of the next."""
        if failures < self._policy.tries:
            self._tell("job.trouble", f"{ward.job.id}: seeding failed and is tried again: {what}", ward.job)
            return False
        self._tell("job.trouble", f"{ward.job.id}: seeding failed, the job goes on with what it has: {what}", ward.job)
        if self._leads():
            await ward.opened.frontier.seal()
        return True

    async def _tidy(self, now: Moment) -> None:
        spider = self._charge.spider
        try:
            for job in await self._tools.leadership.retire(self._term, now - self._policy.keep):
                self._tools.tell(News(event="job.retired", spider=spider, text=f"{job} is old and forgotten", job=job))
            await self._tools.duties.maintain(now)
        except TermOver:
            return
        except TrotlineError as error:
            text = f"clearing away what is old failed, and is tried again later: {error.what}"
            self._tools.tell(News(event="coordinator.trouble", spider=spider, text=text))

    async def _let_go(self, ward: Ward) -> None:
        del self._wards[ward.job.id]
        if ward.seeding is not None:
            ward.seeding.cancel()
            await asyncio.gather(ward.seeding, return_exceptions=True)
        with contextlib.suppress(FrontierError):
            await ward.opened.close()

    def _say(self, job: Job) -> Callable[[str], None]:
        def say(text: str) -> None:
            if text:
                self._tell("job.seeding", f"{job.id}: {text}", job)

        return say

    def _complain(self, ward: Ward, text: str) -> None:
        """Once for the same trouble."""
        if ward.trouble != text:
            ward.trouble = text
            self._tell("job.trouble", text, ward.job)

    def _tell(self, event: str, text: str, job: Job, **data: object) -> None:
        self._tools.tell(News(event=event, spider=self._charge.spider, text=text, job=job.id, data=data))


def _ended(ward: Ward, progress: Progress) -> str:
    return f"{ward.job.id} finished: {progress.done:,} done, {progress.dead:,} dead"


def _told(error: Exception) -> str:
    return error.what if isinstance(error, TrotlineError) else f"{type(error).__name__}: {error}"
