"""Reports of a job's progress, from its frontier."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum

import msgspec

from trotline.commands.dead_reasons import REJECTED, Burial, burials
from trotline.commands.sink_row_counts import ask
from trotline.coordinator.held_back import held_back_by, untaken_routes
from trotline.coordinator.job_eta import GONE
from trotline.coordinator.previous_job import LastTallies
from trotline.errors import FrontierError, FrontierGone, FrontierUnreachable
from trotline.frontier.pool_status import PoolWatch
from trotline.model.inbox import InboxStatus
from trotline.model.job import HANDED_OVER, Job, LaneRules, LaneView, Progress, State, WorkerView
from trotline.model.proxy_pool import DownMember
from trotline.model.row_counts import Stored
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.frontier import DEAD_AFTER
from trotline.ports.sink import Sink
from trotline.processes.signals import STOPPING
from trotline.rules.archive_loss_note import ArchiveNote
from trotline.rules.author_warnings import warnings
from trotline.rules.field_coverage import LEAST_RECORDS, coverage, drops
from trotline.rules.limit_cuts import cuts, unwanted
from trotline.rules.pool_tallies import uses
from trotline.rules.pool_troubles import PoolTrouble, served_by
from trotline.rules.time_series import Point

SHOW_EVERY: Seconds = 0.5
_RATE_WINDOW = 20
"""Reports over which the rate is taken."""
SLOW: Seconds = 2.0
"""While the frontier does not answer for longer, the last known counts are shown with their age."""
_SELDOM = 19
"""Pause after a query of the lanes, as a multiple of its duration."""
COUNT_WITHIN: Seconds = 1.0
"""A sink that takes longer to answer is not waited for: the report goes out without its count. Shorter than SLOW, or
the frontier would be blamed."""
COUNT_EVERY: Seconds = 1.0
"""How often a sink is asked at most."""
COUNT_AGAIN: Seconds = 15.0
"""A count is never older than about this."""
MOST_DROPS = 10
"""Fields that are named because they are filled less often than before."""
ENOUGH_PAGES = 20
"""Pages after which something that never happened is worth a warning, while the job runs."""
FORGOTTEN = f"the job {GONE}"
_ERRORS = ("retry: ", "dead: ")
_UNCHANGED = "dropped: unchanged: 304"
"""The tally of pages whose rows are still good."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    job: Job
    progress: Progress
    lanes: list[LaneView]
    pages_per_second: float | None
    """None: unknown, as ended pages became fewer: dead ones were revived."""
    found: int
    """Records that handlers gave; one that was met twice counts twice."""
    errors: dict[str, int]
    held_back: str
    """Why leasing stopped, here or (of the whole job) for most workers; in the last report why tasks still wait. Empty
    when it did not."""
    workers: int
    resumed: bool
    elapsed: Seconds
    whole: bool = False
    """The whole job with all its workers; else what one command sees of it."""
    crew: list[WorkerView] = []
    ours: int = 0
    """Processes of the command that reports: they count as running before their first heartbeat."""
    stored: Stored | None = None
    """What became of those records in the sink; None if it cannot be queried."""
    bad_seeds: str = ""
    """Which lines of the file of seeds could not be used, and why; empty if all could."""
    refused_seeds: int = 0
    """Seeds that are not visited: no URLs, or out of scope."""
    warnings: tuple[str, ...] = ()
    """What the author or the operator should know."""
    burials: tuple[Burial, ...] = ()
    """Why tasks are dead and records were rejected; only in the last report of a job."""
    troubles: list[PoolTrouble] = []
    """Why tasks of lanes with a proxy pool wait."""
    down: dict[str, list[DownMember]] = {}
    """Proxies that fail by themselves, by pool; only in the last report of a job."""
    inbox: InboxStatus | None = None
    """Of the settings; None: there is none, it cannot be read, or it was not asked for."""
    points: tuple[Point, ...] = ()
    """What others observed of the whole job before, the oldest first."""
    archive: ArchiveNote | None = None
    """Pages that are gone from the archive, in an operator's view. None: it is not known of any."""
    unwritten: int = 0
    """Parcels of results that wait for a writer: an operator's view counts them."""


class Ending(StrEnum):
    FINISHED = "finished"
    FINISHED_WITH_DEAD = "finished with dead"
    INTERRUPTED = "interrupted"
    STOPPED_AT_LIMIT = "stopped at limit"
    CANCELLED = "cancelled"
    CUT = "finished, but cut by limits"
    """All that was admitted was visited; links were left out by a limit or a trap that the spider did not set."""
    EMPTY = "empty"
    """Finished, and not a single record: something is wrong with the spider, or with the site."""


