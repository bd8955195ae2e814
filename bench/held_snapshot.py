"""What a task costs the PostgreSQL frontier beside an old snapshot, as that of a dump or a report, which keeps VACUUM
from removing anything.

    python -m bench.held_snapshot [--tasks N] [--minutes M] [--lanes M] [--build debian|wheel]

A queue of the same length all the time: put, lease and settle a batch each, until so many tasks are done or the
snapshot was held for so long. The cost of every 10,000 tasks, and that of the last ones against that of the first ones.
"""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import takewhile
from typing import Any

import asyncpg

from bench.frontier_load import BATCH, batches, rules
from bench.postgres_frontier import ServerMeter
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import parse
from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.model.lease import LaneFeedback, Settlement
from trotline.model.outcome import Done
from trotline.model.verdict import Kind
from trotline.testing.clients import postgres_client
from trotline.testing.postgres_server import BUILDS, WHEEL, PostgresServer, postgres

SLICE = 10_000
WAITING = 20_000
GOAL = 3.0
"""The last slices may cost so many times the first ones."""


@asynccontextmanager
async def snapshot(url: str) -> AsyncIterator[None]:
    """As a dump holds it."""
    db = await asyncpg.connect(url)
    async with db.transaction(isolation="repeatable_read", readonly=True):
        await db.fetchval("SELECT count(*) FROM pg_class")
        yield
    await db.close()


async def costs(server: PostgresServer, count: int, lanes: int, seconds: float) -> list[float]:
    """Microseconds of the server's CPU per task, of each slice."""
    address = parse(f"{server.url}?schema=bench_{time.time_ns()}")
    jobs = PostgresJobs(Database(address))
    job = await jobs.start("bench", rules(lanes))
    await jobs.close()
    frontier, meter = await postgres_client(Database(address), job), ServerMeter(server)
    ready = batches(WAITING + count, lanes, job.started_at)
    for _ in range(WAITING // BATCH):
        await frontier.put(next(ready))
    found: list[float] = []
    async with snapshot(server.url):
        done, began, end = 0, meter.cpu(), time.monotonic() + seconds
        for batch in takewhile(lambda _: time.monotonic() < end, ready):
            await frontier.put(batch)
            done += await visit(frontier)
            if done >= SLICE:
                ended = meter.cpu()
                found.append(1e6 * (ended - began) / done)
                print(f"{len(found) * SLICE:>9,} tasks: {found[-1]:>7.1f} us", flush=True)
                done, began = 0, ended
    await frontier.close()
    return found


async def visit(frontier: Any) -> int:
    leases = await frontier.lease("w", BATCH, wait=5.0)
    news = LaneFeedback(Kind.OK, took=0.1)
    await frontier.settle("w", [Settlement(lease, Done(), news=news) for lease in leases])
    return len(leases)


def main() -> None:
    parser = argparse.ArgumentParser(description="What a task costs beside an old snapshot.")
    parser.add_argument("--tasks", type=int, default=150_000)
    parser.add_argument("--minutes", type=float, default=60.0, help="at most [default: %(default)g]")
    parser.add_argument("--lanes", type=int, default=1_000)
    parser.add_argument("--build", choices=BUILDS, default=WHEEL)
    given = parser.parse_args()
    with postgres(given.build, {"shared_buffers": "256MB", "max_wal_size": "4GB"}) as server:
        found = asyncio.run(costs(server, given.tasks, given.lanes, 60.0 * given.minutes))
    first, last, most = sum(found[:2]) / 2, sum(found[-2:]) / 2, max(found)
    print(
        f"the first 20,000: {first:.0f} us; the last: {last:.0f}, {last / first:.1f} times as much (goal: {GOAL:.0f})"
    )
    print(f"most of all slices: {most:.0f} us, {most / first:.1f} times as much as the first ones")


if __name__ == "__main__":
    main()
