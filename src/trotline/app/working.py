"""A machine of the fleet: takes part in the jobs of one spider, one after another, and waits for the next."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import TypeVar

import msgspec

from trotline.app import wiring
from trotline.app.crew import Crew, Plan
from trotline.app.jobs import code_version
from trotline.app.launching import Launched
from trotline.app.places import MEMORY, is_file
from trotline.app.reporting import Ending, Report, Reporter, ending_of
from trotline.app.signals import obeyed
from trotline.app.wiring import AnyFrontier
from trotline.errors import FrontierError, FrontierUnreachable, SettingsError, TrotlineError
from trotline.model.job import Job, State
from trotline.model.moments import Seconds
from trotline.spider.spider import Spider

T = TypeVar("T")

LOOK_AGAIN: Seconds = 1.0
"""How often a worker that waits looks for a job."""


class WorkPlan(Plan, frozen=True, kw_only=True):
    """What the command line asked for."""

    until_finished: bool = False
    """End with the job, instead of waiting for the next."""
    upgrade: bool = False
    """Let our version of the spider's code into jobs that were started with another."""


class What(StrEnum):
    WAITS = "waits"
    """No job of this spider is there."""
    JOINED = "joined"
    OTHER_VERSION = "other version"
    AWAY = "away"
    """The frontier does not answer."""
    ENDED = "ended"


