"""A job for the fleet: made, seeded, and watched until the workers have finished it."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from trotline.commands import inbox
from trotline.commands.background_view import in_background
from trotline.commands.budget import give_budget
from trotline.commands.coordinate import Post, look_after
from trotline.commands.delete_old_jobs import retire_old
from trotline.commands.open_alerts import JobAlerts
from trotline.commands.previous_job import tallies_before
from trotline.commands.put_with_retries import HIGH_WATER, open_feed
from trotline.commands.resolve_job import JobFound, open_job
from trotline.commands.run_report import Ending, Report, Reporter, ending_of
from trotline.commands.seed import Seeded, Seeds, seed
from trotline.commands.sink_row_counts import count_rows
from trotline.commands.startup_warnings import about_code, about_seeds, bad_lines, source_of
from trotline.config import backends, components
from trotline.config.code_version import code_version
from trotline.config.settings import Settings
from trotline.coordinator.alert_watch import AlertPlan
from trotline.coordinator.dependencies import CoordinatorEvent
from trotline.coordinator.held_back import held_back_by
from trotline.errors import SettingsError, TrotlineError
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.processes.signals import obeyed
from trotline.rules.known_pools import KnownPools
from trotline.spider.spider import Spider

ALONE: Seconds = 3.0
"""After this long without a worker, the view shows how to start one."""


class StartPlan(msgspec.Struct, frozen=True, kw_only=True):
    ref: str
    settings: Settings
    """With the places of the spider (`Settings.of`). Rows go into its sink by way of the workers."""
    fresh: bool = False
    """Start a new job even if an unfinished one could be resumed."""
    detach: bool = False
    """Seed it and leave."""
    seeds_file: str | None = None
    pools: KnownPools | None = None
    """The pools that exist; None: not known here."""
    high_water: int = HIGH_WATER
    alerts: AlertPlan = AlertPlan()


class Started(msgspec.Struct, frozen=True, kw_only=True):
    ending: Ending | None
    """None: seeded, and left to the workers."""
    report: Report
    seeded: bool
    announced: bool = False
    """This command announced the end of the job."""
    retired: tuple[str, ...] = ()
    """Old jobs that were forgotten on the way."""


class MadeJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is there, with its limits, and not seeded yet."""

    found: JobFound
    version: str
    """Of the spider's code here."""
    opened: OpenJob
    seeds: Seeds
    retired: tuple[str, ...] = ()


async def make_job(plan: StartPlan, spider: Spider) -> MadeJob:
    """Make the job, or go on with the unfinished one. The caller closes it."""
    if backends.in_memory(plan.settings.frontier):
        raise SettingsError(
            "a frontier in memory belongs to one run: no worker could take part in it",
            hint=f"Name a place that workers share: --frontier {backends.shared_frontiers()}",
        )
    version = code_version(plan.ref)
    gate = components.open_gate(spider, plan.pools)
    seeds = Seeds(spider, gate, plan.seeds_file, needed=not plan.settings.inbox)
    found = await open_job(
        plan.settings.frontier, spider, version, fresh=plan.fresh, source=source_of(plan.ref), check=seeds.check
    )
    retired = await retire_old(plan.settings.frontier)
    opened = await backends.open_frontier(plan.settings.frontier, found.job)
    try:
        await give_budget(opened.console, spider, plan.settings.max_pages, plan.settings.max_bytes)
    except BaseException:
        await opened.close()
        raise
    return MadeJob(found=found, version=version, opened=opened, seeds=seeds, retired=tuple(retired))


async def seed_job(plan: StartPlan, spider: Spider, made: MadeJob, say: Callable[[str], None]) -> Seeded:
    """Put every seed and seal the job. `say` gets the reason while it waits, and "" when it goes on."""
    opened = made.opened
    progress = await opened.console.progress()
    await opened.console.set_high_water(plan.high_water)
    place, url = plan.settings.frontier, "" if plan.detach else plan.settings.inbox
    async with inbox.reading(url, spider, opened, place, plan.pools, say=say, high_water=plan.high_water) as reading:
        seeded = await seed(made.seeds, open_feed(opened, place, plan.high_water, say), progress.now)
        await reading.until_idle()
    if url or not plan.settings.inbox:
        # Else the job stays open: its workers read the inbox.
        await opened.frontier.seal()
    return seeded


async def start(plan: StartPlan, spider: Spider, show: Callable[[Report], None]) -> Started:
    """Make the job, or go on with the unfinished one; seed it; show it until it has ended or we are interrupted."""
    await inbox.check(plan.settings.inbox, ends=plan.detach)
    made = await make_job(plan, spider)
    try:
        notes = about_code(made.found, plan.ref, made.version)
        started = await _Start(plan, spider, made, notes).until_end(show)
        return msgspec.structs.replace(started, retired=made.retired)
    finally:
        await made.opened.close()


