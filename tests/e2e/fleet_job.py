"""A job that real workers do on real servers: its commands, its rows, and what may be wrong with them."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import asyncpg
from tests.e2e.running import WITHIN, Running, call, start

from trotline.config import backends
from trotline.errors import FrontierError
from trotline.model.job import Progress
from trotline.testing.frontier_contract import Client, client

T = TypeVar("T")


@dataclass
class FleetJob:
    """A subclass has the spider, and what it needs in its environment."""

    folder: Path
    frontier_url: str
    sink_url: str
    stack: AsyncExitStack = field(default_factory=AsyncExitStack, kw_only=True)
    workers: list[Running] = field(default_factory=list, kw_only=True)
    _frontier: Client | None = field(default=None, kw_only=True)

    spider: ClassVar[str]
    """The name of its file."""
    text: ClassVar[str]

    @property
    def environment(self) -> dict[str, str]:
        return {
            "TROTLINE_FRONTIER": self.frontier_url,
            "TROTLINE_SINK": self.sink_url,
            "TROTLINE_ALLOW_PRIVATE": "yes",
        }

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[Self]:
        """The job is seeded and has no worker yet; what still works at the end is killed."""
        async with self.stack:
            try:
                await self.begin()
                yield self
            finally:
                for worker in self.workers:
                    if worker.process.returncode is None:
                        worker.signal_all(signal.SIGKILL)
                        await worker.process.wait()

    async def begin(self) -> None:
        (self.folder / self.spider).write_text(self.text)
        ended = await call(self.folder, "start", self.spider, "--detach", env=self.environment)
        assert ended.code == 0, ended

    async def worker(self, *words: str, folder: Path | None = None, env: dict[str, str] | None = None) -> Running:
        """A worker that ends with the job. `folder`: where its spider is, if that is another version."""
        command = ["work", self.spider, "--until-finished", *words]
        if "--json" not in words:
            command.append("--quiet")
        running = await start(folder or self.folder, *command, env={**self.environment, **(env or {})})
        self.workers.append(running)
        return running

    async def frontier(self) -> Client:
        if self._frontier is None:
            self._frontier = await newest(self.frontier_url)
            self.stack.push_async_callback(self._frontier.close)
        return self._frontier

    async def progress(self) -> Progress:
        return await (await self.frontier()).progress()

    async def until(self, fits: Callable[[Progress], bool], within: float = WITHIN) -> Progress:
        """The job's books once they fit."""
        return await eventually(self.progress, fits, within)

    async def done(self, more: int) -> Progress:
        """When that many more pages are done than now."""
        now = (await self.progress()).done
        return await self.until(lambda progress: progress.done >= now + more)

    async def ended(self) -> None:
        """When the job is finished, and every worker that was not killed has ended well."""
        for worker in self.workers:
            end = await worker.end()
            assert end.code in (0, -signal.SIGKILL), end
        await self.until(lambda progress: progress.finished_at is not None)

    async def select(self, *queries: str) -> list[list[dict[str, Any]]]:
        """The rows of each query in the job's own schema."""
        url, _, schema = self.sink_url.partition("?schema=")
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(f"SET search_path TO {schema or 'public'}")
            return [[dict(row) for row in await connection.fetch(query)] for query in queries]
        finally:
            await connection.close()


def faults(wanted: set[str], rows: Sequence[str], progress: Progress) -> dict[str, int]:
    """How often each thing that may go wrong did, by the URLs of the rows and the frontier's own counts."""
    return {
        "lost": len(wanted - set(rows)),
        "unexpected": len(set(rows) - wanted),
        "duplicated": len(rows) - len(set(rows)),
        "left": progress.waiting + progress.leased,
        "dead": progress.dead,
        "not done once": progress.done - len(wanted),
        "not finished": int(progress.finished_at is None),
    }


def named(faults: dict[str, int]) -> str:
    """What is wrong; empty if nothing is."""
    return ", ".join(f"{name} {count}" for name, count in faults.items() if count)


async def eventually(look: Callable[[], Awaitable[T]], fits: Callable[[T], bool], within: float = WITHIN) -> T:
    """What is seen once it fits; a frontier that is away is asked again."""
    async with asyncio.timeout(within):
        while True:
            with suppress(FrontierError):
                seen = await look()
                if fits(seen):
                    return seen
            await asyncio.sleep(0.02)


async def newest(frontier_url: str) -> Client:
    """The frontier of the newest job, as an operator sees it."""
    jobs = await backends.open_jobs(frontier_url)
    try:
        job = (await jobs.all())[-1]
    finally:
        await jobs.close()
    return client(await backends.open_frontier(frontier_url, job))
