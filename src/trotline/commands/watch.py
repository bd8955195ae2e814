"""A job with all its workers, for operators."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from trotline.commands.background_view import in_background
from trotline.commands.inbox import look as look_at_inbox
from trotline.commands.open_pools import pool_watch
from trotline.commands.report import Report, Reporter, ending_of
from trotline.config import backends
from trotline.coordinator.observer import Observer
from trotline.model.job import Job
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.console import Console
from trotline.processes.signals import obeyed
from trotline.rules.series import FINEST, Point

COUNT_EVERY: Seconds = 2.0
"""How often it is asked what waits for a writer, and in the inbox."""


async def look(frontier_url: str, job: Job, inbox_url: str = "") -> Report:
    opened = await backends.open_frontier(frontier_url, job)
    try:
        async with pool_watch(frontier_url) as pools:
            report = await Reporter(opened, whole=True, pools=pools).report()
            report = msgspec.structs.replace(report, points=await _points(opened))
            return await _counted(frontier_url, inbox_url, report)
    finally:
        await opened.close()


async def watch(
    frontier_url: str,
    job: Job,
    show: Callable[[Report], None],
    attend: Callable[[Console], Coroutine[Any, Any, None]] | None = None,
    enough: asyncio.Event | None = None,
    inbox_url: str = "",
) -> Report:
    """Show the job until it has ended, or a signal or `enough` stops us; the last report. `attend` runs beside it with
    the job's console."""
    opened = await backends.open_frontier(frontier_url, job)
    enough = enough or asyncio.Event()
    waiting, inbox = await _unwritten(frontier_url, job), await look_at_inbox(inbox_url)
    points = await _points(opened)

    async def count() -> None:
        nonlocal waiting, inbox
        while True:
            await asyncio.sleep(COUNT_EVERY)
            waiting, inbox = await _unwritten(frontier_url, job), await look_at_inbox(inbox_url)

    def shown(report: Report) -> None:
        show(msgspec.structs.replace(report, unwritten=waiting, inbox=inbox, points=points))
        if ending_of(report.progress, report.job.rules) is not None:
            enough.set()

    try:
        async with pool_watch(frontier_url) as pools:
            reporter = Reporter(opened, whole=True, pools=pools)
            with obeyed(enough.set):
                showing = in_background(reporter.show(shown), enough.set, needed=True)
                async with contextlib.AsyncExitStack() as stack:
                    await stack.enter_async_context(showing)
                    await stack.enter_async_context(in_background(count(), enough.set))
                    if attend is not None:
                        await stack.enter_async_context(in_background(attend(opened.console), enough.set))
                    await enough.wait()
            return await _counted(frontier_url, inbox_url, await reporter.report())
    finally:
        await opened.close()


async def _points(opened: OpenJob) -> tuple[Point, ...]:
    """With them the first estimate is that of the dashboard."""
    return tuple(await Observer(opened.console, time.monotonic).series(FINEST))


async def _counted(frontier_url: str, inbox_url: str, report: Report) -> Report:
    waiting, inbox = await _unwritten(frontier_url, report.job), await look_at_inbox(inbox_url)
    return msgspec.structs.replace(report, unwritten=waiting, inbox=inbox)


async def _unwritten(frontier_url: str, job: Job) -> int:
    return (await backends.unwritten(frontier_url)).get(job.id, 0)
