"""What a brokered frontier does per second: put, lease and settle through RabbitMQ, with the books on Redis.

    python -m bench.rabbitmq_frontier [--tasks 30000] [--lanes 1000] [--batch 64] [--books redis | postgresql | none]

One client: one connection that publishes and one that receives, and one to the books. All servers are real, on this
machine, with fsync (quorum queues, PostgreSQL) and an append-only file (Redis, everysec). "none": the same tasks on
Redis alone, without a broker. "one after another" puts a batch, leases a batch
and settles it, over and over, so that each task goes through the broker before it is leased; "both at once" puts and
leases concurrently; "filled" puts all tasks first.
"""

import argparse
import asyncio
import contextlib
import os
import time
from pathlib import Path

from trotline.adapters.amqp.broker import AmqpBroker
from trotline.adapters.amqp.broker_url import address_of
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import parse
from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.adapters.postgres.frontier.open_job import open_books as postgres_books
from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.open_job import open_books, open_job
from trotline.frontier.brokered_frontier import brokered
from trotline.model.lease import Settlement
from trotline.model.outcome import Done
from trotline.model.task import Task
from trotline.ports.backend import OpenJob
from trotline.testing.frontier_contract.bench import BRISK, task
from trotline.testing.postgres_server import postgres
from trotline.testing.rabbitmq_server import rabbitmq
from trotline.testing.redis_server import redis


def cpu_of(group: int) -> float:
    """Seconds of processor time of a process and of those that it started."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            # PostgreSQL's children have groups of their own; ours are the servers.
            parent = int(fields[1]) if group != os.getpid() else 0
            if group in (parent, int(fields[2]), int(stat.parent.name)):
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


async def opened(place: str, rabbit_url: str, *, alone: bool = False) -> OpenJob:
    if place.startswith("postgresql:"):
        database = Database(parse(place))
        job = await PostgresJobs(database, shelf=True).start("bench", BRISK)
        return brokered(await postgres_books(database, job), AmqpBroker(address_of(rabbit_url), job))
    jobs = RedisJobs(connect(place), shelf=not alone)
    job = await jobs.start("bench", BRISK)
    await jobs.close()
    if alone:
        return open_job(connect(place), job)
    return brokered(open_books(connect(place), job), AmqpBroker(address_of(rabbit_url), job))


def tasks(count: int, lanes: int) -> list[Task]:
    return [task(f"https://shop{n % lanes}.example/product/{n}", lane=f"shop{n % lanes}.example") for n in range(count)]


async def settle_some(job: OpenJob, batch: int) -> int:
    leases = await job.frontier.lease("w", batch, wait=5.0)
    await job.frontier.settle("w", [Settlement(lease, Done()) for lease in leases])
    return len(leases)


async def one_after_another(job: OpenJob, all_tasks: list[Task], batch: int) -> None:
    done = 0
    for start in range(0, len(all_tasks), batch):
        await job.frontier.put(all_tasks[start : start + batch])
        done += await settle_some(job, batch)
    while done < len(all_tasks):
        done += await settle_some(job, batch)


async def both_at_once(job: OpenJob, all_tasks: list[Task], batch: int) -> None:
    async def put_all() -> None:
        for start in range(0, len(all_tasks), batch):
            await job.frontier.put(all_tasks[start : start + batch])

    async def settle_all() -> None:
        done = 0
        while done < len(all_tasks):
            done += await settle_some(job, batch)

    await asyncio.gather(put_all(), settle_all())


async def filled(job: OpenJob, all_tasks: list[Task], batch: int) -> None:
    began = time.perf_counter()
    for start in range(0, len(all_tasks), batch):
        await job.frontier.put(all_tasks[start : start + batch])
    middle = time.perf_counter()
    done = 0
    while done < len(all_tasks):
        done += await settle_some(job, batch)
    ended = time.perf_counter()
    n = len(all_tasks)
    print(f"    put {n / (middle - began):,.0f}/s, lease and settle {n / (ended - middle):,.0f}/s")


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=30_000)
    parser.add_argument("--lanes", type=int, default=1_000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--books", default="redis", choices=("redis", "postgresql", "none"))
    given = parser.parse_args()
    place = postgres() if given.books == "postgresql" else redis()
    with place as books, rabbitmq() as broker:
        groups = {"client": os.getpid(), "books": books.pid, "RabbitMQ": broker.pid}
        ways = {"one after another": one_after_another, "both at once": both_at_once, "filled": filled}
        for name, run in ways.items():
            job = await opened(books.url, broker.url, alone=given.books == "none")
            before, began = {each: cpu_of(pid) for each, pid in groups.items()}, time.perf_counter()
            await run(job, tasks(given.tasks, given.lanes), given.batch)
            took = time.perf_counter() - began
            cost = {each: (cpu_of(pid) - before[each]) / given.tasks * 1e6 for each, pid in groups.items()}
            progress = await job.console.progress()
            assert (progress.done, progress.waiting, progress.leased) == (given.tasks, 0, 0), progress
            print(
                f"{name}: {given.tasks / took:,.0f} tasks/s; us of CPU per task:"
                f" {', '.join(f'{each} {us:.0f}' for each, us in cost.items())}"
                f" ({given.tasks:,} tasks, {given.lanes:,} lanes, batches of {given.batch};"
                f" load {os.getloadavg()[0]:.0f})"
            )
            # The next one has its lanes to itself.
            await job.frontier.seal()
            assert await job.frontier.finished()
            await job.close()


if __name__ == "__main__":
    asyncio.run(main())
