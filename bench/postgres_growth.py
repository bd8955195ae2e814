"""Does a task cost the PostgreSQL frontier more when more of them wait?

    python -m bench.postgres_growth [--size N]... [--lanes M] [--tasks N] [--churn N] [--build debian|wheel]

Fills the queue up to each size (`postgres_fill.py`), and waits until the server has nothing left to do for it. Then
`--tasks` are put, leased and settled in batches of 64, twice, and the cost and the bytes on the disk are printed. By
default that takes more than a minute, so autovacuum comes as often as in a crawl, and what it costs is counted.
`--churn`: at the first size, so many tasks come and go, and the tables are compared with what they take when they are
written anew.

The server: shared_buffers 1 GB, so the tables of ten million tasks (3.6 GB) do not fit; max_wal_size 8 GB; all else as
PostgreSQL comes: a checkpoint every five minutes, full pages in the log after it, fsync.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any

import asyncpg

from bench import postgres_fill
from bench.frontier_load import BATCH, rules, tasks
from bench.held_snapshot import visit
from bench.postgres_frontier import ServerMeter
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import parse
from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.testing.clients import postgres_client
from trotline.testing.postgres_server import BUILDS, WHEEL, PostgresServer, postgres

SIZES = (100_000, 1_000_000)
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "8GB"}
MEASURED = 300_000
GROWTH, BLOAT = 1.3, 2.0
"""The cost at each size against that at the first one, and the tables after a churn against those written anew."""
_FIRST = 20
"""Tasks of each lane that are put, so that all lanes exist."""
_NOTED = 1_000_000
_PART = 40 * BATCH
"""Tasks that are put, and then leased and settled. A look at the server's CPU takes a millisecond."""
_IDLE, _PATIENCE = 0.02, 300.0
"""The part of a core below which the server has nothing to do, and how many seconds may pass until then."""


class Growth:
    def __init__(self, server: PostgresServer, lanes: int, measured: int) -> None:
        self._server = server
        self._lanes = lanes
        self._measured = measured
        self._meter = ServerMeter(server)
        self._schema = f"bench_{time.time_ns()}"
        self._tasks = tasks(sys.maxsize, lanes, time.time())
        self._waiting = self._filled = 0

    async def open(self) -> Any:
        address = parse(f"{self._server.url}?schema={self._schema}&timeout=10m")
        jobs = PostgresJobs(Database(address))
        job = await jobs.start("bench", rules(self._lanes))
        await jobs.close()
        self._frontier = await postgres_client(Database(address), job)
        await self._put_batches(-(-_FIRST * self._lanes // BATCH))
        return self._frontier

    async def fill(self, size: int) -> None:
        missing = max(0, size - self._waiting)
        async with self._look() as db:
            await postgres_fill.fill(db, self._filled, missing)
        self._filled += missing
        self._waiting += missing

    async def rest(self) -> None:
        """The server writes and vacuums what the filling left."""
        async with self._look() as db:
            await db.execute("CHECKPOINT")
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            began, at = self._meter.cpu(), time.monotonic()
            await asyncio.sleep(3)
            if self._meter.cpu() - began < _IDLE * (time.monotonic() - at):
                return
        print(f"the server was still busy after {_PATIENCE:.0f} s", flush=True)

    async def measure(self) -> float:
        """Microseconds of the server's CPU per task; printed with more."""
        put, worked, added, done = 0.0, 0.0, 0, 0
        while done < self._measured:
            began = self._meter.cpu()
            await self._put_batches(_PART // BATCH)
            added += _PART
            put_at = self._meter.cpu()
            while done < added:
                done += await self._visit()
            put, worked = put + put_at - began, worked + self._meter.cpu() - put_at
        size = self._meter.size() / max(1, self._waiting)
        put, worked = 1e6 * put / added, 1e6 * worked / done
        print(
            f"| {self._waiting:>11,} | {put:>6.1f} | {worked:>17.1f} | {put + worked:>6.1f} | {size:>21,.0f} |",
            flush=True,
        )
        return put + worked

    async def churn(self, count: int) -> str:
        done = 0
        while done < count:
            await self._put_batches(1)
            done += (gone := await self._visit())
            if done // _NOTED > (done - gone) // _NOTED:
                async with self._look() as db:
                    print(f"after {done:,}: {_megabytes(await _sizes(db))}", flush=True)
        async with self._look() as db:
            before = await _sizes(db)
            for name in before:
                await db.execute(f"VACUUM FULL {name}")
            after = await _sizes(db)
        whole = sum(before.values()) / sum(after.values())
        each = ", ".join(f"{name} x {before[name] / after[name]:.1f}" for name in before)
        return f"{_megabytes(before)}: x {whole:.2f} of what they need (goal: {BLOAT:.0f}); {each}"

    async def _put_batches(self, count: int) -> None:
        for _ in range(count):
            await self._frontier.put(list(islice(self._tasks, BATCH)))
            self._waiting += BATCH

    async def _visit(self) -> int:
        done = await visit(self._frontier)
        self._waiting -= done
        return done

    @asynccontextmanager
    async def _look(self) -> AsyncIterator[Any]:
        db = await asyncpg.connect(self._server.url, server_settings={"search_path": self._schema})
        yield db
        await db.close()


def _megabytes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.items())


async def _sizes(db: Any) -> dict[str, int]:
    """Of the tables whose rows come and go, with their indexes."""
    names = ("waiting_1", "turn", "pace", "lane", "held", "counter", "seen_1")
    return {name: await db.fetchval("SELECT pg_total_relation_size($1::regclass)", name) for name in names}


async def run(growth: Growth, sizes: list[int], churn: int) -> None:
    frontier = await growth.open()
    print("|     waiting | put us | lease + settle us | all us | bytes on disk / task |")
    print("|------------:|-------:|------------------:|-------:|---------------------:|", flush=True)
    first = 0.0
    for size in sizes:
        await growth.fill(size)
        await growth.rest()
        cost = min(await growth.measure(), await growth.measure())
        first = first or cost
        print(f"{size:,}: {cost:.1f} us, x {cost / first:.2f} of the first (goal: {GROWTH})", flush=True)
        if churn and size == sizes[0]:
            print(f"after {churn:,} tasks more: {await growth.churn(churn)}", flush=True)
    progress = await frontier.progress()
    assert not progress.dead, f"these are the books: {progress}"
    await frontier.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of a task by the number of those that wait.")
    parser.add_argument("--size", type=int, action="append", help="may be given many times")
    parser.add_argument("--lanes", type=int, default=1_000)
    parser.add_argument("--tasks", type=int, default=MEASURED, help="measured at each size, twice")
    parser.add_argument("--churn", type=int, default=0)
    parser.add_argument("--build", choices=BUILDS, default=WHEEL)
    given = parser.parse_args()
    with postgres(given.build, SETTINGS) as server:
        asyncio.run(run(Growth(server, given.lanes, given.tasks), sorted(given.size or SIZES), given.churn))


if __name__ == "__main__":
    main()
