"""Measures a spider on this machine: some minutes with changing numbers of processes and slots, as polite as ever."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable

import msgspec

from trotline.commands.advice_inputs import ServerExtras
from trotline.commands.advise import AdviceReport, AdvisePlan, made
from trotline.commands.resolve_job import open_job
from trotline.commands.seed import Seeds, seed
from trotline.config import backends, components
from trotline.config.code_version import code_version
from trotline.config.settings import Settings
from trotline.coordinator.job_observer import Observer
from trotline.errors import TrotlineError
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.processes.host_limits import cpu_cores
from trotline.processes.signals import obeyed
from trotline.processes.worker_pool import WorkerPool
from trotline.rules.eta import Unknown
from trotline.rules.fleet_rates import flow, living
from trotline.rules.known_pools import KnownPools
from trotline.rules.lab_plan import Phase
from trotline.rules.machine_comparison import Prices
from trotline.rules.survey_note import JobSummary
from trotline.rules.svg_charts import Point
from trotline.spider.spider import Spider

SAMPLE_EVERY: Seconds = 1.0
LANES = 10
"""Lanes whose pace is compared between measurements."""


class LabPlan(msgspec.Struct, frozen=True, kw_only=True):
    ref: str
    settings: Settings
    phases: tuple[Phase, ...]
    phase: Seconds
    """How long each of them takes."""
    prices: Prices | None = None
    within: Seconds | None = None
    pools: KnownPools | None = None


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    phase: Phase
    pages_per_second: float
    memory: int
    """Bytes of all processes."""
    report: AdviceReport
    intervals: dict[str, Seconds] = {}
    """Between two starts, at the end, of the lanes with the most work: a pace may change by the answers of a site."""


class LabResult(msgspec.Struct, frozen=True, kw_only=True):
    spider: str
    cores: float
    trials: list[Trial]
    samples: list[Point]
    """Seconds since the start, and pages that had ended."""
    changes: list[Point]
    """Seconds since the start, at which each measurement began."""
    missed: list[str] = []
    """Configurations without a measurement."""
    ended: str = ""
    """Why it ended early; empty if it did not."""


async def lab(plan: LabPlan, spider: Spider, say: Callable[[str], None]) -> LabResult:
    """Frontier and rows are temporary files: nothing of the spider's own jobs and rows is touched."""
    with tempfile.TemporaryDirectory(prefix="trotline-lab-") as folder:
        places = {"frontier": f"sqlite:{folder}/frontier.db", "sink": f"sqlite:{folder}/rows.db"}
        settings = msgspec.structs.replace(plan.settings, **places)
        own = plan.settings.of(spider.name)
        return await _Lab(msgspec.structs.replace(plan, settings=settings), own, spider, say).run()


