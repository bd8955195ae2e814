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
from trotline.commands.run_report import Report, Reporter, ending_of
from trotline.config import backends
from trotline.coordinator.job_observer import Observer
from trotline.errors import TrotlineError
from trotline.model.job import Job
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.console import Console
from trotline.processes.signals import obeyed
from trotline.rules import archive_loss_note
from trotline.rules.time_series import FINEST, Point

COUNT_EVERY: Seconds = 2.0
"""How often it is asked what waits for a writer and in the inbox, and what is gone from the archive."""


async def look(frontier_url: str, job: Job, inbox_url: str = "") -> Report:
    opened = await backends.open_frontier(frontier_url, job)
    try:
        async with pool_watch(frontier_url) as pools:
            report = await Reporter(opened, whole=True, pools=pools).report()
            report = msgspec.structs.replace(report, points=await _points(opened))
            return msgspec.structs.replace(report, **await _beside(frontier_url, inbox_url, opened))
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
    beside = await _beside(frontier_url, inbox_url, opened)
    points = await _points(opened)

    async def count() -> None:
        nonlocal beside
        while True:
            await asyncio.sleep(COUNT_EVERY)
            # The report says what is unreachable; until it answers, the last counts are shown.
            with contextlib.suppress(TrotlineError):
                beside = await _beside(frontier_url, inbox_url, opened)

    def shown(report: Report) -> None:
        show(msgspec.structs.replace(report, points=points, **beside))
        if ending_of(report.progress, report.job.rules) is not None:
            enough.set()

    try:
        async with pool_watch(frontier_url) as pools:
            reporter = Reporter(opened, whole=True, pools=pools)
            with obeyed(enough.set):
                showing = in_background(reporter.show(shown, ends_with_job=True), enough.set, needed=True)
                async with contextlib.AsyncExitStack() as stack:
                    await stack.enter_async_context(showing)
                    await stack.enter_async_context(in_background(count(), enough.set))
                    if attend is not None:
                        await stack.enter_async_context(in_background(attend(opened.console), enough.set))
                    await enough.wait()
            if reporter.stale is not None:
                return msgspec.structs.replace(reporter.stale, **beside)
            last = await reporter.report()
            return msgspec.structs.replace(last, **await _beside(frontier_url, inbox_url, opened))
    finally:
        await opened.close()


async def _points(opened: OpenJob) -> tuple[Point, ...]:
    """With them the first estimate is that of the dashboard."""
    return tuple(await Observer(opened.console, time.monotonic).series(FINEST))


async def _beside(frontier_url: str, inbox_url: str, opened: OpenJob) -> dict[str, Any]:
    """What a report does not count by itself."""
    [note] = await opened.console.read_notes([archive_loss_note.NOTE])
    archive = archive_loss_note.of_job(note, await opened.console.progress()) if note is not None else None
    return {
        "unwritten": (await backends.unwritten(frontier_url)).get(opened.job.id, 0),
        "inbox": await look_at_inbox(inbox_url),
        "archive": archive,
    }
