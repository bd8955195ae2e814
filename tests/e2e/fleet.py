"""Where the tasks and the rows of a fleet are in a test, and how its members are waited for."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
from tests.e2e.running import Ended, Running, call, rows_of, start

from trotline.testing.postgres_server import PostgresServer, postgres
from trotline.testing.redis_server import RedisServer, redis


@dataclass
class Fleet:
    """A folder in which commands are called, with the frontier and the sink that all of them share."""

    folder: Path
    frontier: str
    sink: str
    running: list[Running] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return {"TROTLINE_FRONTIER": self.frontier, "TROTLINE_SINK": self.sink, "TROTLINE_ALLOW_PRIVATE": "yes"}

    async def call(self, *words: str, folder: Path | None = None, **options: Any) -> Ended:
        return await call(folder or self.folder, *words, env=self.environment, **options)

    async def start(self, *words: str, folder: Path | None = None) -> Running:
        """A command whose events are waited for; it is ended with the test."""
        running = await start(folder or self.folder, *words, "--json", env=self.environment)
        self.running.append(running)
        return running

    async def end(self) -> None:
        """Nothing outlives the test, however it went."""
        for running in self.running:
            if running.process.returncode is None:
                running.signal_all(signal.SIGKILL)
                await running.process.wait()

    async def look(self, job: str = "site") -> dict[str, Any]:
        ended = await self.call("watch", job, "--once", "--json")
        assert ended.code == 0, ended
        return ended.events[0]

    async def names(self) -> list[str]:
        """What the rows of the test's site say."""
        if self.sink.startswith("sqlite:"):
            rows = rows_of(Path(self.sink.removeprefix("sqlite:")))
            return sorted(row["name"] for row in rows)
        connection = await asyncpg.connect(self.sink.partition("?")[0])
        try:
            schema = self.sink.partition("schema=")[2]
            rows = await connection.fetch(f"SELECT data FROM {schema}.records")  # noqa: S608 - our own name
        finally:
            await connection.close()
        return sorted(json.loads(row["data"])["name"] for row in rows)


async def until(running: Running, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The next event that fits."""
    while True:
        event = await running.event()
        if fits(event):
            return event


async def news(running: Running, name: str) -> dict[str, Any]:
    return await until(running, lambda event: event["event"] == name)


@dataclass
class Servers:
    redis: RedisServer
    postgres: PostgresServer
    used: int = 0

    def places(self) -> tuple[str, str]:
        """An empty frontier, and a schema that is not there yet. A test that failed may have left a server stopped."""
        for server in (self.redis, self.postgres):
            if not server.running:
                server.start()
        self.redis.command("FLUSHALL")
        self.used += 1
        return self.redis.url, f"{self.postgres.url}?schema=fleet{os.getpid()}_{self.used}"


@contextmanager
def servers() -> Iterator[Servers]:
    with redis() as queue, postgres() as rows:
        yield Servers(queue, rows)


@dataclass
class OneServer:
    """A PostgreSQL for tasks and rows."""

    postgres: PostgresServer
    used: int = 0

    def places(self) -> tuple[str, str]:
        """A frontier and a sink that are not there yet, in the same database."""
        self.used += 1
        name = f"{os.getpid()}_{self.used}"
        return f"{self.postgres.url}?schema=tasks{name}", f"{self.postgres.url}?schema=rows{name}"


@contextmanager
def one_server() -> Iterator[OneServer]:
    with postgres() as running:
        yield OneServer(running)
