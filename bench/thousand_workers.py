"""A thousand workers on one server: what a task costs, and what a worker that has nothing to do.

    python -m bench.thousand_workers [--tasks N]... [--workers W] [--lanes M] [--connections C]
                                     [--server redis|postgresql]

The workers are names: they lease and settle in turns over a few clients, as behind a pooler, so the server sees all its
calls in the order in which they come and never waits for one of them. An idle worker is measured by its two calls, a
waiting lease and a heartbeat; how often they come is given by `worker.worker.IDLE_WAIT` and `ports.frontier.BEAT`.
"""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench import postgres_frontier, redis_frontier
from bench.frontier_load import batches, rules
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import parse
from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.model.lease import LaneFeedback, Settlement
from trotline.model.outcome import Done
from trotline.model.verdict import Kind
from trotline.ports.frontier import BEAT
from trotline.testing.clients import postgres_client, redis_client
from trotline.testing.postgres_server import WHEEL, postgres
from trotline.testing.redis_server import DEBIAN, redis
from trotline.worker.worker import IDLE_WAIT

BATCH = 16
HEADING = "| server | workers | tasks | put us | lease + settle us | idle lease us | beat us | all idle: % of a core |"
RULE = "|---|---:|---:|---:|---:|---:|---:|---:|"


class Place:
    """A job on a server, with some clients."""

    def __init__(self, name: str, meter: Any, jobs: Any, open_client: Callable[[Any], Awaitable[Any]]) -> None:
        self.name = name
        self.cpu: Callable[[], float] = meter.cpu
        self.jobs = jobs
        self._open = open_client

    async def start(self, lanes: int, connections: int) -> tuple[Any, list[Any]]:
        job = await self.jobs.start("bench", rules(lanes))
        return job, [await self._open(job) for _ in range(connections)]


async def _of_redis(url: str, job: Any) -> Any:
    return redis_client(connect(url), job)


@contextmanager
def serving(name: str) -> Iterator[Place]:
    if name == "redis":
        with redis(DEBIAN) as server:
            url = server.url
            yield Place(
                name,
                redis_frontier.ServerMeter(url),
                RedisJobs(connect(url)),
                lambda job: _of_redis(url, job),
            )
        return
    with postgres(WHEEL, {"max_connections": "200"}) as server:
        address = parse(f"{server.url}?schema=thousand&prepare=yes")
        yield Place(
            name,
            postgres_frontier.ServerMeter(server),
            PostgresJobs(Database(address)),
            lambda job: postgres_client(Database(address), job),
        )


async def spread(clients: list[Any], workers: int, step: Callable[[Any, str], Awaitable[int]]) -> int:
    """Every worker does a step, in turns, one at a time for each client. The sum of what they return."""

    async def turns(place: int) -> int:
        return sum([await step(clients[place], f"w{each}") for each in range(place, workers, len(clients))])

    return sum(await asyncio.gather(*(turns(place) for place in range(len(clients)))))


async def visit(client: Any, worker: str) -> int:
    held = await client.lease(worker, BATCH)
    news = LaneFeedback(Kind.OK, took=0.1)
    await client.settle(worker, [Settlement(lease, Done(), news=news) for lease in held])
    return len(held)


async def measured(place: Place, tasks: int, workers: int, lanes: int, connections: int) -> str:
    job, clients = await place.start(lanes, connections)
    began = place.cpu()
    for batch in batches(tasks, lanes, job.started_at):
        await clients[0].put(batch)
    put_at, done = place.cpu(), 0
    while done < tasks:
        done += await spread(clients, workers, visit)
    worked_at = place.cpu()

    async def look(client: Any, worker: str) -> int:
        return len(await client.lease(worker, BATCH))

    async def beat(client: Any, worker: str) -> int:
        await client.beat(worker)
        return 0

    await spread(clients, workers, look)
    idle_at = place.cpu()
    await spread(clients, workers, look)
    looked_at = place.cpu()
    await spread(clients, workers, beat)
    ended = place.cpu()
    for client in clients:
        await client.close()
    await place.jobs.forget(job.id)
    looks, beats = (looked_at - idle_at) / workers, (ended - looked_at) / workers
    share = workers * (looks / IDLE_WAIT + beats / (2 * BEAT)) * 100
    numbers = ((put_at - began) / tasks, (worked_at - put_at) / tasks, looks, beats)
    columns = " | ".join(f"{1e6 * number:,.0f}" for number in numbers)
    return f"| {place.name} | {workers:,} | {tasks:,} | {columns} | {share:.1f} |"


async def rows(place: Place, given: argparse.Namespace) -> None:
    """In one event loop: the connections of `place.jobs` belong to it."""
    for tasks in given.tasks or (100_000, 1_000_000):
        print(await measured(place, tasks, given.workers, given.lanes, given.connections), flush=True)
    await place.jobs.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="A thousand workers on one server.")
    parser.add_argument("--tasks", type=int, action="append", help="may be given many times  [default: 100000 1000000]")
    parser.add_argument("--workers", type=int, default=1_000)
    parser.add_argument("--lanes", type=int, default=1_000)
    parser.add_argument("--connections", type=int, default=20)
    parser.add_argument("--server", choices=("redis", "postgresql"), action="append")
    given = parser.parse_args()
    print(HEADING, RULE, sep="\n")
    for name in given.server or ("redis", "postgresql"):
        with serving(name) as place:
            asyncio.run(rows(place, given))


if __name__ == "__main__":
    main()