class _Lab:
    def __init__(self, plan: LabPlan, own: Settings, spider: Spider, say: Callable[[str], None]) -> None:
        """`own`: with the places that the spider has outside of the laboratory."""
        self._plan = plan
        self._own = own
        self._spider = spider
        self._say = say
        self._stopped = asyncio.Event()
        self._samples: list[Point] = []
        self._changes: list[Point] = []
        self._trials: list[Trial] = []
        self._missed: list[str] = []

    async def run(self) -> LabResult:
        settings = self._plan.settings
        found = await open_job(settings.frontier, self._spider, code_version(self._plan.ref), fresh=True)
        opened = await backends.open_frontier(settings.frontier, found.job)
        seeding = asyncio.create_task(self._seed(opened))
        try:
            with obeyed(self._stopped.set):
                ended = await self._phases(opened)
            if seeding.done():
                seeding.result()
        finally:
            seeding.cancel()
            await asyncio.gather(seeding, return_exceptions=True)
            await opened.close()
        return LabResult(
            spider=self._spider.name,
            cores=cpu_cores(),
            trials=self._trials,
            samples=self._samples,
            changes=self._changes,
            missed=self._missed,
            ended=ended,
        )

    async def _seed(self, opened: OpenJob) -> None:
        gate = components.open_gate(self._spider, self._plan.pools)
        await seed(Seeds(self._spider, gate), opened.frontier, (await opened.console.progress()).now)
        await opened.frontier.seal()

    async def _phases(self, opened: OpenJob) -> str:
        for phase in self._plan.phases:
            self._say(f"{phase.name}: {self._plan.phase:.0f} s")
            trial = await self._trial(opened, phase)
            if trial is None:
                self._missed.append(phase.name)
                self._say(f"{phase.name}: not measured, as its processes sent too few figures")
            else:
                self._trials.append(trial)
                self._say(f"{phase.name}: {trial.pages_per_second:.2f} pages/s; {trial.report.advice.sentence}")
            if self._stopped.is_set():
                return "interrupted"
            if (await opened.console.progress()).finished_at is not None:
                return "nothing was left to visit: the other measurements were left out"
        return ""

    async def _trial(self, opened: OpenJob, phase: Phase) -> Trial | None:
        """None: it ended before something was measured."""
        settings = msgspec.structs.replace(self._plan.settings, processes=phase.processes, slots=phase.slots)
        pool = WorkerPool(self._plan.ref, settings, self._spider, opened)
        clock = asyncio.get_running_loop().time
        observer = Observer(
            opened.console, clock, ServerExtras(settings.frontier, settings.sink, opened.job.rules.default)
        )
        async with _running(pool), self._sampled(opened, phase):
            until = clock() + self._plan.phase
            console = opened.console
            if not await self._all_report(opened, phase.processes, until - self._plan.phase / 2):
                return None
            summary = await observer.measure(await console.progress(), await console.workers(), JobSummary())
            await self._pause(opened, until - clock())
            progress, crew = await console.progress(), await console.workers()
            summary = await observer.measure(progress, crew, summary)
        if pool.failure:
            raise TrotlineError(pool.failure, hint=pool.advice)
        measured = flow(summary.steps)
        if measured is None:
            return None
        plan = AdvisePlan(
            frontier=self._own.frontier, sink=self._own.sink, job=opened.job,
            prices=self._plan.prices, within=self._plan.within, proxies=settings.proxies,
        )  # fmt: skip
        return Trial(
            phase=phase,
            pages_per_second=measured.pages_per_second,
            memory=summary.hosts.memory,
            report=made(plan, progress, summary, Unknown.TOO_EARLY),
            intervals={lane.lane: lane.interval for lane in summary.lanes.most_waiting[:LANES]},
        )

    async def _all_report(self, opened: OpenJob, processes: int, until: Seconds) -> bool:
        """Every process has sent figures: the first ones come some seconds after its start."""
        while asyncio.get_running_loop().time() < until and await self._pause(opened, 0.5):
            crew = living(await opened.console.workers())
            if len(crew) >= processes and all(worker.about.stats is not None for worker in crew):
                return True
        return False

    async def _pause(self, opened: OpenJob, seconds: Seconds) -> bool:
        """False: it was stopped, or the job ended."""
        until = asyncio.get_running_loop().time() + seconds
        while (left := until - asyncio.get_running_loop().time()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(1.0, left)):
                    await self._stopped.wait()
            if self._stopped.is_set() or (await opened.console.progress()).finished_at is not None:
                return False
        return True

    @contextlib.asynccontextmanager
    async def _sampled(self, opened: OpenJob, phase: Phase) -> AsyncIterator[None]:
        task = asyncio.create_task(self._sample(opened, phase))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _sample(self, opened: OpenJob, phase: Phase) -> None:
        begun = await opened.console.progress()
        self._changes.append(Point(begun.now - begun.started_at, len(self._changes), phase.name))
        while True:
            progress = await opened.console.progress()
            self._samples.append(Point(progress.now - progress.started_at, progress.ended))
            await asyncio.sleep(SAMPLE_EVERY)


@contextlib.asynccontextmanager
async def _running(pool: WorkerPool) -> AsyncIterator[None]:
    working = asyncio.create_task(pool.run())
    try:
        yield
    finally:
        pool.stop_once()
        await working
