"""The job before, of the same spider."""

from collections.abc import Mapping

from trotline.config import backends
from trotline.coordinator.previous_job import LastTallies, last_tallies
from trotline.model.job import Job


def tallies_before(frontier: str, job: Job) -> LastTallies:
    """The counters of the job before this one."""

    async def tallies() -> Mapping[str, int] | None:
        jobs = await backends.open_jobs(frontier)
        try:
            return await last_tallies(jobs, lambda one: backends.open_frontier(frontier, one), job)()
        finally:
            await jobs.close()

    return tallies
