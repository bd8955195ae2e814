"""One run of one spider on this machine: seed, supervise, show, end."""

import asyncio
import contextlib
import hashlib
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trotline.app import wiring
from trotline.app.forking import Nursery
from trotline.app.launching import Launched
from trotline.app.loading import parse_ref
from trotline.app.orders import Orders
from trotline.app.places import MEMORY
from trotline.app.processes import start_child, worker_name
from trotline.app.seeding import seed
from trotline.errors import TrotlineError
from trotline.model.job import Job, LaneView, Progress
from trotline.model.limits import MIB, Limits
from trotline.model.moments import Seconds
from trotline.spider.spider import Spider
from trotline.worker.supervisor import Child, Supervisor
from trotline.worker.tools import Policy

if TYPE_CHECKING:
    from trotline.adapters.sqlite.frontier import SqliteFrontier

SHOW_EVERY: Seconds = 0.5
_RATE_WINDOW = 20
"""Reports over which the rate is taken."""
_ERRORS = ("retry: ", "dead: ")
_UNCHANGED = "dropped: unchanged: 304"
"""The tally of pages whose rows are still good."""


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asked for."""

    ref: str
    """What `load` takes; the children load it again."""
    frontier: str
    sink: str
    processes: int = 1
    slots: int = 16
    max_pages: int | None = None
    max_time: Seconds | None = None
    fresh: bool = False
    """Start a new job even if an unfinished one could be resumed."""
    seeds_file: str | None = None
    allow_private: bool = False
    allow: tuple[str, ...] = ()
    grace: Seconds = 30.0
    memory: int = 1024 * MIB
    """Bytes that one worker process may use."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How far the run is."""

    job: Job
    progress: Progress
    lanes: list[LaneView]
    pages_per_second: float
    records: int
    errors: dict[str, int]
    held_back: str
    """Why leasing stopped; empty when it did not."""
    workers: int
    resumed: bool
    elapsed: Seconds


class Ending(StrEnum):
    FINISHED = "finished"
    FINISHED_WITH_DEAD = "finished with dead"
    INTERRUPTED = "interrupted"
    STOPPED_AT_LIMIT = "stopped at limit"
    EMPTY = "empty"
    """Finished, and not a single record: something is wrong with the spider, or with the site."""


async def run(
    plan: RunPlan, spider: Spider, show: Callable[[Report], None], launched: Sequence[Launched] = ()
) -> tuple[Ending, Report]:
    """Run until finished, stopped by a signal, or at a limit. The same call later goes on where this one ended.

    `launched` are processes that were started ahead, to become the first children.
    """
    if plan.frontier == MEMORY:
        # Children are processes of their own, so a frontier "in memory" is a file that nobody keeps.
        with tempfile.TemporaryDirectory(prefix="trotline-") as folder:
            kept = msgspec.structs.replace(plan, frontier=f"sqlite:{folder}/frontier.db")
            return await run(kept, spider, show, launched)
    job, resumed = await _job(plan, spider)
    frontier = await wiring.open_frontier(plan.frontier, job)
    await wiring.check_validators(plan.frontier, job, plan.sink, spider, rows=wiring.has_rows(plan.sink))
    sink = wiring.open_sink(plan.sink)
    try:
        opening = getattr(sink, "open", None)
        if opening is not None:
            # A sink that cannot be opened is said before any page is fetched, not after.
            await opening()
        run_ = _Run(plan, spider, job, resumed, frontier, launched)
        ending = await run_.until_end(show)
        finish = getattr(sink, "finish", None)
        if finish is not None:
            await finish()
        if ending not in (Ending.INTERRUPTED, Ending.STOPPED_AT_LIMIT):
            # Last of all: after a crash before this line the same command comes back and finishes the sink.
            await frontier.announce_finish()
        return ending, await run_.report()
    finally:
        await sink.close()
        await frontier.close()


async def _job(plan: RunPlan, spider: Spider) -> tuple[Job, bool]:
    """The unfinished job of this spider, or one whose end was never told; else a new one."""
    jobs = await wiring.open_jobs(plan.frontier)
    try:
        latest = None if plan.fresh else await jobs.latest(spider.name)
        if latest is not None and not latest.announced:
            return latest, True
        return await jobs.start(spider.name, spider.rules, _code_version(plan.ref)), False
    finally:
        await jobs.close()


