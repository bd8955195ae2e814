"""The load under which frontiers are measured: URLs of 60 characters, three priorities, a pace, batches of 64."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import xxhash

from trotline.model.job import LaneRules
from trotline.model.lease import LaneFeedback, Settlement
from trotline.model.outcome import Done
from trotline.model.pace import Pace, Rate
from trotline.model.task import LATER, NORMAL, SOON, Task
from trotline.model.verdict import Kind

BATCH = 64
ALL_LANES = 100_000.0
"""Starts a second of all lanes together."""
_LENGTH = 60


class Meter(Protocol):
    """Whoever does the frontier's work: a server, or this process."""

    def cpu(self) -> float: ...

    def size(self) -> int:
        """Bytes of memory or disk."""
        ...


@dataclass(frozen=True)
class Cost:
    tasks: int
    lanes: int
    workers: int
    put: float
    """Microseconds of CPU, per task; so are the next two."""
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


async def measure(frontier: Any, meter: Meter, ready: Iterable[list[Task]], lanes: int, workers: int) -> Cost:
    """Put all, then lease and settle all. Whoever meters this process has the batches ready: making them costs too."""
    empty, started, count = meter.size(), meter.cpu(), 0
    for batch in ready:
        count += len(batch)
        await frontier.put(batch)
    await frontier.seal()
    put, full = meter.cpu() - started, meter.size()
    leasing, settling = await _work(frontier, meter, [f"worker-{number}" for number in range(workers)])
    progress = await frontier.progress()
    assert progress.done == count, f"{count} tasks went in, these are the books: {progress}"
    await frontier.announce_finish()
    left = meter.size()
    micros = 1e6 / count
    return Cost(
        count, lanes, workers, put * micros, leasing * micros, settling * micros,
        (full - empty) / count, (left - empty) / count,
    )  # fmt: skip


async def _work(frontier: Any, meter: Meter, workers: list[str]) -> tuple[float, float]:
    """CPU of leasing and of settling, by workers in turn. The meter is read seldom: looking at a server costs as much
    as a lease."""
    good = LaneFeedback(Kind.OK, took=0.1)
    leasing = settling = 0.0
    started = meter.cpu()
    while leases := await frontier.lease(workers[0], BATCH, wait=5.0):
        held = [(workers[0], leases)]
        while len(held) < 16 and (more := await frontier.lease(name := workers[len(held) % len(workers)], BATCH)):
            held.append((name, more))
        settled = [(name, [Settlement(lease, Done(), news=good) for lease in some]) for name, some in held]
        middle = meter.cpu()
        for name, some in settled:
            await frontier.settle(name, some)
        ended = meter.cpu()
        leasing, settling, started = leasing + middle - started, settling + ended - middle, ended
    return leasing, settling


def batches(count: int, lanes: int, made_at: float) -> Iterator[list[Task]]:
    batch: list[Task] = []
    for task in tasks(count, lanes, made_at):
        batch.append(task)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


HEADING = (
    "|     tasks |   lanes | workers | put us | lease us | settle us | all us | tasks/s of a core "
    "| bytes waiting | bytes when done |"
)
RULE = "|" + "|".join("-" * len(part) for part in HEADING.strip("|").split("|")) + "|"


def line(cost: Cost) -> str:
    return (
        f"| {cost.tasks:>9,} | {cost.lanes:>7,} | {cost.workers:>7} "
        f"| {cost.put:>6.1f} | {cost.lease:>8.1f} | {cost.settle:>9.1f} "
        f"| {cost.total:>6.1f} | {1e6 / cost.total:>17,.0f} | {cost.waiting:>13.1f} | {cost.left:>15.1f} |"
    )
