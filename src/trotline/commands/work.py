"""A machine of the fleet: takes part in the jobs of one spider, one after another, and waits for the next."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from trotline.commands import archive, inbox
from trotline.commands.background_view import in_background
from trotline.commands.budget import lower_budget
from trotline.commands.delete_old_jobs import retire_old
from trotline.commands.job_archive import keep_archiving
from trotline.commands.join_job import Found, Search
from trotline.commands.open_pools import pool_watch
from trotline.commands.run_report import Ending, Report, Reporter, ending_of
from trotline.commands.serve_metrics import Metrics, metrics_at
from trotline.commands.sink_row_counts import ask, refuse_lost_rows
from trotline.commands.work_events import What, WorkEvent, WorkOutput, WorkPlan
from trotline.config import backends, components
from trotline.coordinator.job_eta import outage_text
from trotline.errors import (
    FrontierError,
    FrontierGone,
    FrontierUnreachable,
    SettingsError,
    SinkGone,
    SinkUnreachable,
    TrotlineError,
)
from trotline.frontier.reconnect import until_reachable
from trotline.model.job import Job, State
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.sink import Sink
from trotline.processes.prestarted_child import WaitingChild
from trotline.processes.signals import obeyed
from trotline.processes.worker_pool import WorkerPool
from trotline.rules.unreadable_jobs import in_a_line
from trotline.spider.spider import Spider

T = TypeVar("T")

LOOK_AGAIN: Seconds = 1.0
"""How often a worker that waits looks for a job."""
_NAMED = 5
"""Unreadable jobs in one message; `trotline jobs` has all of them."""


async def work(plan: WorkPlan, spider: Spider, output: WorkOutput, launched: Sequence[WaitingChild] = ()) -> Ending:
    """Take part until stopped; with `until_finished`, until a job has ended. How it ended."""
    if backends.in_memory(plan.settings.frontier):
        raise SettingsError(
            "a frontier in memory belongs to one run: no other worker can take part in it",
            hint=f"Name a place that workers share: --frontier {backends.shared_frontiers()}",
        )
    components.check_tracer(plan.settings.otel)
    if plan.settings.one_transaction:
        backends.check_joint(plan.settings.frontier, plan.settings.sink)
    await inbox.check(plan.settings.inbox)
    await archive.check(plan.settings.archive)
    async with metrics_at(plan.settings.metrics, workers=True) as metrics:
        return await _Member(plan, spider, output, launched, metrics).until_end()


class _Member:
    """One member of the fleet: looks for a job, joins it, looks again."""

    def __init__(
        self,
        plan: WorkPlan,
        spider: Spider,
        output: WorkOutput,
        launched: Sequence[WaitingChild],
        metrics: Metrics | None = None,
    ) -> None:
        self._plan = plan
        self._settings = plan.settings
        self._spider = spider
        self._output = output
        self._launched = list(launched)
        self._metrics = metrics
        self._stopped = asyncio.Event()
        self._out_of_time = False
        self._pool: WorkerPool | None = None
        self._emitted: set[tuple[What, str]] = set()
        """Events that are not repeated."""
        self._answered = False
        """The frontier was reachable at least once."""
        self._worked = False
        """The sink was reachable at least once."""
        self._search = Search(plan.settings.frontier, plan.ref, spider.name, upgrade=plan.upgrade)
        self._left: Job | None = None
        """A job that had not ended at the last look."""

    async def until_end(self) -> Ending:
        try:
            with obeyed(self._interrupt), self._limited():
                while not self._stopped.is_set():
                    found = await self._look()
                    if found.opened is not None:
                        ending = await self._join(found)
                    else:
                        ending = await self._ended_without_us()
                    if ending is None:
                        await self._rest()
                    elif self._is_last(ending):
                        return ending
            return Ending.STOPPED_AT_LIMIT if self._out_of_time else Ending.INTERRUPTED
        finally:
            await self._search.close()

    def _is_last(self, ending: Ending) -> bool:
        """Is the end of this job our end? A limit that this command was given is one for the command, too."""
        if ending is Ending.STOPPED_AT_LIMIT and (self._settings.max_pages or self._settings.max_bytes):
            return True
        return self._plan.until_finished and ending is not Ending.INTERRUPTED

    @contextlib.contextmanager
    def _limited(self) -> Iterator[None]:
        """After `max_time` we stop, as after a signal; the job goes on with the other workers."""
        if self._settings.max_time is None:
            yield
            return
        timer = asyncio.get_running_loop().call_later(self._settings.max_time, self._end_in_time)
        try:
            yield
        finally:
            timer.cancel()

    def _end_in_time(self) -> None:
        self._out_of_time = True
        self._interrupt()

    def _interrupt(self) -> None:
        self._stopped.set()
        if self._pool is not None:
            self._pool.stop()

    async def _rest(self) -> None:
        waiting = asyncio.create_task(self._stopped.wait())
        await asyncio.wait([waiting], timeout=LOOK_AGAIN)
        waiting.cancel()

    # Finding a job

    async def _look(self) -> Found:
        try:
            found = await self._search.look()
        except FrontierError as error:
            self._report_outage(What.UNREACHABLE, error, worked_before=self._answered)
            return Found()
        if not self._answered:
            self._answered = True
            await self._retire()
        self._report_frontier("")
        if found.unreadable:
            self._emit_once(
                WorkEvent(what=What.UNREADABLE, reason="; ".join(map(in_a_line, found.unreadable[:_NAMED])))
            )
        if found.missed is not None:
            self._left = found.missed
        for job in found.others:
            self._left = job
            self._emit_once(WorkEvent(what=What.OTHER_VERSION, job=job, version=found.version))
        if found.opened is None and not found.others and not self._advised_upgrade():
            self._emit_once(WorkEvent(what=What.WAITS))
        return found

    async def _retire(self) -> None:
        if retired := await retire_old(self._settings.frontier):
            self._emit_once(WorkEvent(what=What.RETIRED, reason=", ".join(retired)))

    def _advised_upgrade(self) -> bool:
        """After the advice to upgrade, "waits" would be misleading."""
        return any(what is What.OTHER_VERSION for what, _ in self._emitted)

    def _report_frontier(self, error: str) -> None:
        """`error`: why it does not answer; empty if it does."""
        if error:
            self._emit_once(WorkEvent(what=What.UNREACHABLE, reason=error))
        elif (What.UNREACHABLE, "") in self._emitted:
            self._emitted.discard((What.UNREACHABLE, ""))
            self._output.emit(WorkEvent(what=What.BACK))

    def _report_outage(self, what: What, error: TrotlineError, *, worked_before: bool) -> None:
        """A server that never answered is a mistake in the settings."""
        if not worked_before:
            raise error
        self._emit_once(WorkEvent(what=what, reason=error.what))

    def _emit_once(self, event: WorkEvent) -> None:
        key = (event.what, event.job.id if event.job is not None else "")
        if key not in self._emitted:
            self._emitted.add(key)
            self._output.emit(event)

    # Taking part

    async def _join(self, found: Found) -> Ending | None:
        """How the job ended; None if it did not, and is worth another look."""
        opened, settings = found.opened, self._settings
        assert opened is not None  # noqa: S101 - asked by the caller
        self._left = opened.job
        try:
            moved = await self._patiently(lambda: keep_archiving(opened, settings, dropped=self._plan.drops_archive))
            rows = not backends.is_missing(settings.sink)
            await components.check_validators(settings.frontier, opened.job, settings.sink, self._spider, rows=rows)
            sink = backends.open_sink(settings.sink, opened.job.id, opened.job.started_at)
            try:
                await sink.open()
                if not backends.is_local(settings.sink):
                    # Files may be one for each machine, and empty on a new one.
                    await refuse_lost_rows(sink, settings.sink, opened)
            except SinkUnreachable as error:
                self._report_outage(What.SINK_UNREACHABLE, error, worked_before=self._worked)
                await sink.close()
                return None
            except SinkGone:
                await sink.close()
                raise
            self._worked = True
            self._emitted.clear()
            joined = WorkEvent(
                what=What.JOINED, job=opened.job, version=found.version, upgraded=found.upgraded, reason=moved
            )
            self._output.emit(joined)
            try:
                return await self._take_part(opened, sink)
            except FrontierGone:
                if not await self._is_forgotten(opened.job):
                    raise
                self._left = None
                ending = Ending.CANCELLED if self._plan.until_finished else None
                self._output.emit(WorkEvent(what=What.FORGOTTEN, job=opened.job, ending=ending))
                return ending
            finally:
                await sink.close()
        finally:
            await opened.close()

    async def _take_part(self, opened: OpenJob, sink: Sink) -> Ending | None:
        async with pool_watch(self._settings.frontier) as pools:
            return await self._until_ended(opened, sink, Reporter(opened, whole=True, sink=sink, pools=pools))

    async def _until_ended(self, opened: OpenJob, sink: Sink, reporter: Reporter) -> Ending | None:
        await lower_budget(opened.console, self._spider, self._settings.max_pages, self._settings.max_bytes)
        if (await opened.console.progress()).finished_at is None:
            await self._work(opened, reporter)
        ending = await self._patiently(lambda: self._ending(opened))
        if ending is None:
            return None
        announced = False
        if ending is Ending.STOPPED_AT_LIMIT:
            # For all workers, and for the coordinator that waits for its end: `resume` takes it up again.
            await self._patiently(lambda: opened.console.steer(State.CANCELLED))
        if ending not in (Ending.INTERRUPTED, Ending.CANCELLED):
            # First the sink, then the announcement: after a crash in between, the next worker finishes both.
            await sink.finish()
            announced = await self._patiently(opened.frontier.announce_finish)
        report: Report | None = None
        if ending is not Ending.INTERRUPTED:
            report = await self._patiently(reporter.last)
        else:
            with contextlib.suppress(FrontierUnreachable):
                report = await reporter.parting()
        if report is not None and reporter.stale is None:
            report = msgspec.structs.replace(report, stored=await ask(sink, rows=announced))
        self._search.look_back()
        self._left = None
        self._output.emit(WorkEvent(what=What.ENDED, job=opened.job, ending=ending, report=report, announced=announced))
        return ending

    async def _ended_without_us(self) -> Ending | None:
        """The job that we had to leave may have been ended by other workers between two looks."""
        if self._left is None or not self._plan.until_finished or backends.is_missing(self._settings.frontier):
            return None
        try:
            opened = await backends.open_frontier(self._settings.frontier, self._left)
        except FrontierError as error:
            self._report_outage(What.UNREACHABLE, error, worked_before=self._answered)
            return None
        try:
            ending = await self._patiently(lambda: self._ending(opened))
            if ending is not None and ending is not Ending.INTERRUPTED:
                report = await self._patiently(Reporter(opened, whole=True).report)
                self._output.emit(WorkEvent(what=What.ENDED, job=opened.job, ending=ending, report=report))
        finally:
            await opened.close()
        return ending

    async def _work(self, opened: OpenJob, reporter: Reporter) -> None:
        if self._stopped.is_set():
            return
        pool = self._pool = WorkerPool(
            self._plan.ref, self._settings, self._spider, opened, self._launched, strict=True
        )
        self._launched = []
        if self._metrics is not None:
            self._metrics.workers.begin(opened.job.id, pool.figures)
            self._metrics.troubles[opened.job.id] = lambda: outage_text(pool.held_back())
        try:
            async with contextlib.AsyncExitStack() as stack:
                url, place, pools = self._settings.inbox, self._settings.frontier, self._plan.known_pools
                await stack.enter_async_context(inbox.reading(url, self._spider, opened, place, pools))
                if self._output.every is not None:
                    showing = reporter.show(self._output.show, pool.held_back, pool.processes, every=self._output.every)
                    await stack.enter_async_context(in_background(showing, pool.stop_once))
                await pool.run()
        finally:
            self._pool = None
            if self._metrics is not None:
                self._metrics.workers.end(opened.job.id)
                self._metrics.troubles.pop(opened.job.id, None)
            self._output.pause()
        if pool.failure:
            if await self._is_forgotten(opened.job):
                raise FrontierGone(pool.failure, hint=pool.advice)
            raise TrotlineError(pool.failure, hint="The job goes on without this worker. " + pool.advice)

    async def _is_forgotten(self, job: Job) -> bool:
        """Did an operator forget the job, and is its frontier as good as before?"""
        if backends.is_missing(self._settings.frontier):
            return False
        try:
            jobs = await backends.open_jobs(self._settings.frontier)
            try:
                known = {each.id for each in await jobs.all()}
                return job.id not in known and job.id not in jobs.unreadable()
            finally:
                await jobs.close()
        except FrontierError:
            return False

    async def _ending(self, opened: OpenJob) -> Ending | None:
        return (
            Ending.INTERRUPTED
            if self._stopped.is_set()
            else ending_of(await opened.console.progress(), opened.job.rules)
        )

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Retry while the frontier is unreachable at the end of a job, until we are asked to stop."""
        return await until_reachable(
            call,
            self._report_frontier,
            give_up=lambda: self._stopped.is_set() or backends.is_local(self._settings.frontier),
            pause=lambda _: self._rest(),
        )