def ending_of(progress: Progress, rules: LaneRules) -> Ending | None:
    """How the job ended; None if it did not. `rules`: of the job."""
    if progress.finished_at is None:
        if progress.spent:
            return Ending.STOPPED_AT_LIMIT
        return Ending.CANCELLED if progress.state is State.CANCELLED else None
    if progress.dead or progress.tallies.get(REJECTED):
        return Ending.FINISHED_WITH_DEAD
    some = progress.tallies.get("records") or progress.tallies.get(_UNCHANGED)
    if not some and not any(name.startswith(HANDED_OVER) for name in progress.tallies):
        return Ending.EMPTY
    return Ending.CUT if unwanted(cuts(progress, rules.own_limits)) else Ending.FINISHED


class Reporter:
    """Makes reports of one job; remembers enough for a rate."""

    def __init__(
        self,
        opened: OpenJob,
        *,
        resumed: bool = False,
        whole: bool = False,
        sink: Sink | None = None,
        pools: PoolWatch | None = None,
        tallies_before: LastTallies | None = None,
    ) -> None:
        self._opened = opened
        self._pools = pools
        """Looks at the proxy pools of lanes that wait; None: they are not looked at."""
        self._tallies_before = tallies_before
        """The counters of the last job, for the coverage of fields; None: not compared."""
        self._sink = sink
        """Counts the rows; None: they are not counted."""
        self._resumed = resumed
        self._whole = whole
        self._started = _now()
        self._rates: deque[tuple[Seconds, int]] = deque(maxlen=_RATE_WINDOW)
        self._last: Report | None = None
        self.stale: Report | None = None
        """What is shown while the frontier does not answer: the last known counts; None: it answers."""
        self._lanes: list[LaneView] = []
        self._troubles: list[PoolTrouble] = []
        self._untaken = ""
        self._lanes_due: Seconds = 0.0
        self._stored: Stored | None = None
        self._reason = ""
        self._reason_since = 0
        """Pages that had ended when it was given."""
        self.bad_seeds = ""
        self.refused_seeds = 0
        self.notes: list[str] = []
        """What is known from the start: who else works, which code, which seeds."""
        self._stored_due: Seconds = 0.0

    async def report(self, held_back: str = "", workers: int = 0) -> Report:
        progress = await self._opened.console.progress()
        # After the end a late heartbeat may still list a worker that has left.
        crew = await self._opened.console.workers() if self._whole and progress.finished_at is None else []
        pages = progress.done + progress.dead
        self._remember(held_back, pages)
        await self._look_at_lanes(crew, progress.tallies)
        since_job_began = max(0.0, (progress.finished_at or progress.now) - progress.started_at)
        self._last = Report(
            job=self._opened.job,
            progress=progress,
            lanes=self._lanes,
            troubles=self._troubles,
            pages_per_second=self._rate(progress, since_job_began),
            found=progress.tallies.get("records", 0),
            stored=await self._stored_now(),
            errors={name: count for name, count in progress.tallies.items() if name.startswith(_ERRORS)},
            held_back=held_back or progress.missing or held_back_by(crew) or self._untaken or progress.broker,
            workers=len(crew) if self._whole else workers,
            resumed=self._resumed,
            elapsed=since_job_began if self._whole else _now() - self._started,
            whole=self._whole,
            # A stable order between two views.
            crew=sorted(crew, key=lambda one: (one.about.host, one.name)),
            ours=workers,
            bad_seeds=self.bad_seeds,
            refused_seeds=self.refused_seeds,
            warnings=(*self.notes, *(warnings(progress.tallies) if pages >= ENOUGH_PAGES else ())),
        )
        return self._last

    async def last(self, held_back: str = "", workers: int = 0) -> Report:
        """The report of a job that has ended: with the reasons for what went wrong."""
        report = await self.report(held_back, workers)
        tallies = report.progress.tallies
        notes = (*self.notes, *warnings(tallies), *await coverage_warnings(tallies, self._tallies_before))
        why = self._reason if report.progress.waiting else ""
        used = [use.pool for use in uses(report.progress.tallies)]
        down = await self._pools.down(used) if self._pools is not None else {}
        report = msgspec.structs.replace(report, warnings=notes, held_back=why, down=down)
        if not report.progress.dead and not report.progress.tallies.get(REJECTED):
            return report
        return msgspec.structs.replace(report, burials=await burials(self._opened.console))

    async def parting(self, held_back: str = "", workers: int = 0) -> Report:
        """The last report of a command that was interrupted: it does not wait for a frontier that is unreachable, and
        gives the last known counts. FrontierUnreachable: there are none."""
        if self.stale is None:
            try:
                return await self.last(held_back, workers)
            except FrontierUnreachable as error:
                if self._last is None:
                    raise
                self.stale = self._remembered(self._last, f"frontier is unreachable: {error.what}", "")
        notes = (*self.notes, *warnings(self.stale.progress.tallies))
        why = self.stale.held_back.removeprefix(f"{STOPPING}; ")
        # The sink is not asked again: it may be on the same server.
        return msgspec.structs.replace(self.stale, warnings=notes, held_back=why, stored=None)

    def _remember(self, held_back: str, pages: int) -> None:
        """The last reason why tasks wait, until pages end without one. That a command stops is not such a reason."""
        if held_back and held_back != STOPPING:
            self._reason, self._reason_since = held_back, pages
        elif pages > self._reason_since:
            self._reason = ""

    async def _look_at_lanes(self, crew: list[WorkerView], tallies: Mapping[str, int]) -> None:
        """All lanes have to be looked at to name the few that matter. Where there are a hundred thousand of them, and
        many who look, that is not done for every picture: it may take a twentieth of our time."""
        started = _now()
        if started >= self._lanes_due:
            self._lanes = await self._opened.console.lanes()
            self._untaken = await untaken_routes(self._opened.console, self._opened.job, crew)
            if self._pools is not None:
                living = [worker for worker in crew if worker.silent_for < DEAD_AFTER]
                self._troubles = await self._pools.troubles(self._lanes, served_by(living), tallies)
            self._lanes_due = _now() + _SELDOM * (_now() - started)

    async def _stored_now(self) -> Stored | None:
        """As seldom as the lanes: a hundred workers that look must not keep a database busy. None while the sink cannot
        be asked: an old number would pass for the present one."""
        started = _now()
        if self._sink is not None and started >= self._stored_due:
            self._stored = await _within(COUNT_WITHIN, ask(self._sink, rows=False))
            took = _now() - started
            # The duration of a timeout says nothing about the cost of counting.
            rest = took if self._stored is None else min(_SELDOM * took, COUNT_AGAIN)
            self._stored_due = _now() + max(COUNT_EVERY, rest)
        return self._stored

    async def show(
        self,
        show: Callable[[Report], None],
        held_back: Callable[[], str] = str,
        workers: Callable[[], int] = int,
        *,
        every: Seconds = SHOW_EVERY,
        ends_with_job: bool = False,
    ) -> None:
        """Report to `show` until cancelled, also while the frontier is unreachable. `ends_with_job`: FrontierGone if
        the job was forgotten; a worker finds that by itself."""
        while True:
            try:
                show(await self._answered(show, held_back, workers))
                self.stale = None
            except FrontierError as error:
                if self._last is not None:
                    gone = isinstance(error, FrontierGone)
                    why = FORGOTTEN if gone else f"frontier is unreachable, retrying: {error.what}"
                    self.stale = self._remembered(self._last, why, held_back())
                    show(self.stale)
                if ends_with_job and isinstance(error, FrontierGone):
                    raise FrontierGone(f"{self._opened.job.id} {GONE}", hint=error.hint) from error
            await asyncio.sleep(every)

    async def _answered(
        self, show: Callable[[Report], None], held_back: Callable[[], str], workers: Callable[[], int]
    ) -> Report:
        """A server that is gone may let us wait for its timeouts: meanwhile the view must not stand still."""
        asking = asyncio.create_task(self.report(held_back(), workers()))
        try:
            while not (await asyncio.wait({asking}, timeout=SLOW))[0]:
                if self._last is not None:
                    self.stale = self._remembered(self._last, "frontier does not answer, waiting", held_back())
                    show(self.stale)
            return asking.result()
        finally:
            asking.cancel()

    def _remembered(self, last: Report, why: str, held_back: str) -> Report:
        """The last known counts, with their age."""
        age = _now() - self._rates[-1][0]
        stopping = f"{STOPPING}; " if held_back == STOPPING else ""
        return msgspec.structs.replace(
            last,
            held_back=f"{stopping}{why} (last answer {age:.0f} s ago)",
            elapsed=last.elapsed + age,
            pages_per_second=0.0,
        )

    def _rate(self, progress: Progress, since_job_began: Seconds) -> float | None:
        """Pages per second over the last seconds; of the job's whole life if this is the first look at it."""
        now, pages = _now(), progress.done + progress.dead
        if self._rates and pages < self._rates[-1][1]:
            # Revived pages count as ended no more: what was seen before is no begin for a rate.
            self._rates.clear()
            self._rates.append((now, pages))
            return None
        self._rates.append((now, pages))
        since, before = self._rates[0]
        if now > since:
            return (pages - before) / (now - since)
        return pages / since_job_began if self._whole and since_job_began > 0 else 0.0


async def coverage_warnings(tallies: Mapping[str, int], before: LastTallies | None) -> list[str]:
    """Fields that are filled less often than in the last job."""
    now = coverage(tallies)
    if before is None or all(each.records < LEAST_RECORDS for each in now):
        return []
    old = await before()
    return [] if old is None else [drop.text() for drop in drops(now, coverage(old))[:MOST_DROPS]]


async def _within(limit: Seconds, asked: Awaitable[Stored | None]) -> Stored | None:
    try:
        async with asyncio.timeout(limit):
            return await asked
    except TimeoutError:
        return None


def _now() -> Seconds:
    return asyncio.get_running_loop().time()
