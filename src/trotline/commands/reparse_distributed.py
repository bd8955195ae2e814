"""A re-parse that many processes share, on any number of machines: the units of the archive are tasks of a queue.

A unit is done when its records are stored. A process that dies loses its leases, and others take its units over; what
it had stored is stored again, which changes nothing.
"""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import msgspec

from trotline.commands.archive import existing
from trotline.commands.queue import Queue
from trotline.commands.queue_task import QueueTask
from trotline.commands.reparse import ReparsePlan, check, newest, share_of, total, write
from trotline.config import backends
from trotline.errors import LeaseLost, SettingsError
from trotline.model.archive import ArchiveQuery
from trotline.ports.sink import Sink
from trotline.processes.reparse_child import ReparseCounts
from trotline.processes.reparse_parser import Parser
from trotline.rules.task_checks import cut_to_name

HOLD = "2h"
"""A unit that a process works on for longer is given to another one."""
_MANY = 10_000
_SOON, _LATER = 10, 50
"""Priorities: what is not rolled yet is read first."""


class SharedReport(msgspec.Struct, frozen=True, kw_only=True):
    """What this process did, and how far all of them are."""

    counts: ReparseCounts
    written: int = 0
    refused: int = 0
    units: int = 0
    """Parsed and stored here."""
    done: int = 0
    """By all."""
    dead: int = 0
    """Units that could not be read: `trotline dead` has the reasons."""
    job: str = ""
    was_over: bool = False
    """It had ended before this process began."""


async def reparse_shared(plan: ReparsePlan, spider: str, name: str) -> SharedReport:
    """Until all units are done, by whomever."""
    async with existing(plan.settings.archive) as archive:
        await check(plan, archive)
        units = await archive.units(plan.query)
    queue = Queue(
        f"reparse-{name}", plan.settings.frontier, pace="1000/s", concurrency=_MANY, hold=HOLD, wait_for_job=False
    )
    async with queue:
        if queue.job is None and (await queue.stats()).finished_at:
            return await _report(queue, [], was_over=True)
        await queue.add_all(_task(unit, spider, plan.query) for unit in units)
        await queue.seal()
        sink = backends.open_sink(plan.settings.sink)
        try:
            await sink.open()
            with TemporaryDirectory(prefix="trotline-reparse-") as folder:
                shared = _Shared(plan, spider, queue, sink)
                files = [Path(folder) / f"{number}.records" for number in range(plan.settings.processes)]
                await _all(*(shared.work(file) for file in files))
            await sink.finish()
        finally:
            await sink.close()
        return await _report(queue, shared.parsed, written=shared.written, refused=shared.refused)


async def _all(*calls: Coroutine[Any, Any, None]) -> None:
    """The first error ends the others."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Unit(msgspec.Struct, frozen=True):
    """The `meta` of a task."""

    unit: Annotated[str, msgspec.Meta(pattern=r"\A(?:open|warc)(?:/(?!\.\.?(?:/|\Z))[^/]+)+\Z")]
    spider: str
    query: ArchiveQuery


def _task(unit: str, spider: str, query: ArchiveQuery) -> dict[str, object]:
    return {
        "url": f"https://archive.invalid/{unit}",
        "key": unit,
        # A unit that fails does not slow the others down.
        "lane": cut_to_name(unit),
        "priority": _SOON if unit.startswith("open/") else _LATER,
        # Times like "7d ago" are those of the process that began.
        "meta": msgspec.to_builtins(_Unit(unit, spider, query)),
    }


async def _report(queue: Queue, parsed: list[ReparseCounts], **more: Any) -> SharedReport:
    now = await queue.stats()
    job = queue.job.id if queue.job is not None else ""
    counts = total([one for one in parsed if not one.trouble])
    return SharedReport(counts=counts, units=len(parsed), done=now.done, dead=now.dead, job=job, **more)


def _about_damage(damaged: dict[str, int]) -> str:
    number, why = sum(damaged.values()), next(iter(damaged))
    return f"{number:,} {'capture is' if number == 1 else 'captures are'} damaged: {why}"


class _Shared:
    def __init__(self, plan: ReparsePlan, spider: str, queue: Queue, sink: Sink) -> None:
        self._plan = plan
        self._spider = spider
        self._queue = queue
        self._sink = sink
        self._storing = asyncio.Lock()
        self.parsed: list[ReparseCounts] = []
        self.written = self.refused = 0

    async def work(self, file: Path) -> None:
        parser = Parser()
        try:
            async for task in self._queue:
                await self._unit(task, parser, file)
        finally:
            await parser.close()

    async def _unit(self, task: QueueTask, parser: Parser, file: Path) -> None:
        try:
            asked = msgspec.convert(task.meta, _Unit)
        except msgspec.ValidationError as error:
            # Another program put it into the queue. It must not stop the others.
            await self._queue.bury(task, f"it is no unit of an archive: {error}")
            return
        if asked.spider != self._spider:
            await self._queue.snooze(task, 0.0)
            raise SettingsError(
                f"this re-parse was begun for the spider {asked.spider!r}", hint="Give another name to --share."
            )
        plan = msgspec.structs.replace(self._plan, query=asked.query)
        counts = await parser.parse(share_of(plan, file, units=(asked.unit,)))
        try:
            if counts.trouble:
                await self._queue.retry(task, counts.trouble)
                return
            records = await self._store(file)
            if counts.damaged:
                # What can be read is stored; another try would not help the rest.
                await self._queue.bury(task, _about_damage(counts.damaged))
            else:
                await self._queue.done(task, records=records)
            self.parsed.append(counts)
        except LeaseLost:
            # Another process has it now, and stores the same.
            return

    async def _store(self, file: Path) -> int:
        async with self._storing:
            with file.open("rb") as stream:
                written, refused = await write(self._sink, newest([stream]), [stream])
        self.written += written
        self.refused += refused
        return written
