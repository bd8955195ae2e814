"""One run of one spider on this machine: seed, supervise, show, end."""

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from trotline.commands import archive, inbox
from trotline.commands.advice_inputs import ServerExtras
from trotline.commands.background_view import in_background
from trotline.commands.budget import give_budget
from trotline.commands.job_archive import keep_archiving
from trotline.commands.observe_job import observed
from trotline.commands.open_pools import pool_watch
from trotline.commands.previous_job import tallies_before
from trotline.commands.resolve_job import open_job
from trotline.commands.run_report import Ending, Report, Reporter, ending_of
from trotline.commands.seed import Seeds, seed
from trotline.commands.serve_metrics import Metrics, RunGauges, metrics_at
from trotline.commands.sink_row_counts import ask, refuse_lost_rows, refuse_missing_file
from trotline.commands.startup_warnings import about_code, about_lost, about_others, about_seeds, bad_lines, source_of
from trotline.config import backends, components
from trotline.config.code_version import code_version
from trotline.config.settings import Settings
from trotline.coordinator.job_eta import outage_text
from trotline.errors import TrotlineError
from trotline.frontier.pool_status import PoolWatch
from trotline.ports.backend import OpenJob
from trotline.processes.prestarted_child import WaitingChild
from trotline.processes.signals import obeyed
from trotline.processes.worker_pool import WorkerPool
from trotline.rules import redaction
from trotline.rules.known_pools import KnownPools
from trotline.spider.spider import Spider

if TYPE_CHECKING:
    from trotline.commands.open_alerts import JobAlerts
    from trotline.coordinator.alert_watch import AlertPlan
    from trotline.coordinator.job_observer import Observation

__all__ = ["Ending", "Report", "RunPlan", "run"]


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    ref: str
    settings: Settings
    """With the places of the spider (`Settings.of`)."""
    fresh: bool = False
    """Start a new job even if an unfinished one could be resumed."""
    seeds_file: str | None = None
    pools: KnownPools | None = None
    """The pools that exist; None: not checked."""
    drops_archive: bool = False
    """Pages are not archived, also if those before were."""
    alerts: "AlertPlan | None" = None
    """None: there are no receivers."""


async def run(
    plan: RunPlan, spider: Spider, show: Callable[[Report], None], launched: Sequence[WaitingChild] = ()
) -> tuple[Ending, Report]:
    """Run until finished, stopped by a signal, or at a limit. The same call later goes on where this one ended.

    `launched` are processes that were started ahead, to become the first children.
    """
    settings = plan.settings
    if backends.in_memory(settings.frontier):
        # Children are processes of their own, so a frontier "in memory" is a temporary file.
        with tempfile.TemporaryDirectory(prefix="trotline-") as folder:
            kept = msgspec.structs.replace(settings, frontier=f"sqlite:{folder}/frontier.db")
            return await run(msgspec.structs.replace(plan, settings=kept), spider, show, launched)
    components.check_tracer(settings.otel)
    if settings.one_transaction:
        backends.check_joint(settings.frontier, settings.sink)
    await inbox.check(settings.inbox)
    await archive.check(settings.archive)
    async with metrics_at(settings.metrics, workers=True, jobs=True) as metrics:
        return await _run_job(plan, spider, show, launched, metrics)


async def _run_job(
    plan: RunPlan,
    spider: Spider,
    show: Callable[[Report], None],
    launched: Sequence[WaitingChild],
    metrics: Metrics | None,
) -> tuple[Ending, Report]:
    settings = plan.settings
    version = code_version(plan.ref)
    gate = components.open_gate(spider, plan.pools)
    seeds = Seeds(spider, gate, plan.seeds_file, needed=not settings.inbox)
    found = await open_job(
        settings.frontier,
        spider,
        version,
        fresh=plan.fresh,
        source=source_of(plan.ref),
        allowed=settings.allow_options,
        check=seeds.check,
    )
    job, resumed, _ = found
    async with contextlib.AsyncExitStack() as stack:
        opened = await backends.open_frontier(settings.frontier, job)
        stack.push_async_callback(opened.close)
        moved = await keep_archiving(opened, settings, dropped=plan.drops_archive)
        await give_budget(opened.console, spider, settings.max_pages, settings.max_bytes)
        await components.check_validators(
            settings.frontier, job, settings.sink, spider, rows=not backends.is_missing(settings.sink)
        )
        sink = backends.open_sink(settings.sink, job.id, job.started_at)
        stack.push_async_callback(sink.close)
        await refuse_missing_file(settings.sink, opened)
        await sink.open()
        await refuse_lost_rows(sink, settings.sink, opened)
        async with pool_watch(settings.frontier) as pools:
            before = tallies_before(settings.frontier, job)
            reporter = Reporter(opened, resumed=resumed, sink=sink, pools=pools, tallies_before=before)
            run_ = _Run(plan, spider, seeds, reporter, opened, launched, metrics)
            run_.watch_alerts(pools)
            others = await about_others(opened) if resumed else ()
            run_.note([*about_code(found, plan.ref, version), *others, *([moved] if moved else ())])
            ending = await run_.until_end(show)
            run_.note(run_.about_archive())
            await sink.finish()
            if ending not in (Ending.INTERRUPTED, Ending.STOPPED_AT_LIMIT):
                # Last of all: after a crash before this line the same command comes back and finishes the sink.
                await opened.frontier.announce_finish()
            report = await (run_.parting() if ending is Ending.INTERRUPTED else run_.report())
            if reporter.stale is None:
                report = msgspec.structs.replace(report, stored=await ask(sink, rows=True))
            return ending, report


