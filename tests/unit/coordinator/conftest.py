"""Coordinators on a virtual clock, in front of a real file."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trotline.adapters.sqlite.database import Database
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.leadership import SqliteLeadership
from trotline.adapters.sqlite.proxy_pools import SqliteProxyPools
from trotline.coordinator.coordinator import Coordinator
from trotline.coordinator.dependencies import CoordinatorEvent, CoordinatorParts, CoordinatorPolicy, SpiderConfig
from trotline.model.job import Job
from trotline.model.lease import Settlement
from trotline.model.outcome import Done
from trotline.model.schedule import Schedule
from trotline.ports.backend import OpenJob
from trotline.rules.merge_note import MergeNote
from trotline.testing.clients import sqlite_client
from trotline.testing.clocks import MORNING
from trotline.testing.frontier_contract import BRISK, Client, tasks
from trotline.testing.virtual_time import run_virtual

MINUTELY = Schedule("* * * * *")


class LoopClock:
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class World:
    """A file, its coordinators, and what they said."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "frontier.db")
        self.said: list[CoordinatorEvent] = []
        self.trouble: list[Exception] = []
        """What the next deeds of the author's seeds or of the sink raise."""
        self.concluded: list[str] = []
        self.followed: list[str] = []
        self.merge_trouble: list[Exception] = []
        self.merged: MergeNote | None = None
        self.maintained = 0
        self.seeds = 10
        self._opened: list[Any] = []
        self._running: list[asyncio.Task[None]] = []

    def now(self) -> float:
        return MORNING + asyncio.get_running_loop().time()

    def open(self, kind: Any, *arguments: Any) -> Any:
        self._opened.append(kind(self.path, *arguments, now=self.now, inline=True))
        return self._opened[-1]

    @property
    def jobs(self) -> SqliteJobs:
        return self.open(SqliteJobs)

    def frontier(self, job: Job) -> Client:
        self._opened.append(sqlite_client(self.path, job, now=self.now, inline=True))
        return self._opened[-1]

    def texts(self, event: str) -> str:
        return "; ".join(each.text for each in self.said if each.event == event)

    async def proxy_pools(self) -> SqliteProxyPools:
        self._opened.append(SqliteProxyPools(Database(self.path, now=self.now, inline=True)))
        return self._opened[-1]

    def coordinate(
        self,
        name: str = "ann",
        schedule: Schedule | None = MINUTELY,
        during: str = "",
        leadership: Any = None,
        frontier_watch: Any = None,
        **policy: Any,
    ) -> "asyncio.Task[None]":
        async def open_frontier(job: Job) -> OpenJob:
            return sqlite_client(self.path, job, now=self.now, inline=True).opened

        parts = CoordinatorParts(
            leadership=leadership or self.open(SqliteLeadership),
            jobs=self.jobs,
            open_frontier=open_frontier,
            hooks=self,
            clock=LoopClock(),
            chance=random.Random(1),
            emit=self.said.append,
            open_proxy_pools=self.proxy_pools,
            frontier_watch=frontier_watch,
        )
        config = SpiderConfig(spider="shop", rules=BRISK, version="v1", schedule=schedule, during=during)
        task = asyncio.create_task(Coordinator(name, [config], parts, CoordinatorPolicy(**policy)).run())
        self._running.append(task)
        return task

    # What the coordinator does through us

    async def seed(self, job: Job, opened: OpenJob, is_leader: Any, report: Any) -> None:
        if self.trouble:
            raise self.trouble.pop(0)
        await opened.frontier.put(tasks(self.seeds))

    async def conclude(self, job: Job) -> None:
        if self.trouble:
            raise self.trouble.pop(0)
        self.concluded.append(job.id)

    async def follow_up(self, job: Job, opened: OpenJob) -> MergeNote | None:
        self.followed.append(job.id)
        if self.merge_trouble:
            raise self.merge_trouble.pop(0)
        return self.merged

    async def maintain(self, now: float) -> None:
        self.maintained += 1

    # What tests do

    async def work(self, job: Job, limit: int = 1000) -> None:
        frontier = self.frontier(job)
        leases = await frontier.lease("worker", limit)
        await frontier.settle("worker", [Settlement(lease, Done(), tallies={"records": 1}) for lease in leases])
        await frontier.leave("worker")

    def events(self, *names: str) -> list[str]:
        return [news.event for news in self.said if not names or news.event in names]

    def text(self, event: str) -> str:
        return next(news.text for news in self.said if news.event == event)

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for opened in self._opened:
            await opened.close()


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., World]:
    """Play a scene on virtual time; the world it left."""

    def play(scene: Any) -> World:
        async def whole() -> World:
            world = World(tmp_path)
            try:
                await scene(world)
            finally:
                await world.close()
            return world

        return run_virtual(whole())

    return play


async def soon(world: World, count: int = 1) -> Job:
    """The job of the first tick, when it is seeded."""
    while len(world.events("job.seeded", "job.trouble")) < count:  # noqa: ASYNC110 - virtual time costs nothing
        await asyncio.sleep(1)
    job = await world.jobs.latest("shop")
    assert job is not None
    return job
