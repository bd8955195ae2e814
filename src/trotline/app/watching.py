"""A job as its operator sees it, whoever does its work."""

import asyncio
from collections.abc import Callable

from trotline.app import wiring
from trotline.app.reporting import Report, Reporter, ending_of
from trotline.app.signals import obeyed
from trotline.model.job import Job


async def look(frontier_url: str, job: Job) -> Report:
    """The job at this moment."""
    frontier = await wiring.open_frontier(frontier_url, job)
    try:
        return await Reporter(frontier, whole=True).report()
    finally:
        await frontier.close()


async def watch(frontier_url: str, job: Job, show: Callable[[Report], None]) -> Report:
    """Show the job until it has ended or somebody has seen enough; the last report."""
    frontier = await wiring.open_frontier(frontier_url, job)
    enough = asyncio.Event()

    def shown(report: Report) -> None:
        show(report)
        if ending_of(report.progress) is not None:
            enough.set()

    try:
        reporter = Reporter(frontier, whole=True)
        with obeyed(enough.set):
            showing = asyncio.create_task(reporter.show(shown))
            try:
                await enough.wait()
            finally:
                showing.cancel()
                await asyncio.gather(showing, return_exceptions=True)
        return await reporter.report()
    finally:
        await frontier.close()