class _Run:
    """The worker pool, the seeding and the reports of a run."""

    def __init__(
        self,
        plan: RunPlan,
        spider: Spider,
        seeds: Seeds,
        reporter: Reporter,
        opened: OpenJob,
        launched: Sequence[WaitingChild],
        metrics: Metrics | None = None,
    ) -> None:
        self._plan = plan
        self._metrics = metrics
        self._spider = spider
        self._seeds = seeds
        self._opened = opened
        self._interrupted = False
        self._pool = WorkerPool(plan.ref, plan.settings, spider, opened, launched)
        self._reporter = reporter
        self._alerts: JobAlerts | None = None
        self._extras = ServerExtras(plan.settings.frontier, plan.settings.sink, spider.rules.default)

    def watch_alerts(self, pools: PoolWatch) -> None:
        if self._plan.alerts is not None:
            from trotline.commands.open_alerts import JobAlerts

            frontier = self._plan.settings.frontier
            self._alerts = JobAlerts(self._opened, frontier, self._plan.alerts, self._on_alert, pools, self._extras)

    def _on_alert(self, event: str, text: str, **data: object) -> None:
        if event in ("alert.undelivered", "alert.dropped"):
            self.note([text])

    async def until_end(self, show: Callable[[Report], None]) -> Ending:
        seen: Callable[[Observation], None] | None = None
        if self._metrics is not None:
            self._metrics.workers.begin(self._opened.job.id, self._pool.figures)
            self._metrics.troubles[self._opened.job.id] = lambda: outage_text(self._pool.held_back())
            firing = None if self._alerts is None else self._alerts.firing
            gauges = RunGauges(self._metrics.jobs, self._opened.job.id, firing)
            seen, show = gauges.observed, _shown_in(gauges, show)
        working = asyncio.create_task(self._pool.run())
        self._seeding = asyncio.create_task(self._seed())
        showing = self._reporter.show(show, self._pool.held_back, self._pool.processes)
        timing = asyncio.create_task(self._limit_time())
        try:
            watching = observed(self._opened, self._alerts, self._extras, seen)
            async with in_background(showing, self._stop_once), watching:
                with obeyed(self._interrupt):
                    await asyncio.wait([self._seeding])
                    if not self._seeding.cancelled():
                        self._seeding.result()
                    await working
        except BaseException:
            # Seeds that cannot work, or a defect: the children must not outlive us.
            self._pool.stop()
            self._pool.stop()
            await asyncio.gather(working, return_exceptions=True)
            raise
        finally:
            timing.cancel()
            await asyncio.gather(timing, return_exceptions=True)
        return await self._ending()

    def note(self, notes: Sequence[str]) -> None:
        """To be shown with the next report and in the summary."""
        self._reporter.notes += notes

    def about_archive(self) -> list[str]:
        """Pages that were in the archive, and are not any more."""
        figures = self._pool.figures()
        lost, place = figures.stats.archive_lost, redaction.text(self._plan.settings.archive)
        return about_lost(lost, place, incomplete=figures.restarts > 0) if lost else []

    async def report(self) -> Report:
        return await self._reporter.last(self._pool.held_back(), self._pool.processes())

    async def parting(self) -> Report:
        """Of a run that was interrupted, also while the frontier is unreachable."""
        return await self._reporter.parting(self._pool.held_back(), self._pool.processes())

    async def _seed(self) -> None:
        progress = await self._opened.console.progress()
        plan, opened = self._plan, self._opened
        url, place = plan.settings.inbox, plan.settings.frontier
        async with inbox.reading(url, self._spider, opened, place, plan.pools) as reading:
            try:
                seeded = await seed(self._seeds, opened.frontier, progress.now)
                self.note(about_seeds(seeded))
                self._reporter.bad_seeds = bad_lines(seeded)
                self._reporter.refused_seeds = seeded.refused.total()
                await reading.until_idle()
            finally:
                self.note(reading.notes())
        await self._opened.frontier.seal()

    async def _limit_time(self) -> None:
        if self._plan.settings.max_time is not None:
            await asyncio.sleep(self._plan.settings.max_time)
            self._stop()

    def _interrupt(self) -> None:
        self._interrupted = True
        self._stop()

    def _stop(self) -> None:
        """Children finish what is in flight; seeds that are not put yet wait for the next run."""
        self._seeding.cancel()
        self._pool.stop()

    def _stop_once(self) -> None:
        """Ctrl-C also ends the reader of a pipe (`| tee log`): what is in flight may finish all the same."""
        if not self._pool.stopping:
            self._stop()

    async def _ending(self) -> Ending:
        if self._pool.failure:
            raise TrotlineError(self._pool.failure, hint=self._pool.advice)
        if self._interrupted:
            return Ending.INTERRUPTED
        return ending_of(await self._opened.console.progress(), self._opened.job.rules) or Ending.STOPPED_AT_LIMIT


def _shown_in(gauges: RunGauges, show: Callable[[Report], None]) -> Callable[[Report], None]:
    def shown(report: Report) -> None:
        gauges.show(report.progress)
        show(report)

    return shown
