"""The servers that some contenders need: a real Redis with an append-only file, and a real PostgreSQL.

One of each for a whole run of the benchmark; every trial begins with empty ones, and is told what they spent on it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import descendants

if TYPE_CHECKING:
    from redis import Redis

    from trotline.testing.postgres_server import PostgresServer
    from trotline.testing.redis_server import RedisServer

REDIS, POSTGRES = "redis", "postgres"
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Spent:
    """What the servers spent on one trial: CPU seconds, and bytes of Redis at its end."""

    redis_cpu: float = 0.0
    postgres_cpu: float = 0.0
    redis_bytes: int = 0


NOTHING = Spent()


class Services:
    """The servers that run, by name."""

    def __init__(self, redis_server: RedisServer | None, postgres_server: PostgresServer | None) -> None:
        self._redis, self._postgres = redis_server, postgres_server
        self._before: dict[str, float] = {}

    @property
    def environment(self) -> dict[str, str]:
        found = {}
        if self._redis is not None:
            found["BENCH_REDIS"] = self._redis.url
        if self._postgres is not None:
            found["BENCH_POSTGRES"] = self._postgres.url
        return found

    def begin(self) -> None:
        """Empty servers, and a look at their clocks."""
        if self._redis is not None:
            _client(self._redis.url).flushall()
        if self._postgres is not None:
            asyncio.run(_empty(self._postgres.url))
        self._before = self._clocks()

    def end(self) -> Spent:
        now = self._clocks()
        spent = {name: now[name] - self._before[name] for name in now}
        used = int(_client(self._redis.url).info("memory")["used_memory"]) if self._redis is not None else 0
        return Spent(spent.get(REDIS, 0.0), spent.get(POSTGRES, 0.0), used)

    def redis_cpu(self) -> float:
        """CPU seconds of Redis since the trial began."""
        return self._clocks().get(REDIS, 0.0) - self._before.get(REDIS, 0.0)

    def _clocks(self) -> dict[str, float]:
        servers = {REDIS: self._redis, POSTGRES: self._postgres}
        return {name: process_cpu(server.pid) for name, server in servers.items() if server is not None}


@contextmanager
def serving(names: set[str]) -> Iterator[Services]:
    """Those of the servers that are asked for."""
    if not names:
        yield Services(None, None)
        return
    from trotline.testing.postgres_server import postgres
    from trotline.testing.redis_server import redis

    with ExitStack() as stack:
        yield Services(
            stack.enter_context(redis()) if REDIS in names else None,
            stack.enter_context(postgres()) if POSTGRES in names else None,
        )


def _client(url: str) -> Redis:
    from redis import Redis

    return Redis.from_url(url)


def process_cpu(pid: int) -> float:
    """CPU seconds of a process and of those below it, those that ended included."""
    own = _ticks(pid, 4)
    return (own + sum(_ticks(child, 2) for child in descendants(pid))) / _TICK


def _ticks(pid: int, fields: int) -> int:
    """User and system time; with four fields also that of the children that were waited for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        # It ended between two looks, or in the middle of one.
        return 0
    return sum(int(value) for value in stat[11 : 11 + fields])


async def _empty(url: str) -> None:
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        schemas = await connection.fetch(
            "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'"
        )
        for (name,) in schemas:
            await connection.execute(f'DROP SCHEMA "{name}" CASCADE')
        await connection.execute("CREATE SCHEMA public")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()
