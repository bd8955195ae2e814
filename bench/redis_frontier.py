"""What the Redis frontier costs the server, per task: CPU from INFO, bytes from used_memory.

    python -m bench.redis_frontier [--tasks N] [--lanes M] [--workers W] [--growth] [--build debian|wheel] [--aof]
    python -m bench.redis_frontier --slowest    how long the longest call keeps the server busy, by what is asked

Without numbers it measures the sizes that the promises name; `--growth` shows what becomes of the cost when there are
more tasks, more lanes or more workers. The figures are the server's own CPU time, so a slow client changes them little;
a busy machine does.
"""

import argparse
import asyncio
from typing import Any

from redis import Redis

from bench.frontier_load import HEADING, RULE, Cost, batches, line, measure, rules
from bench.slowest_calls import slowest_calls
from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.testing.clients import redis_client
from trotline.testing.redis_server import BUILDS, DEBIAN, redis

Size = tuple[int, int, int]
"""Tasks, lanes, workers."""
SIZES: tuple[Size, ...] = ((100_000, 1, 1), (100_000, 1_000, 1), (1_000_000, 1_000, 1), (1_000_000, 100_000, 1))
GROWTH: tuple[Size, ...] = (
    *((tasks, 1_000, 1) for tasks in (1_000, 10_000, 100_000, 1_000_000)),
    *((100_000, lanes, 1) for lanes in (1, 10, 100, 10_000)), (1_000_000, 100_000, 1),
    *((100_000, 1_000, workers) for workers in (2, 4, 8, 16)),
)  # fmt: skip


class ServerMeter:
    def __init__(self, url: str) -> None:
        self._redis: Any = Redis.from_url(url)

    def cpu(self) -> float:
        told = self._redis.info("cpu")
        return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])

    def size(self) -> int:
        self._redis.execute_command("MEMORY", "PURGE")
        return int(self._redis.info("memory")["used_memory"])


async def cost(url: str, count: int, lanes: int, workers: int) -> Cost:
    jobs = RedisJobs(connect(url))
    job = await jobs.start("bench", rules(lanes))
    frontier = redis_client(connect(url), job)
    await frontier.progress()
    found = await measure(frontier, ServerMeter(url), batches(count, lanes, job.started_at), lanes, workers)
    await frontier.close()
    await jobs.forget(job.id)
    await jobs.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="What the Redis frontier costs the server, per task.")
    parser.add_argument("--tasks", type=int)
    parser.add_argument("--lanes", type=int)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--growth", action="store_true", help="many sizes, to see whether the cost stays flat")
    parser.add_argument("--build", choices=BUILDS, default=DEBIAN)
    parser.add_argument("--aof", action="store_true", help="with an append-only file, synced every second")
    parser.add_argument("--slowest", action="store_true", help="the longest call of the largest batches")
    given = parser.parse_args()
    if given.slowest:
        with redis(given.build, {"appendonly": "yes" if given.aof else "no"}) as server:
            print(asyncio.run(slowest_calls(server.url)))
        return
    sizes = GROWTH if given.growth else SIZES
    if given.tasks or given.lanes or given.workers:
        sizes = ((given.tasks or 100_000, given.lanes or 1_000, given.workers or 1),)
    print(HEADING)
    print(RULE)
    for size in sizes:
        with redis(given.build, {"appendonly": "yes" if given.aof else "no"}) as server:
            print(line(asyncio.run(cost(server.url, *size))), flush=True)


if __name__ == "__main__":
    main()
