"""Jobs of other spiders, for tasks that a handler makes for them (`other.product.task(url)`)."""

import asyncio
from collections.abc import Callable, Collection, Sequence

from trotline.config import backends, components
from trotline.config.settings import Settings
from trotline.errors import FrontierGone
from trotline.frontier.gate import Gate
from trotline.model.job import Job
from trotline.model.lease import Admission
from trotline.model.queue_job import is_queue
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.spider.spider import Spider

LOOK_AGAIN: Seconds = 5.0
"""How long it is taken for granted that the newest job of a spider is the newest one."""


class OtherJobs:
    """Implements `worker.dependencies.Others`: opens each job when it is needed, and keeps it open."""

    def __init__(
        self, frontier: str, job: Job, pools: Collection[str] | Callable[[], Collection[str] | None] | None = None
    ) -> None:
        """`frontier`: that of our own job. `pools`: see `components.open_gate`."""
        self._frontier = frontier
        self._job = job
        self._pools = pools
        self._gates: dict[str, Gate] = {}
        self._opened: dict[str, OpenJob] = {}
        self._looked_at: dict[str, Seconds] = {}

    def gate(self, spider: Spider) -> Gate:
        if spider.name not in self._gates:
            self._gates[spider.name] = components.open_gate(spider, self._pools)
        return self._gates[spider.name]

    async def put(self, spider: str, tasks: Sequence[Task]) -> list[Admission] | None:
        opened = await self._open(spider)
        if opened is None:
            return None
        try:
            return await opened.frontier.put(tasks)
        except FrontierGone:
            await self._drop(spider)
            return None

    async def close(self) -> None:
        for spider in list(self._opened):
            await self._drop(spider)

    async def _open(self, spider: str) -> OpenJob | None:
        now = asyncio.get_running_loop().time()
        known = self._opened.get(spider)
        if known is not None and now - self._looked_at[spider] < LOOK_AGAIN:
            return known
        job = await self._newest(spider)
        if known is not None and (job is None or known.job.id != job.id):
            await self._drop(spider)
            known = None
        if known is None and job is not None:
            known = self._opened[spider] = await backends.open_frontier(self._place(spider), job)
        self._looked_at[spider] = now
        return known

    async def _newest(self, spider: str) -> Job | None:
        """A job that runs, or did since ours was started: tasks in it are not those of an earlier crawl."""
        place = self._place(spider)
        if backends.in_memory(place) or backends.is_missing(place):
            return None
        jobs = await backends.open_jobs(place)
        try:
            job = await jobs.latest(spider)
        finally:
            await jobs.close()
        if job is None or is_queue(job) or job.cancelled_at is not None:
            return None
        return job if job.finished_at is None or job.finished_at >= self._job.started_at else None

    def _place(self, spider: str) -> str:
        """The same frontier; of spiders with a file each, which is the default, that of the other."""
        usual = Settings()
        own_file = self._frontier == usual.frontier_of(self._job.spider)
        return usual.frontier_of(spider) if own_file else self._frontier

    async def _drop(self, spider: str) -> None:
        await self._opened.pop(spider).close()
