"""Does a task cost the PostgreSQL frontier more when more of them wait?

    python -m bench.postgres_growth [--size N]... [--lanes M] [--churn N] [--build debian|wheel]

Fills the queue up to each size with large puts; there, 20,000 tasks are put, leased and settled in batches of 64, and
the cost and the bytes on the disk are printed. `--churn`: at the first size, so many tasks come and go before, and the
tables are compared with what they take when they are written anew.
"""

import argparse
import asyncio
import time
from itertools import islice
from typing import Any

import asyncpg

from bench.frontier_load import BATCH, rules, tasks
from bench.held_snapshot import visit
from bench.postgres_frontier import ServerMeter
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import parse
from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.testing.clients import postgres_client
from trotline.testing.postgres_server import BUILDS, WHEEL, PostgresServer, postgres

SIZES = (100_000, 1_000_000)
MEASURED = 20_000
_AT_ONCE = 1_000


class Growth:
    def __init__(self, server: PostgresServer, lanes: int, most: int) -> None:
        self._server = server
        self._lanes = lanes
        self._meter = ServerMeter(server)
        self._schema = f"bench_{time.time_ns()}"
        self._tasks = tasks(most, lanes, time.time())
        self._waiting = 0

    async def open(self) -> Any:
        address = parse(f"{self._server.url}?schema={self._schema}&timeout=10m")
        jobs = PostgresJobs(Database(address))
        job = await jobs.start("bench", rules(self._lanes))
        await jobs.close()
        self._frontier = await postgres_client(Database(address), job)
        return self._frontier

    async def fill(self, size: int) -> None:
        while self._waiting < size:
            await self._put(min(_AT_ONCE, size - self._waiting))

    async def measure(self) -> str:
        began = self._meter.cpu()
        await self.fill_by(MEASURED)
        put_at, done = self._meter.cpu(), 0
        while done < MEASURED:
            done += await visit(self._frontier)
        ended = self._meter.cpu()
        self._waiting -= done
        put, worked = 1e6 * (put_at - began) / MEASURED, 1e6 * (ended - put_at) / done
        size = self._meter.size() / max(1, self._waiting)
        return f"| {self._waiting:>11,} | {put:>6.1f} | {worked:>17.1f} | {put + worked:>6.1f} | {size:>21,.0f} |"

    async def fill_by(self, count: int) -> None:
        for _ in range(0, count, BATCH):
            await self._put(BATCH)

    async def churn(self, count: int) -> str:
        done = 0
        while done < count:
            await self._put(BATCH)
            done += await visit(self._frontier)
        self._waiting += -(-done // BATCH) * BATCH - done
        db = await asyncpg.connect(self._server.url)
        await db.execute(f'SET search_path = "{self._schema}"')
        before = await _sizes(db)
        for name in before:
            await db.execute(f"VACUUM FULL {name}")
        after = await _sizes(db)
        await db.close()
        return "\n".join(
            f"    {name}: {before[name] / 1e6:.1f} MB, {before[name] / after[name]:.1f} times what it needs"
            for name in before
        )

    async def _put(self, count: int) -> None:
        await self._frontier.put(list(islice(self._tasks, count)))
        self._waiting += count


async def _sizes(db: Any) -> dict[str, int]:
    """Of the tables whose rows come and go, with their indexes."""
    names = ("waiting_1", "turn", "pace", "lane", "held", "counter", "seen_1")
    return {name: await db.fetchval("SELECT pg_total_relation_size($1::regclass)", name) for name in names}


async def run(server: PostgresServer, sizes: list[int], lanes: int, churn: int) -> None:
    growth = Growth(server, lanes, sizes[-1] + churn + 10 * MEASURED)
    frontier = await growth.open()
    print("|     waiting | put us | lease + settle us | all us | bytes on disk / task |")
    print("|------------:|-------:|------------------:|-------:|---------------------:|", flush=True)
    for size in sizes:
        await growth.fill(size)
        # Twice: the first has to wait for what the filling left to be written.
        for _ in range(2):
            print(await growth.measure(), flush=True)
        if churn and size == sizes[0]:
            print(f"after {churn:,} tasks more:\n{await growth.churn(churn)}", flush=True)
    await frontier.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of a task by the number of those that wait.")
    parser.add_argument("--size", type=int, action="append", help="may be given many times")
    parser.add_argument("--lanes", type=int, default=1_000)
    parser.add_argument("--churn", type=int, default=0)
    parser.add_argument("--build", choices=BUILDS, default=WHEEL)
    given = parser.parse_args()
    with postgres(given.build, {"shared_buffers": "1GB", "max_wal_size": "8GB"}) as server:
        asyncio.run(run(server, sorted(given.size or SIZES), given.lanes, given.churn))


if __name__ == "__main__":
    main()
