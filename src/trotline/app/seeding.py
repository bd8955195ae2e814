"""Seeds, in batches, through the gate, into the frontier. Nothing is fetched: sitemaps are tasks (decision 073)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Protocol

import msgspec

from trotline.app.lines import pieces
from trotline.errors import SpiderRefused
from trotline.frontier.gate import Gate
from trotline.frontier.sifted import Sifted
from trotline.model.lease import Admission
from trotline.model.sitemap_seed import ROUTE as SITEMAP
from trotline.model.task import Task
from trotline.rules import redaction
from trotline.spider.seeds import FileSeeds, expand, read_lines
from trotline.spider.spider import Spider

BATCH = 500


class Seeded(msgspec.Struct):
    new: int = 0
    duplicate: int = 0
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    example: str = ""
    """A seed that was refused."""


class Puts(Protocol):
    """Where seeds go: a frontier, or a feed in front of one."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]: ...


async def seed(
    spider: Spider,
    frontier: Puts,
    gate: Gate,
    now: float,
    *,
    extra: str | None,
    told: Callable[[Seeded], None] = lambda _: None,
) -> Seeded:
    """Put every seed; `told` hears how far it is after each batch.

    A crash in the middle is harmless: the next run puts them again, and duplicates are known.
    """
    seeded = Seeded()
    batch: list[Task] = []
    async for task in _tasks(spider, extra):
        if task.route not in spider.routes and task.route != SITEMAP:
            known = ", ".join(spider.routes)
            raise SpiderRefused(
                f"the seed {redaction.url(task.url)} is for a route {task.route!r} that spider {spider.name!r} has not",
                hint=f"Its routes (job_type in JSON) are: {known}.",
            )
        batch.append(task)
        if len(batch) == BATCH:
            await _put(frontier, gate, batch, now, seeded)
            told(seeded)
            batch = []
    await _put(frontier, gate, batch, now, seeded)
    told(seeded)
    if not seeded.new and not seeded.duplicate:
        raise _nothing_to_do(spider, seeded)
    return seeded


async def _put(frontier: Puts, gate: Gate, drafts: list[Task], now: float, seeded: Seeded) -> None:
    if not drafts:
        return
    sifted = _sifted(gate, drafts, now)
    for admission in await frontier.put(sifted.tasks):
        if admission is Admission.NEW:
            seeded.new += 1
        elif admission is Admission.REFUSED:
            seeded.refused["the job is draining"] += 1
        else:
            seeded.duplicate += 1
    seeded.refused.update(sifted.refused)
    if sifted.refused and not seeded.example:
        seeded.example = redaction.url(next(iter(sifted.examples.values()), drafts[0].url))


def _sifted(gate: Gate, drafts: list[Task], now: float) -> Sifted:
    """A sitemap may be kept where the spider reads no pages: scope is for pages."""
    sifted = gate.seeds([draft for draft in drafts if draft.route != SITEMAP], now)
    sifted.add(gate.seeds([draft for draft in drafts if draft.route == SITEMAP], now, scoped=False))
    return sifted


async def _tasks(spider: Spider, extra: str | None) -> AsyncIterator[Task]:
    async for task in _pulled(spider.seeds()):
        yield task
    if extra is not None:
        for task in await _from_lines(spider, extra):
            yield task


async def _pulled(starts: Iterator[Task]) -> AsyncIterator[Task]:
    """In one thread of their own: seeds may be an author's function that takes its time (a query, a large file), and
    meanwhile signals must be heard and a coordinator must keep its office."""
    loop = asyncio.get_running_loop()
    pool = ThreadPoolExecutor(1, thread_name_prefix="trotline-seeds")
    try:
        while some := await loop.run_in_executor(pool, lambda: list(islice(starts, BATCH))):
            for start in some:
                yield start
    finally:
        pool.shutdown(wait=False)


async def _from_lines(spider: Spider, extra: str) -> list[Task]:
    route = next(iter(spider.routes.values()), None)
    if route is None:
        raise SpiderRefused(f"spider {spider.name!r} has no routes", hint="Write a handler with @spider.page")
    if extra != "-":
        return list(expand(route, FileSeeds(extra)))
    text = b"".join([piece async for piece in pieces("-")]).decode("utf-8-sig", "replace")
    return list(read_lines(route, text.splitlines(), "standard input"))


def _nothing_to_do(spider: Spider, seeded: Seeded) -> SpiderRefused:
    if seeded.refused:
        reasons = ", ".join(f"{count} x {why}" for why, count in seeded.refused.most_common(3))
        return SpiderRefused(
            f"no seed of spider {spider.name!r} was admitted: {reasons} (for example {seeded.example})",
            hint="A seed is an absolute http(s) URL inside the spider's scope (hosts, include, exclude).",
        )
    return SpiderRefused(
        f"spider {spider.name!r} has no seeds",
        hint='Give it some: @spider.page(seeds=["https://..."]), or --seeds FILE, or --seeds - for standard input.',
    )
