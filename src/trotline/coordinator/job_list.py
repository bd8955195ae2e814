"""All jobs of a frontier server or file, listed once for all spiders of a coordinator."""

import asyncio

from trotline.model.job import Job
from trotline.model.time import Seconds
from trotline.ports.clock import Clock
from trotline.ports.jobs import Jobs

REFRESH: Seconds = 60.0
"""How often all jobs are listed; the newest job of each spider is read at every check."""


class JobList:
    """A cached list: jobs are kept for weeks, and nearly all of them are finished."""

    def __init__(self, jobs: Jobs, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock
        self._lock = asyncio.Lock()
        self._cached: list[Job] = []
        self._version = 0
        self._refreshed_at = float("-inf")

    async def changes(self, seen: int = 0) -> tuple[int, list[Job]]:
        """The version of the list and its jobs; no jobs if the caller has seen this version."""
        async with self._lock:
            now = self._clock.now()
            if now - self._refreshed_at >= REFRESH or not seen:
                self._cached = await self._jobs.all()
                self._version += 1
                self._refreshed_at = now
        return self._version, self._cached if self._version != seen else []

    async def latest(self, spider: str) -> Job | None:
        return await self._jobs.latest(spider)
