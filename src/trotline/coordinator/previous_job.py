"""The job before: what field coverage is compared with."""

from collections.abc import Awaitable, Callable, Mapping

from trotline.model.job import Job
from trotline.ports.backend import OpenJob
from trotline.ports.jobs import Jobs

LastTallies = Callable[[], Awaitable[Mapping[str, int] | None]]
"""The counters of the last finished job of the same spider; None: there is none."""


def last_tallies(jobs: Jobs, open_frontier: Callable[[Job], Awaitable[OpenJob]], job: Job) -> LastTallies:
    async def tallies() -> Mapping[str, int] | None:
        before = [
            one
            for one in await jobs.all()
            if one.spider == job.spider and one.finished_at is not None and one.started_at < job.started_at
        ]
        if not before:
            return None
        opened = await open_frontier(max(before, key=lambda one: one.started_at))
        try:
            return (await opened.console.progress()).tallies
        finally:
            await opened.close()

    return tallies