class _Start:
    def __init__(self, plan: StartPlan, spider: Spider, made: MadeJob, notes: list[str]) -> None:
        self._plan = plan
        self._spider = spider
        self._made = made
        self._opened = made.opened
        before = tallies_before(plan.settings.frontier, made.opened.job)
        self._reporter = Reporter(made.opened, resumed=made.found.resumed, whole=True, tallies_before=before)
        self._reporter.notes += notes
        self._feeding = ""
        self._last: Report | None = None
        self._alone_since: Seconds | None = None
        self._alerts: dict[str, str] = {}
        self._announced = False
        self._seeded = False

    async def until_end(self, show: Callable[[Report], None]) -> Started:
        interrupted = asyncio.Event()
        with obeyed(interrupted.set):
            stopping = asyncio.create_task(interrupted.wait())
            seeding = asyncio.create_task(self._seed())
            ending = asyncio.create_task(self._ended(seeding))
            caring = asyncio.create_task(self._look_after())
            tasks: list[asyncio.Task[Any]] = [stopping, seeding, ending, caring]
            showing = self._reporter.show(self._show_to(show), self._held_back, ends_with_job=True)
            try:
                async with in_background(showing, interrupted.set, needed=True):
                    await asyncio.wait([stopping, ending], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        found = Ending.INTERRUPTED if ending.cancelled() else ending.result()
        if found not in (None, Ending.INTERRUPTED):
            # A coordinator looks every few seconds: it may not have seen the end.
            await JobAlerts(self._opened, self._plan.settings.frontier, self._plan.alerts, self._on_alert).finish()
        report = await (self._reporter.parting() if found is Ending.INTERRUPTED else self._reporter.last())
        if self._reporter.stale is None:
            stored = await count_rows(self._plan.settings.sink, self._opened.job)
            report = msgspec.structs.replace(report, stored=stored)
        return Started(ending=found, report=report, seeded=self._seeded, announced=self._announced)

    async def _look_after(self) -> None:
        """A small fleet needs no other coordinator. Where there is one already, it leads and we stand by."""
        if self._plan.detach:
            return
        plan = self._plan
        post = Post(ref=plan.ref, spider=self._spider, frontier=plan.settings.frontier, sink=plan.settings.sink)
        try:
            await look_after(post, plan.alerts, self._on_event)
        except TrotlineError as error:
            # The job goes on without: workers rescue each other's tasks.
            self._alerts["coordinator"] = f"no coordinator: {error.what}"

    def _on_event(self, event: CoordinatorEvent) -> None:
        if event.job and event.job != self._opened.job.id:
            return
        if event.event == "job.finished":
            self._announced = True
        else:
            self._on_alert(event.event, event.text, **event.data)

    def _on_alert(self, event: str, text: str, **data: object) -> None:
        name = f"{data.get('alert', '')} {data.get('object', '')}"
        if event in ("alert.raised", "alert.continues"):
            self._alerts[name] = text
        elif event == "alert.over":
            self._alerts.pop(name, None)
        elif event in ("alert.undelivered", "alert.dropped"):
            self._reporter.notes.append(text)

    async def _ended(self, seeding: "asyncio.Task[None]") -> Ending | None:
        await seeding
        if self._plan.detach:
            return None
        while True:
            # What is shown is as good as what we would ask for ourselves.
            if self._last is not None and (found := ending_of(self._last.progress, self._last.job.rules)) is not None:
                return found
            await asyncio.sleep(0.1)

    def _show_to(self, show: Callable[[Report], None]) -> Callable[[Report], None]:
        def shown(report: Report) -> None:
            self._last = report
            show(report)

        return shown

    def _held_back(self) -> str:
        """Why nothing moves, if nothing does."""
        if self._feeding or self._last is None:
            return self._feeding
        now = asyncio.get_running_loop().time()
        if self._last.crew or self._plan.detach:
            self._alone_since = None
            # What workers report is the cause of an alert.
            return held_back_by(self._last.crew) or next(iter(self._alerts.values()), "")
        self._alone_since = self._alone_since or now
        if now - self._alone_since < ALONE:
            return ""
        return f"no worker is running yet; on this or any other machine: trotline work {self._plan.ref}"

    async def _seed(self) -> None:
        def say(text: str) -> None:
            self._feeding = text

        seeded = await seed_job(self._plan, self._spider, self._made, say)
        self._reporter.notes += about_seeds(seeded)
        self._reporter.bad_seeds = bad_lines(seeded)
        self._seeded = True
