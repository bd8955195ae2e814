"""What the jobs of a frontier say about its proxy pools: the last one that used a pool, why its members failed, and
which proxies files its workers have trouble with. The shared state of a pool has none of that, and forgets a host when
no job uses it any more."""

import msgspec

from trotline.config.backends import open_frontier, open_jobs
from trotline.errors import FrontierError
from trotline.model.job import WorkerView
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules.pool_tallies import PoolUse, uses

MOST_JOBS = 20
"""The newest are asked."""


class LastUse(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    use: PoolUse


class PoolHistory(msgspec.Struct, kw_only=True):
    last: dict[str, LastUse] = {}
    """By pool: of the newest job that used it."""
    faults: dict[str, str] = {}
    """Member -> why it failed last, as a live worker of a job that runs met it."""
    troubles: dict[str, str] = {}
    """Host -> what is wrong with the proxies file of its workers."""

    def add_workers(self, crew: list[WorkerView]) -> None:
        for about in (worker.about for worker in crew if worker.silent_for < DEAD_AFTER):
            if about.proxies_trouble:
                self.troubles[about.host or "unknown host"] = about.proxies_trouble
            if about.stats is not None:
                self.faults |= about.stats.proxy_faults


async def history(frontier: str) -> PoolHistory:
    found = PoolHistory()
    jobs = await open_jobs(frontier)
    try:
        newest = sorted(await jobs.all(), key=lambda job: -job.started_at)[:MOST_JOBS]
    finally:
        await jobs.close()
    for job in newest:
        try:
            opened = await open_frontier(frontier, job)
        except FrontierError:
            # This job alone is damaged, or was forgotten meanwhile.
            continue
        try:
            for use in uses((await opened.console.progress()).tallies):
                found.last.setdefault(use.pool, LastUse(job=job.id, use=use))
            if job.finished_at is None:
                found.add_workers(await opened.console.workers())
        except FrontierError:
            continue
        finally:
            await opened.close()
    return found
