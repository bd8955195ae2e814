"""All jobs of a place, asked for once for all offices."""

import asyncio

from trotline.model.job import Job
from trotline.model.time import Seconds
from trotline.ports.clock import Clock
from trotline.ports.jobs import Jobs

SURVEY: Seconds = 60.0
"""How often all jobs are looked at; the newest one of each spider is looked at all the time."""


class Roster:
    """Jobs are kept for weeks, and nearly all of them are over: nobody looks through all of them every few seconds."""

    def __init__(self, jobs: Jobs, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock
        self._turn = asyncio.Lock()
        self._found: list[Job] = []
        self._number = 0
        self._asked_at = float("-inf")

    async def survey(self, seen: int = 0) -> tuple[int, list[Job]]:
        """The number of the last survey and its jobs; no jobs if it is one that the caller has seen."""
        async with self._turn:
            asked_at = self._clock.now()
            if asked_at - self._asked_at >= SURVEY or not seen:
                self._found = await self._jobs.all()
                self._number += 1
                self._asked_at = asked_at
        return self._number, self._found if self._number != seen else []

    async def latest(self, spider: str) -> Job | None:
        return await self._jobs.latest(spider)
