"""Tasks from a list, into a job that is under way. A bad line is reported with its number, and loses no other."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from trotline.commands.input_lines import read_lines, task_of
from trotline.commands.put_with_retries import HIGH_WATER, open_feed
from trotline.commands.resolve_job import is_cancelled
from trotline.config import backends, components
from trotline.errors import SettingsError
from trotline.frontier.gate import Gate
from trotline.frontier.gate_batch import Numbered, sift
from trotline.model.job import Job
from trotline.model.lease import Admission
from trotline.model.queue_job import is_queue
from trotline.model.task import Task
from trotline.model.task_json import seed_names
from trotline.model.time import Moment
from trotline.ports.backend import OpenJob
from trotline.rules.known_pools import KnownPools
from trotline.spider.route import Route
from trotline.spider.spider import Spider

BATCH = 500
_COLUMNS = frozenset(seed_names())


class PushPlan(msgspec.Struct, frozen=True, kw_only=True):
    frontier: str
    source: str = "-"
    table: str | None = None
    """The rows of this table instead, at the URL that `source` is then."""
    job: str | None = None
    """None: the newest unfinished one of the spider."""
    route: str | None = None
    """Of lines that name none; None: the spider's first."""
    priority: int | None = None
    """Of lines that name none; None: the route's."""
    pools: KnownPools | None = None
    """The pools that exist; None: not known here."""
    high_water: int = HIGH_WATER


class BadLine(msgspec.Struct, frozen=True):
    number: int
    why: str


class Pushed(msgspec.Struct, kw_only=True):
    job: str = ""
    lines: int = 0
    new: int = 0
    duplicate: int = 0
    bad: int = 0
    """Lines that were reported: no task, out of scope, or refused by a job that drains."""
    waits: str = ""
    """Why it does not go on just now."""


Lines = AsyncIterator[tuple[int, bytes | None]]
"""Numbered lines; None for one that is too long."""


async def push(
    plan: PushPlan,
    spider: Spider,
    report: Callable[[BadLine], None],
    show: Callable[[Pushed], None],
    lines: Lines | None = None,
) -> Pushed:
    """Every line that can be a task becomes one. `lines`: instead of the plan's source."""
    route = _route(plan, spider)
    job = await find_job(plan.frontier, spider, plan.job)
    opened = await backends.open_frontier(plan.frontier, job)
    try:
        pushing = _Push(plan, route, opened, components.open_gate(spider, plan.pools), report, show)
        await pushing.all(lines or _source(plan))
        return pushing.pushed
    finally:
        await opened.close()


async def find_job(frontier: str, spider: Spider, wanted: str | None) -> Job:
    start = f"Start one: trotline start {spider.name}.py --detach"
    if backends.is_missing(frontier):
        raise SettingsError(f"spider {spider.name!r} has no job yet", hint=start)
    jobs = await backends.open_jobs(frontier)
    try:
        own = [job for job in await jobs.all() if job.spider == spider.name and not is_queue(job)]
    finally:
        await jobs.close()
    if wanted is not None:
        chosen = [job for job in own if job.id == wanted]
        if not chosen:
            known = ", ".join(job.id for job in own[-5:])
            raise SettingsError(
                f"spider {spider.name!r} has no job {wanted}", hint=f"It has: {known}" if known else start
            )
        own = chosen
    unfinished = [job for job in own if job.finished_at is None and not await is_cancelled(frontier, job)]
    if not unfinished:
        what = f"{wanted} is finished or cancelled" if wanted else f"spider {spider.name!r} has no unfinished job"
        raise SettingsError(what, hint=start)
    return unfinished[-1]


def _route(plan: PushPlan, spider: Spider) -> Route:
    if plan.route is not None:
        if plan.route not in spider.routes:
            known = ", ".join(spider.routes) or "none"
            raise SettingsError(f"spider {spider.name!r} has no route {plan.route!r}", hint=f"Its routes: {known}.")
        return spider.routes[plan.route]
    first = next(iter(spider.routes.values()), None)
    if first is None:
        raise SettingsError(f"spider {spider.name!r} has no routes", hint="Write a handler with @spider.page")
    return first


def _source(plan: PushPlan) -> Lines:
    return read_lines(plan.source) if plan.table is None else _rows(plan.source, plan.table)


async def _rows(url: str, table: str) -> AsyncIterator[tuple[int, bytes | None]]:
    """Rows as lines: what a task has is taken from the columns of that name, other columns are ignored."""
    number = 0
    async for row in backends.open_table(url, table):
        number += 1
        known = {name: _value(value) for name, value in row.items() if name in _COLUMNS and value is not None}
        yield number, msgspec.json.encode(known)


def _value(value: Any) -> Any:
    """JSON in a column of text is what it says."""
    return msgspec.Raw(value.encode()) if isinstance(value, str) and value.startswith(("{", "[")) else value


class _Push:
    def __init__(
        self,
        plan: PushPlan,
        route: Route,
        opened: OpenJob,
        gate: Gate,
        report: Callable[[BadLine], None],
        show: Callable[[Pushed], None],
    ) -> None:
        self._plan = plan
        self._route = route
        self._opened = opened
        self._gate = gate
        self._report = report
        self._show = show
        self._feed = open_feed(opened, plan.frontier, plan.high_water, self._waits)
        self.pushed = Pushed(job=opened.job.id)

    async def all(self, lines: Lines) -> None:
        now = (await self._opened.console.progress()).now
        batch: list[Numbered] = []
        async for number, line in lines:
            self.pushed.lines = number
            if (task := self._task(number, line)) is not None:
                batch.append((number, task))
            if len(batch) >= min(BATCH, self._plan.high_water):
                await self._put(batch, now)
                batch = []
        await self._put(batch, now)
        self._show(self.pushed)

    def _task(self, number: int, line: bytes | None) -> Task | None:
        try:
            return task_of(self._route, number, line, self._plan.priority)
        except ValueError as error:
            self._refuse(number, str(error))
            return None

    async def _put(self, batch: list[Numbered], now: Moment) -> None:
        if not batch:
            return
        passed, refused = sift(self._gate, batch, now)
        for number, why in refused.items():
            self._refuse(number, why)
        answers = await self._feed.put([task for _, task in passed])
        for (number, _), answer in zip(passed, answers, strict=True):
            if answer is Admission.NEW:
                self.pushed.new += 1
            elif answer is Admission.DUPLICATE:
                self.pushed.duplicate += 1
            else:
                self._refuse(number, "the job or its lane is draining, and admits nothing new")
        self._show(self.pushed)

    def _refuse(self, number: int, why: str) -> None:
        self.pushed.bad += 1
        self._report(BadLine(number, why))

    def _waits(self, why: str) -> None:
        if why != self.pushed.waits:
            self.pushed.waits = why
            self._show(self.pushed)