class News(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker tells of itself."""

    what: What
    job: Job | None = None
    version: str = ""
    """Ours."""
    upgraded: bool = False
    reason: str = ""
    ending: Ending | None = None
    report: Report | None = None
    reasons: dict[str, int] = {}
    """Why tasks are buried."""
    announced: bool = False
    """We are the one who tells the world that the job is finished; nobody else does."""


class Hands(msgspec.Struct, frozen=True):
    """How a worker is heard: news as they happen, and reports of the job that it takes part in."""

    tell: Callable[[News], None]
    show: Callable[[Report], None]
    pause: Callable[[], None]
    """No reports for a while."""


async def work(plan: WorkPlan, spider: Spider, hands: Hands, launched: Sequence[Launched] = ()) -> Ending:
    """Take part until somebody stops us; with `until_finished`, until a job has ended. How it ended."""
    if plan.frontier == MEMORY:
        raise SettingsError(
            "a frontier in memory belongs to one run: nobody else can take part in it",
            hint="Name a place that workers share: --frontier sqlite:PATH or redis://HOST:PORT/0",
        )
    return await _Member(plan, spider, hands, launched).until_end()


class _Member:
    """One member of the fleet: looks for a job, joins it, comes back."""

    def __init__(self, plan: WorkPlan, spider: Spider, hands: Hands, launched: Sequence[Launched]) -> None:
        self._plan = plan
        self._spider = spider
        self._hands = hands
        self._launched = list(launched)
        self._stopped = asyncio.Event()
        self._crew: Crew | None = None
        self._told: set[tuple[What, str]] = set()
        """What need not be said again."""
        self._answered = False
        """The frontier was there at least once."""

    async def until_end(self) -> Ending:
        with obeyed(self._interrupt):
            while not self._stopped.is_set():
                frontier = await self._found()
                if frontier is None:
                    await self._rest()
                    continue
                self._told.clear()
                try:
                    ending = await self._take_part(frontier)
                finally:
                    await frontier.close()
                if self._plan.until_finished and ending not in (None, Ending.INTERRUPTED):
                    return ending
        return Ending.INTERRUPTED

    def _interrupt(self) -> None:
        self._stopped.set()
        if self._crew is not None:
            self._crew.stop()

    async def _rest(self) -> None:
        waiting = asyncio.create_task(self._stopped.wait())
        await asyncio.wait([waiting], timeout=LOOK_AGAIN)
        waiting.cancel()

    # Finding a job

    async def _found(self) -> AnyFrontier | None:
        """The newest job of the spider that is unfinished and lets us in."""
        # Looking makes no file: whoever starts the job makes it.
        if not wiring.is_there(self._plan.frontier):
            self._tell(News(what=What.WAITS))
            return None
        try:
            frontier = await self._look()
        except FrontierError as error:
            if not self._answered:
                # Rather a mistake in the settings than a server that is just away.
                raise
            self._tell(News(what=What.AWAY, reason=error.what))
            return None
        self._answered = True
        self._told.discard((What.AWAY, ""))
        return frontier

    async def _look(self) -> AnyFrontier | None:
        jobs = await wiring.open_jobs(self._plan.frontier)
        try:
            unfinished = [job for job in await jobs.all() if job.spider == self._spider.name and not job.announced]
            # The file may have been replaced since we last looked.
            version = code_version(self._plan.ref)
            for job in reversed(unfinished):
                frontier = await wiring.open_frontier(self._plan.frontier, job)
                if (await frontier.progress()).state is State.CANCELLED:
                    await frontier.close()
                    continue
                upgrade = not job.accepts(version)
                if upgrade and not self._plan.upgrade:
                    self._tell(News(what=What.OTHER_VERSION, job=job, version=version))
                    await frontier.close()
                    continue
                if upgrade:
                    await jobs.admit(job.id, version)
                self._hands.tell(News(what=What.JOINED, job=job, version=version, upgraded=upgrade))
                return frontier
        finally:
            await jobs.close()
        self._tell(News(what=What.WAITS))
        return None

    def _tell(self, news: News) -> None:
        """Once, until something changes."""
        said = (news.what, news.job.id if news.job is not None else "")
        if said not in self._told:
            self._told.add(said)
            self._hands.tell(news)

    # Taking part

    async def _take_part(self, frontier: AnyFrontier) -> Ending | None:
        """How the job ended; None if it did not, and is worth another look."""
        job, plan = frontier.job, self._plan
        await wiring.check_validators(plan.frontier, job, plan.sink, self._spider, rows=wiring.has_rows(plan.sink))
        sink = wiring.open_sink(plan.sink, job.id)
        try:
            await wiring.check_sink(sink)
            before = await frontier.progress()
            reporter = Reporter(frontier, whole=True)
            if before.finished_at is None:
                await self._work(frontier, reporter)
            ending = await self._patiently(lambda: self._ending(frontier))
            if ending is None:
                return None
            announced = False
            if ending not in (Ending.INTERRUPTED, Ending.CANCELLED):
                # First the sink, then the word: after a crash in between, the next who comes finishes both.
                await wiring.finish_sink(sink)
                announced = await self._patiently(frontier.announce_finish)
            report = await self._patiently(reporter.report)
            reasons = await self._patiently(frontier.reasons) if announced else {}
        finally:
            await sink.close()
        self._hands.tell(
            News(what=What.ENDED, job=job, ending=ending, report=report, reasons=reasons, announced=announced)
        )
        return ending

    async def _work(self, frontier: AnyFrontier, reporter: Reporter) -> None:
        if self._stopped.is_set():
            return
        crew = self._crew = Crew(self._plan, self._spider, frontier, self._launched, strict=True)
        self._launched = []
        showing = asyncio.create_task(reporter.show(self._hands.show, crew.held_back, crew.processes))
        limiting = asyncio.create_task(self._limit_pages(frontier))
        try:
            await crew.run()
        finally:
            self._crew = None
            for task in (showing, limiting):
                task.cancel()
            await asyncio.gather(showing, limiting, return_exceptions=True)
            self._hands.pause()
        if crew.failure:
            raise TrotlineError(crew.failure, hint="What is stored is stored, and the job goes on without this worker.")

    async def _limit_pages(self, frontier: AnyFrontier) -> None:
        """The spider's own limit holds for the whole job, whoever visits its pages."""
        most = self._spider.max_pages
        while most is not None:
            await asyncio.sleep(LOOK_AGAIN)
            progress = await self._patiently(frontier.progress)
            if progress.done + progress.dead >= most and progress.state is not State.CANCELLED:
                await frontier.cancel()

    async def _ending(self, frontier: AnyFrontier) -> Ending | None:
        return Ending.INTERRUPTED if self._stopped.is_set() else ending_of(await frontier.progress())

    async def _patiently(self, deed: Callable[[], Awaitable[T]]) -> T:
        """A frontier that is away at the end of a job is asked again, until somebody stops us."""
        while True:
            try:
                return await deed()
            except FrontierUnreachable as error:
                if self._stopped.is_set() or is_file(self._plan.frontier):
                    raise
                self._tell(News(what=What.AWAY, reason=error.what))
                await self._rest()
