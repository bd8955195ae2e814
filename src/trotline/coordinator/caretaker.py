"""Looks after the jobs of a spider: seeds, rescue, alerts, their end, and what is left of them."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

from trotline.coordinator.roster import Roster
from trotline.coordinator.tools import Charge, Client, Leads, News, Policy, Tools
from trotline.errors import FrontierError, FrontierUnreachable, SinkError, TermOver, TrotlineError
from trotline.model.job import Job, Progress, State
from trotline.model.moments import Moment
from trotline.model.term import Term
from trotline.ports.frontier import BEAT, DEAD_AFTER
from trotline.rules.alerts import AlertRules, alerts


class Flock:
    """One job that is looked after."""

    def __init__(self, job: Job, frontier: Client, looks: int) -> None:
        self.job = job
        self.frontier = frontier
        self.books: deque[Progress] = deque(maxlen=looks)
        self.alerts: dict[str, str] = {}
        self.seeding: asyncio.Task[None] | None = None
        self.trouble = ""


class Shepherd:
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
        self._flocks: dict[str, Flock] = {}
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
        beside = [self._tidying, *(flock.seeding for flock in self._flocks.values())]
        for task in beside:
            # All of them before the first wait: whoever is in a hurry may cancel that.
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in beside if task is not None), return_exceptions=True)
        for flock in list(self._flocks.values()):
            await self._let_go(flock)

    async def _watch(self) -> None:
        started = await self._started_by_schedule()
        for job in await self._changed():
            if job.announced and job.id in self._flocks:
                await self._see_off(self._flocks[job.id])
            elif not job.announced:
                await self._flock(job)
        for flock in list(self._flocks.values()):
            try:
                await self._care(flock, started_here=flock.job.id == started)
            except FrontierUnreachable:
                raise
            except FrontierError as error:
                # This job's own trouble (its books are gone): the others are looked after all the same.
                self._complain(flock, f"{flock.job.id} cannot be looked after: {error.what}")

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

    async def _flock(self, job: Job) -> Flock:
        if job.id not in self._flocks:
            looks = int(AlertRules().window / self._policy.watch) + 2
            self._flocks[job.id] = Flock(job, await self._tools.open_frontier(job), looks)
        return self._flocks[job.id]

    async def _care(self, flock: Flock, *, started_here: bool) -> None:
        progress = await flock.frontier.progress()
        flock.books.append(progress)
        self._alert(flock)
        if progress.finished_at is not None:
            await self._end(flock, progress)
            return
        if progress.leased:
            await self._rescue(flock)
        if progress.state is State.CANCELLED:
            # Until somebody resumes it: the next look at all jobs finds it again.
            await self._let_go(flock)
        elif started_here and not progress.sealed and flock.seeding is None:
            flock.seeding = asyncio.create_task(self._seed(flock))

    async def _rescue(self, flock: Flock) -> None:
        """Workers rescue each other within a beat; this is for the time when none of them is left."""
        workers = await flock.frontier.workers()
        if any(worker.leased and worker.silent_for > DEAD_AFTER + BEAT for worker in workers):
            # Whoever asks for work rescues. We ask for one task, and hand it back at once with no attempt counted.
            await flock.frontier.lease(self._name, 1)
            await flock.frontier.leave(self._name)
            self._tell("job.rescued", f"{flock.job.id}: what dead workers held waits for others", flock.job)

    def _alert(self, flock: Flock) -> None:
        """What is wrong is told once, and once more when it is over."""
        found = alerts(flock.books)
        for name in found.keys() - flock.alerts.keys():
            self._tell("alert.raised", f"{flock.job.id}: {name}: {found[name]}", flock.job, alert=name)
        for name in flock.alerts.keys() - found.keys():
            self._tell("alert.over", f"{flock.job.id}: {name} is over", flock.job, alert=name)
        flock.alerts = found

    async def _end(self, flock: Flock, progress: Progress) -> None:
        try:
            # Told last of all: after a crash before that line the next leader concludes it once more.
            await self._tools.duties.conclude(flock.job)
        except SinkError as error:
            self._complain(flock, f"{flock.job.id} is finished, but not its sink: {error.what}")
            return
        if await flock.frontier.announce_finish():
            self._tell("job.finished", _ended(flock, progress), flock.job, done=progress.done, dead=progress.dead)
            await self._let_go(flock)
        else:
            await self._see_off(flock)

    async def _see_off(self, flock: Flock) -> None:
        """A worker has told the end of the job: a last look at its books, and no second word of its finish."""
        progress = await flock.frontier.progress()
        flock.books.append(progress)
        self._alert(flock)
        self._tell("job.over", _ended(flock, progress), flock.job, done=progress.done, dead=progress.dead)
        await self._let_go(flock)

    async def _seed(self, flock: Flock) -> None:
        """Put every seed, then seal. Whoever comes after us does it again, and what is known stays known."""
        self._tell("job.seeding", f"{flock.job.id}: seeding", flock.job)
        failures = 0
        while self._leads():
            try:
                await self._tools.duties.seed(flock.job, flock.frontier, self._leads, self._say(flock.job))
                await flock.frontier.seal()
                self._tell("job.seeded", f"{flock.job.id}: all seeds are in", flock.job)
                return
            except TermOver:
                return
            except FrontierError as error:
                # Not the seeds' fault, and no reason to go on without them.
                self._tell("job.trouble", f"{flock.job.id}: seeding begins again: {error.what}", flock.job)
            except Exception as error:
                # Seeds are the author's code and other people's sitemaps: anything may happen there.
                failures += 1
                if await self._gave_up(flock, failures, _told(error)):
                    return
            await self._tools.clock.sleep(self._policy.patience * 2 ** max(0, failures - 1))

    async def _gave_up(self, flock: Flock, failures: int, what: str) -> bool:
        """After some tries the job goes on with the seeds it has; unsealed it would stand in the way of the next."""
        if failures < self._policy.tries:
            self._tell("job.trouble", f"{flock.job.id}: seeding failed and is tried again: {what}", flock.job)
            return False
        self._tell(
            "job.trouble", f"{flock.job.id}: seeding failed, the job goes on with what it has: {what}", flock.job
        )
        if self._leads():
            await flock.frontier.seal()
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

    async def _let_go(self, flock: Flock) -> None:
        del self._flocks[flock.job.id]
        if flock.seeding is not None:
            flock.seeding.cancel()
            await asyncio.gather(flock.seeding, return_exceptions=True)
        with contextlib.suppress(FrontierError):
            await flock.frontier.close()

    def _say(self, job: Job) -> Callable[[str], None]:
        def say(text: str) -> None:
            if text:
                self._tell("job.seeding", f"{job.id}: {text}", job)

        return say

    def _complain(self, flock: Flock, text: str) -> None:
        """Once for the same trouble."""
        if flock.trouble != text:
            flock.trouble = text
            self._tell("job.trouble", text, flock.job)

    def _tell(self, event: str, text: str, job: Job, **data: object) -> None:
        self._tools.tell(News(event=event, spider=self._charge.spider, text=text, job=job.id, data=data))


def _ended(flock: Flock, progress: Progress) -> str:
    return f"{flock.job.id} finished: {progress.done:,} done, {progress.dead:,} dead"


def _told(error: Exception) -> str:
    return error.what if isinstance(error, TrotlineError) else f"{type(error).__name__}: {error}"
