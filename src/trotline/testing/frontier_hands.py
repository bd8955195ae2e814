"""The hands of the state machine: its clients, its workers, its tasks and its time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, TypeVar

from hypothesis.stateful import RuleBasedStateMachine
from msgspec.structs import replace

from trotline.model.lease import Lease
from trotline.model.outcome import Bury, Done, Outcome, Retry, Snooze
from trotline.model.pace import Pace
from trotline.model.task import LATER, NORMAL, SOON, Task
from trotline.testing.frontier_contract.bench import FAST, Bench, Client, steady, task
from trotline.testing.frontier_model import LEASED, Model

T = TypeVar("T")

LANES = ("a.example", "b.example", "narrow.example")
NARROW = 2
RULES = steady(lanes={"narrow.example": Pace(rate=FAST, concurrency=NARROW, slowest=FAST)})
WORKERS = 3
URLS = 24
PRIORITIES = (SOON, NORMAL, LATER)


class Hands(RuleBasedStateMachine):
    """What the rules need to act on a frontier and on the model of it."""

    make_bench: ClassVar[Callable[[], Bench]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.bench = type(self).make_bench()
        self.model = Model({lane: NARROW for lane in LANES if lane == "narrow.example"})
        self.clients: list[Client] = [self.run(self.bench.open(RULES)), self.run(self.bench.again())]
        self.workers = [f"w{number}.1" for number in range(WORKERS)]
        self.stale: list[tuple[str, Lease]] = []

    def run(self, step: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(step)

    def _lease(self, client: Client, worker: str, limit: int) -> None:
        before = self.model.servable(self.bench.now())
        leases = self.run(client.lease(worker, limit))
        assert len(leases) >= min(limit, before), f"{before} tasks may run, {limit} were asked for: {leases}"
        assert len(leases) <= limit
        self.model.leased(worker, leases, self.bench.now())
        self.model.in_order(leases, self.bench.now())

    def _time(self, seconds: float) -> None:
        """Time passes while every worker that is not retired beats."""
        while seconds > 0:
            step = min(seconds, 7.0)
            for worker in self.workers:
                self.run(self.clients[0].beat(worker))
            self.bench.jump(step)
            seconds -= step
        for worker in self.workers:
            self.run(self.clients[0].beat(worker))

    def _outcome(self, end: int, wait: int, why: str, held: Task) -> Outcome:
        other = LANES[(LANES.index(held.lane) + 1) % len(LANES)]
        moved = replace(held, url=f"https://{other}/moved", lane=other)
        return (
            Done(),
            Retry(wait, "503"),
            Snooze(wait, "no proxy"),
            Bury(why),
            Snooze(wait, "moved", moved),
        )[end]

    def _task(self, number: int, delay: int) -> Task:
        return task(
            f"https://{LANES[number % len(LANES)]}/{number}",
            lane=LANES[number % len(LANES)],
            priority=PRIORITIES[number // len(LANES) % len(PRIORITIES)],
            not_before=self.bench.now() + delay if delay else 0.0,
        )

    def _client(self, number: int) -> Client:
        return self.clients[number % len(self.clients)]

    def _worker(self, number: int) -> str:
        return self.workers[number % len(self.workers)]

    def _held(self, which: int) -> tuple[str, Lease]:
        known = self.model.pick(LEASED, which)
        assert known.lease is not None
        return known.worker, known.lease

    def _retire(self, number: int) -> str:
        """A worker's name is used no more: what it held is stale from now on, and a new one takes its place."""
        place = number % len(self.workers)
        old = self.workers[place]
        name, _, generation = old.partition(".")
        self.workers[place] = f"{name}.{int(generation) + 1}"
        self.stale += [(old, known.lease) for known in self.model.held_by(old) if known.lease is not None]
        return old
