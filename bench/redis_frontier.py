"""What the Redis frontier costs the server, per task: CPU from INFO, bytes from used_memory.

    python -m bench.redis_frontier [--tasks N] [--lanes M] [--workers W] [--growth] [--build debian|wheel] [--aof]

Without numbers it measures the sizes that the promises name; `--growth` shows what becomes of the cost when there are
more tasks, more lanes or more workers. Tasks have 60-character URLs, three priorities and a pace; batches are 64. The
figures are the server's own CPU time, so a slow client changes them little; a busy machine does.
"""

import argparse
import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import xxhash
from redis import Redis

from trotline.adapters.redis import RedisFrontier, RedisJobs, connect
from trotline.model.job import LaneRules
from trotline.model.lease import LaneNews, Settlement
from trotline.model.outcome import Done
from trotline.model.pace import Pace, Rate
from trotline.model.task import LATER, NORMAL, SOON, Task
from trotline.model.verdict import Kind
from trotline.testing.redis_server import BUILDS, DEBIAN, redis

BATCH = 64
Size = tuple[int, int, int]
"""Tasks, lanes, workers."""
SIZES: tuple[Size, ...] = ((100_000, 1, 1), (100_000, 1_000, 1), (1_000_000, 1_000, 1), (1_000_000, 100_000, 1))
GROWTH: tuple[Size, ...] = (
    *((tasks, 1_000, 1) for tasks in (1_000, 10_000, 100_000, 1_000_000)),
    *((100_000, lanes, 1) for lanes in (1, 10, 100, 10_000)), (1_000_000, 100_000, 1),
    *((100_000, 1_000, workers) for workers in (2, 4, 8, 16)),
)  # fmt: skip
ALL_LANES = 100_000.0
"""Starts a second of all lanes together."""
_LENGTH = 60


@dataclass(frozen=True)
class Cost:
    tasks: int
    lanes: int
    workers: int
    put: float
    """Microseconds of the server's CPU, per task; so are the next two."""
    lease: float
    settle: float
    waiting: float
    """Bytes per waiting task, its fingerprint included."""
    left: float
    """Bytes per task when all are done."""

    @property
    def total(self) -> float:
        return self.put + self.lease + self.settle


def tasks(count: int, lanes: int, made_at: float = 0.0) -> Iterator[Task]:
    """Different tasks, dealt to the lanes in a random order."""
    chance = random.Random(7)
    for number in range(count):
        lane = f"h{chance.randrange(lanes) if lanes > 1 else 0:05d}.example"
        url = f"https://{lane}/catalogue/item/{number:07d}/".ljust(_LENGTH, "x")[:_LENGTH]
        unsigned = xxhash.xxh3_64_intdigest(url.encode())
        yield Task(
            url=url,
            route="product",
            lane=lane,
            fingerprint=unsigned - 2**63 or 1,
            priority=chance.choice((SOON, NORMAL, LATER)),
            site="shop",
            created_at=made_at + number / 1000,
        )


def rules(lanes: int) -> LaneRules:
    """A pace that every task is reserved a moment of, and that all lanes together could be served faster than."""
    rate = ALL_LANES / lanes
    return LaneRules(default=Pace(rate=Rate(rate), concurrency=100_000, slowest=Rate(rate / 10)))


class Meter:
    def __init__(self, url: str) -> None:
        self._redis: Any = Redis.from_url(url)

    def cpu(self) -> float:
        told = self._redis.info("cpu")
        return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])

    def memory(self) -> int:
        self._redis.execute_command("MEMORY", "PURGE")
        return int(self._redis.info("memory")["used_memory"])


async def measure(url: str, count: int, lanes: int, workers: int = 1) -> Cost:
    meter = Meter(url)
    jobs = RedisJobs(connect(url))
    job = await jobs.start("bench", rules(lanes))
    frontier = RedisFrontier(connect(url), job)
    await frontier.progress()
    empty, started = meter.memory(), meter.cpu()
    batch: list[Task] = []
    for task in tasks(count, lanes, job.started_at):
        batch.append(task)
        if len(batch) == BATCH:
            await frontier.put(batch)
            batch = []
    if batch:
        await frontier.put(batch)
    await frontier.seal()
    put, full = meter.cpu() - started, meter.memory()
    leasing, settling = await _work(frontier, meter, [f"worker-{number}" for number in range(workers)])
    progress = await frontier.progress()
    assert progress.done == count, f"{count} tasks went in, these are the books: {progress}"
    await frontier.announce_finish()
    left = meter.memory()
    await frontier.close()
    await jobs.forget(job.id)
    await jobs.close()
    micros = 1e6 / count
    return Cost(
        count, lanes, workers, put * micros, leasing * micros, settling * micros,
        (full - empty) / count, (left - empty) / count,
    )  # fmt: skip


async def _work(frontier: RedisFrontier, meter: Meter, workers: list[str]) -> tuple[float, float]:
    """CPU of leasing and of settling, by workers in turn. The clock of the server is read seldom: looking costs as much
    as a lease."""
    good = LaneNews(Kind.OK, took=0.1)
    leasing = settling = 0.0
    started, turns = meter.cpu(), 0
    while leases := await frontier.lease(workers[0], BATCH, wait=5.0):
        held = [(workers[0], leases)]
        while len(held) < 16 and (more := await frontier.lease(name := workers[len(held) % len(workers)], BATCH)):
            held.append((name, more))
        middle = meter.cpu()
        for name, some in held:
            await frontier.settle(name, [Settlement(lease, Done(), news=good) for lease in some])
        ended = meter.cpu()
        leasing, settling, started, turns = leasing + middle - started, settling + ended - middle, ended, turns + 1
    return leasing, settling


HEADING = (
    "|     tasks |   lanes | workers | put us | lease us | settle us | all us | tasks/s of a core "
    "| bytes waiting | bytes when done |"
)


def line(cost: Cost) -> str:
    return (
        f"| {cost.tasks:>9,} | {cost.lanes:>7,} | {cost.workers:>7} "
        f"| {cost.put:>6.1f} | {cost.lease:>8.1f} | {cost.settle:>9.1f} "
        f"| {cost.total:>6.1f} | {1e6 / cost.total:>17,.0f} | {cost.waiting:>13.1f} | {cost.left:>15.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="What the Redis frontier costs the server, per task.")
    parser.add_argument("--tasks", type=int)
    parser.add_argument("--lanes", type=int)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--growth", action="store_true", help="many sizes, to see whether the cost stays flat")
    parser.add_argument("--build", choices=BUILDS, default=DEBIAN)
    parser.add_argument("--aof", action="store_true", help="with an append-only file, synced every second")
    given = parser.parse_args()
    sizes = GROWTH if given.growth else SIZES
    if given.tasks or given.lanes or given.workers:
        sizes = ((given.tasks or 100_000, given.lanes or 1_000, given.workers or 1),)
    print(HEADING)
    print("|" + "|".join("-" * len(part) for part in HEADING.strip("|").split("|")) + "|")
    for size in sizes:
        with redis(given.build, {"appendonly": "yes" if given.aof else "no"}) as server:
            print(line(asyncio.run(measure(server.url, *size))), flush=True)


if __name__ == "__main__":
    main()