class _Run:
    """The supervisor, the seeding beside it, and what is told about both."""

    def __init__(
        self,
        plan: RunPlan,
        spider: Spider,
        job: Job,
        resumed: bool,
        frontier: "SqliteFrontier",
        launched: Sequence[Launched],
    ) -> None:
        self._launched = list(launched)
        self._nursery: Nursery | None = None
        self._ended_before: int | None = None
        """Pages that had ended when the first child started."""
        self._plan = plan
        self._spider = spider
        self._job = job
        self._resumed = resumed
        self._frontier = frontier
        self._started = asyncio.get_running_loop().time()
        self._rates: deque[tuple[Seconds, int]] = deque(maxlen=_RATE_WINDOW)
        self._interrupted = False
        self._supervisor = Supervisor(
            self._spawn,
            frontier,
            count=plan.processes,
            parse=(spider.limits or Limits()).parse,
            grace=plan.grace,
            memory=plan.memory,
            evidence=wiring.evidence_path(plan.frontier),
        )

    async def until_end(self, show: Callable[[Report], None]) -> Ending:
        supervising = asyncio.create_task(self._supervisor.run())
        self._seeding = asyncio.create_task(self._seed())
        showing = asyncio.create_task(self._show(show))
        timing = asyncio.create_task(self._limit_time())
        try:
            with self._signals():
                await asyncio.wait([self._seeding])
                if not self._seeding.cancelled():
                    self._seeding.result()
                await supervising
        except BaseException:
            # Seeds that cannot work, or a defect: the children must not outlive us.
            self._supervisor.stop()
            self._supervisor.stop()
            await asyncio.gather(supervising, return_exceptions=True)
            raise
        finally:
            for task in (showing, timing):
                task.cancel()
            if self._nursery is not None:
                self._nursery.close()
            await asyncio.gather(showing, timing, return_exceptions=True)
        return await self._ending()

    async def report(self) -> Report:
        progress = await self._frontier.progress()
        elapsed = asyncio.get_running_loop().time() - self._started
        children = self._supervisor.children
        return Report(
            job=self._job,
            progress=progress,
            lanes=await self._frontier.lanes(),
            pages_per_second=self._rate(elapsed, progress.done + progress.dead),
            records=progress.tallies.get("records", 0),
            errors={name: count for name, count in progress.tallies.items() if name.startswith(_ERRORS)},
            held_back=self._held_back(children),
            workers=len(children),
            resumed=self._resumed,
            elapsed=elapsed,
        )

    def _held_back(self, children: list[Child]) -> str:
        if self._supervisor.stopping:
            return "stopping: pages in flight may finish (interrupt again to stop at once)"
        return next((child.status for child in children if child.status), "")

    async def _spawn(self, place: int) -> Child:
        plan = self._plan
        share = await self._share(place)
        return start_child(
            Orders(
                name=worker_name(place),
                ref=plan.ref,
                frontier=plan.frontier,
                sink=plan.sink,
                job=self._job,
                policy=Policy(slots=plan.slots, max_pages=share, grace=plan.grace, memory=plan.memory),
                allow_private=plan.allow_private,
                allow=plan.allow,
                keeper=wiring.this_process(),
                marker=-1,
                status=-1,
            ),
            self._ready_child(),
        )

    async def _share(self, place: int) -> int | None:
        """How many pages the child in this place may visit; one that replaces a dead one gets what is left."""
        pages = self._spider.max_pages if self._plan.max_pages is None else self._plan.max_pages
        if pages is None:
            return None
        progress = await self._frontier.progress()
        ended = progress.done + progress.dead
        if self._ended_before is None:
            self._ended_before = ended
        left = max(0, pages - (ended - self._ended_before))
        processes = self._plan.processes
        return min(left, pages // processes + (place < pages % processes))

    def _ready_child(self) -> Launched | None:
        """A process that is warm already, if there is one. Where a child has died others may follow."""
        if self._launched:
            return self._launched.pop()
        if self._nursery is not None:
            return self._nursery.launch()
        if self._supervisor.deaths.restarts:
            # It takes as long to be ready as a new interpreter: this once, a new interpreter it is.
            self._nursery = Nursery()
        return None

    async def _seed(self) -> None:
        progress = await self._frontier.progress()
        gate = wiring.open_gate(self._spider)
        await seed(
            self._spider,
            self._frontier,
            gate,
            progress.now,
            extra=self._plan.seeds_file,
            allow_private=self._plan.allow_private,
            allow=self._plan.allow,
        )
        await self._frontier.seal()

    async def _show(self, show: Callable[[Report], None]) -> None:
        while True:
            show(await self.report())
            await asyncio.sleep(SHOW_EVERY)

    async def _limit_time(self) -> None:
        if self._plan.max_time is not None:
            await asyncio.sleep(self._plan.max_time)
            self._stop()

    def _stop(self) -> None:
        """Children finish what is in flight; seeds that are not put yet wait for the next run."""
        self._seeding.cancel()
        self._supervisor.stop()

    def _rate(self, elapsed: Seconds, pages: int) -> float:
        """Pages per second over the last seconds."""
        self._rates.append((elapsed, pages))
        since, before = self._rates[0]
        return (pages - before) / (elapsed - since) if elapsed > since else 0.0

    async def _ending(self) -> Ending:
        if self._supervisor.failure:
            raise TrotlineError(self._supervisor.failure, hint="What is stored is stored; the same command goes on.")
        progress = await self._frontier.progress()
        if self._interrupted:
            return Ending.INTERRUPTED
        if progress.finished_at is None:
            return Ending.STOPPED_AT_LIMIT
        if progress.dead or progress.tallies.get("records rejected"):
            return Ending.FINISHED_WITH_DEAD
        some = progress.tallies.get("records") or progress.tallies.get(_UNCHANGED)
        return Ending.FINISHED if some else Ending.EMPTY

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """The first signal asks the children to finish, the second ends them."""
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            self._interrupted = True
            self._stop()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupt)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


def _code_version(ref: str) -> str:
    path = Path(parse_ref(ref).place)
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else ""
