"""Seeds, in batches, through the gate, into the frontier. Nothing is fetched: sitemaps are tasks (decision 073)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice, repeat
from typing import Protocol

import msgspec

from trotline.commands.input_lines import check_readable, read_lines, task_of
from trotline.errors import SpiderRefused
from trotline.frontier.gate import Gate
from trotline.frontier.gate_result import GateResult
from trotline.model.lease import Admission
from trotline.model.sitemap_seed import ROUTE as SITEMAP
from trotline.model.task import Task
from trotline.rules import redaction
from trotline.spider.spider import Spider

BATCH = 500
_MOST_BAD = 20
_SEED = "A seed is an absolute http(s) URL inside the spider's scope (hosts, include, exclude)."


class Seeded(msgspec.Struct):
    new: int = 0
    duplicate: int = 0
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    examples: dict[str, str] = {}
    """Reason -> a seed that was refused for it."""
    bad: int = 0
    """Lines of the file of seeds that are not a task."""
    bad_lines: list[tuple[int, str]] = []
    """The first of them: number, reason."""


class Puts(Protocol):
    """Where seeds go: a frontier, or a feed in front of one."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]: ...


class Seeds:
    """The seeds of a spider, and of a file (`extra`). Each is read once, the first of them before there is a job."""

    def __init__(self, spider: Spider, gate: Gate, extra: str | None = None, *, needed: bool = True) -> None:
        """`needed`: without a seed there is nothing to do."""
        self.gate = gate
        self.seeded = Seeded()
        self._spider = spider
        self._extra = extra
        self._needed = needed
        self._unread = _tasks(spider, extra, self.seeded)
        self._checked: list[Task] | None = None

    async def check(self) -> None:
        """SettingsError if the file cannot be read, SpiderRefused if there is nothing to do: before a job is made for
        it. Reads as far as the first seed that can be visited, or as one batch."""
        if self._checked is not None:
            return
        if self._extra is not None:
            check_readable(self._extra)
        self._checked = []
        if not self._needed:
            return
        refused = Seeded()
        async for task in self._unread:
            self._checked.append(_of_route(self._spider, task))
            result = _gate_result(self.gate, [task], 0.0)
            if result.tasks or len(self._checked) == BATCH:
                return
            _note_refusals(result, refused)
        refused.bad, refused.bad_lines = self.seeded.bad, self.seeded.bad_lines
        raise _nothing_to_do(self._spider, refused)

    async def drafts(self) -> AsyncIterator[Task]:
        await self.check()
        checked, self._checked = self._checked or [], []
        for task in checked:
            yield task
        async for task in self._unread:
            yield _of_route(self._spider, task)

    def refuse_none(self) -> None:
        if self._needed and not self.seeded.new and not self.seeded.duplicate:
            raise _nothing_to_do(self._spider, self.seeded)


def _of_route(spider: Spider, task: Task) -> Task:
    if task.route in spider.routes or task.route == SITEMAP:
        return task
    raise SpiderRefused(
        f"the seed {redaction.url(task.url)} is for a route {task.route!r} that spider {spider.name!r} has not",
        hint=f"Its routes (job_type in JSON) are: {', '.join(spider.routes)}.",
    )


async def seed(
    seeds: Seeds, frontier: Puts, now: float, *, on_batch: Callable[[Seeded], None] = lambda _: None
) -> Seeded:
    """Put every seed; `on_batch` gets the counts after each batch.

    A crash in the middle is harmless: the next run puts them again, and duplicates are ignored.
    """
    seeded, gate = seeds.seeded, seeds.gate
    batch: list[Task] = []
    async for task in seeds.drafts():
        batch.append(task)
        if len(batch) == BATCH:
            await _put(frontier, gate, batch, now, seeded)
            on_batch(seeded)
            batch = []
    await _put(frontier, gate, batch, now, seeded)
    on_batch(seeded)
    seeds.refuse_none()
    return seeded


async def _put(frontier: Puts, gate: Gate, drafts: list[Task], now: float, seeded: Seeded) -> None:
    if not drafts:
        return
    result = _gate_result(gate, drafts, now)
    for admission in await frontier.put(result.tasks):
        if admission is Admission.NEW:
            seeded.new += 1
        elif admission is Admission.REFUSED:
            seeded.refused["the job is draining"] += 1
        else:
            seeded.duplicate += 1
    _note_refusals(result, seeded)


def _note_refusals(result: GateResult, seeded: Seeded) -> None:
    seeded.refused.update(result.refused)
    for why, url in result.examples.items():
        seeded.examples.setdefault(why, redaction.url(url))


def _gate_result(gate: Gate, drafts: list[Task], now: float) -> GateResult:
    """A sitemap may be kept where the spider reads no pages: scope is for pages."""
    result = gate.seeds([draft for draft in drafts if draft.route != SITEMAP], now)
    result.add(gate.seeds([draft for draft in drafts if draft.route == SITEMAP], now, scoped=False))
    return result


async def _tasks(spider: Spider, extra: str | None, seeded: Seeded) -> AsyncIterator[Task]:
    async for task in _pulled(spider.seeds()):
        yield task
    if extra is None:
        return
    route = next(iter(spider.routes.values()), None)
    if route is None:
        raise SpiderRefused(f"spider {spider.name!r} has no routes", hint="Write a handler with @spider.page")
    async for number, line in read_lines(extra):
        try:
            if (found := task_of(route, number, line)) is not None:
                yield found
        except ValueError as error:
            seeded.bad += 1
            if len(seeded.bad_lines) < _MOST_BAD:
                seeded.bad_lines.append((number, redaction.text(str(error))))


async def _pulled(starts: Iterator[Task]) -> AsyncIterator[Task]:
    """In a thread: the author's seeds may block (a query, a large file), while signals and the coordinator's heartbeats
    need the event loop."""
    loop = asyncio.get_running_loop()
    pool = ThreadPoolExecutor(1, thread_name_prefix="trotline-seeds")
    # The first one alone: commands wait for it.
    sizes = chain([1], repeat(BATCH))
    try:
        while some := await loop.run_in_executor(pool, lambda: list(islice(starts, next(sizes)))):
            for start in some:
                yield start
    finally:
        pool.shutdown(wait=False)


def _nothing_to_do(spider: Spider, seeded: Seeded) -> SpiderRefused:
    if seeded.refused:
        reasons = ", ".join(f"{count} x {why}" for why, count in seeded.refused.most_common(3))
        example = next(iter(seeded.examples.values()), "none is kept")
        return SpiderRefused(
            f"no seed of spider {spider.name!r} was admitted: {reasons} (for example {example})",
            hint=_SEED,
        )
    if seeded.bad:
        line, why = seeded.bad_lines[0]
        return SpiderRefused(
            f"no line of the seeds can be used: {seeded.bad} of them are bad (line {line}: {why})", hint=_SEED
        )
    return SpiderRefused(
        f"spider {spider.name!r} has no seeds",
        hint='Give it some: @spider.page(seeds=["https://..."]), or --seeds FILE, or --seeds - for standard input.',
    )
