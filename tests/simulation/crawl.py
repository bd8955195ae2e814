"""A whole crawl on virtual time: a fleet, its faults, then peace; and what must be true at the end."""

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Any

import msgspec

from tests.simulation.faults import (
    CALM,
    CutFetcher,
    CutFrontier,
    CutSink,
    CutValidators,
    MemorySink,
    MemoryValidators,
    Node,
    Temper,
)
from tests.simulation.web import Web, spider_for
from trotline.config.components import open_gate
from trotline.errors import FrontierUnreachable
from trotline.model.job import Job, Progress
from trotline.model.time import Moment
from trotline.ports.frontier import BEAT
from trotline.testing.clients import sqlite_client
from trotline.testing.virtual_time import run_virtual
from trotline.worker.commit import Committer
from trotline.worker.dependencies import WorkerParts
from trotline.worker.parsing_marker import Marker
from trotline.worker.worker import Worker
from trotline.worker.worker_settings import WorkerPolicy

WORKERS = 3
SLOTS = 4
WAR = 120.0
"""Virtual seconds of faults, then they stop."""
PEACE = 24 * 3600.0
"""Virtual seconds within which the job must then finish."""
PACE = 5.0
STEPS = ("lease", "fetch", "store", "settle", "remember", "holds")
LABELS = [f"{when} {step}" for step in STEPS for when in ("before", "after")]


class Verdict(msgspec.Struct):
    """How a simulated crawl ended."""

    seed: int
    progress: Progress
    rows: dict[str, dict[str, str]]
    truth: dict[str, dict[str, str]]
    tasks: int
    """URLs that a complete crawl visits."""
    impolite: float
    most_leases: int
    finishes: int
    kills: int
    told: int
    """Tasks whose end is in the ledger."""

    def broken(self) -> list[str]:
        """The invariants that do not hold, in words."""
        missing = self.truth.keys() - self.rows.keys()
        wrong = {key for key, row in self.rows.items() if self.truth.get(key) != row}
        books = self.progress.waiting + self.progress.leased + self.progress.done + self.progress.dead
        checks = {
            f"lost: {sorted(missing)[:3]} ({len(missing)} of {len(self.truth)})": not missing,
            f"rows that no page has: {sorted(wrong)[:3]}": not wrong,
            f"not finished: {self.progress}": self.progress.finished_at is not None,
            f"books do not balance: {books} of {self.tasks}": books == self.tasks,
            f"a lane was asked {self.impolite:.2f} starts too often": self.impolite <= 1e-6,
            f"{self.most_leases} leases at once": self.most_leases <= _most_leases_allowed(),
            f"finish announced {self.finishes} times": self.finishes == 1,
            f"{self.progress.done - self.told} of {self.progress.done} ends are not in the ledger": (
                self.told >= self.progress.done
            ),
        }
        return [words for words, holds in checks.items() if not holds]


def _most_leases_allowed() -> int:
    # Slots, half as many ahead, and the bounded commit queue behind them, per incarnation that may hold some.
    return WORKERS * 2 * (SLOTS + SLOTS // 2 + WorkerPolicy().backlog)


def simulate(
    seed: int,
    *,
    temper: Temper | None = None,
    crash_at: str = "",
    break_it: Callable[[Worker], None] | None = None,
) -> Verdict:
    """Run one crawl. The same seed gives the same crawl."""
    return run_virtual(Crawl(seed, temper or Temper(), crash_at, break_it).run())


class Crawl:
    """A fleet on one frontier in memory, which is the whole fleet's server."""

    def __init__(self, seed: int, temper: Temper, crash_at: str, break_it: Callable[[Worker], None] | None) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.temper = temper
        self.crash_at = crash_at
        self.break_it = break_it
        self.web = Web(seed)
        self.spider = spider_for(self.web, f"{PACE:.0f}/s")
        self.sink = MemorySink()
        self.validators = MemoryValidators()
        self.kills = 0
        self.finishes = 0
        self.most_leases = 0
        self.admitted = 0
        """Tasks in the books when they were last looked at."""

    async def run(self) -> Verdict:
        self.frontier = await self.open_frontier()
        gate = open_gate(self.spider)
        await self.frontier.put(gate.seeds(list(self.spider.seeds()), 0.0).tasks)
        await self.frontier.seal()
        places = [asyncio.create_task(self._place(place)) for place in range(WORKERS)]
        looking = asyncio.create_task(self._look())
        await self._war()
        await self._peace(places)
        looking.cancel()
        progress = await self.frontier.progress()
        await self.frontier.close()
        return Verdict(
            seed=self.seed,
            progress=progress,
            rows={key: data for (_, _, key), (_, data) in self.sink.rows.items()},
            truth=self.web.truth,
            tasks=self.web.tasks,
            impolite=self.web.worst_window(PACE),
            most_leases=self.most_leases,
            finishes=self.finishes,
            kills=self.kills,
            told=len({line.fingerprint for line in self.sink.lines.values() if line.outcome == "done"}),
        )

    async def open_frontier(self) -> Any:
        """A new job on the server, as somebody sees it who never dies."""
        job = Job(id="sim-1", spider=self.spider.name, started_at=0.0, rules=self.spider.rules)
        chance = random.Random(self.chance.random())
        return sqlite_client(":memory:", job, now=self.now, rng=chance, inline=True)

    def frontier_of(self, node: Node) -> Any:
        """The same job, as a node that may die sees it."""
        return CutFrontier(self.frontier, node)

    def now(self) -> Moment:
        """The server's clock: virtual."""
        return 1_000_000.0 + asyncio.get_running_loop().time()

    async def _war(self) -> None:
        await asyncio.sleep(WAR)
        self.temper = CALM
        self.web.rude = False

    async def _peace(self, places: "list[asyncio.Task[None]]") -> None:
        """The faults are over: what was buried meanwhile is revived, and the job must finish."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PEACE):
                while True:
                    await asyncio.gather(*places)
                    if not await self.revive():
                        break
                    places = [asyncio.create_task(self._place(place)) for place in range(WORKERS)]
        self.finishes += await self.frontier.announce_finish()
        self.finishes += await self.frontier.announce_finish()

    async def revive(self) -> int:
        """What was buried waits again, and the job is open again."""
        return int(await self.frontier.revive())

    async def _place(self, place: int) -> None:
        """One machine: a worker, and another incarnation of it after every death."""
        for incarnation in range(10_000):
            node = Node(f"w{place}-{incarnation}", random.Random(self.chance.random()), lambda: self.temper)
            node.crash_at = self.crash_at if incarnation == 0 else ""
            frontier = self.frontier_of(node)
            worker = self._worker(node, frontier)
            running = asyncio.create_task(worker.run())
            beating = asyncio.create_task(self._beat(node, frontier))
            killed = asyncio.create_task(node.killed.wait())
            await asyncio.wait([running, killed], return_when=asyncio.FIRST_COMPLETED)
            ended = running.done()
            for task in (beating, killed, running):
                task.cancel()
            if ended:
                running.result()
                return
            # Cancelling runs `finally` blocks, but the ports are cut: nothing of it has an effect.
            self.kills += 1
            await asyncio.sleep(self.chance.uniform(0.1, 20))

    def _worker(self, node: Node, frontier: Any) -> Worker:
        tools = WorkerParts(
            job="sim-1",
            frontier=frontier,
            fetcher=CutFetcher(self.web, node),
            sink=CutSink(self.sink, node, lambda: self.temper, self.chance),
            gate=open_gate(self.spider),
            validators=CutValidators(self.validators, node),
            marker=Marker(),
            chance=random.Random(self.chance.random()),
        )
        worker = Worker(node.name, self.spider, tools, WorkerPolicy(slots=SLOTS, batch=8, grace=5.0))
        if self.break_it is not None:
            self.break_it(worker)
        return worker

    async def _beat(self, node: Node, frontier: Any) -> None:
        while True:
            with contextlib.suppress(FrontierUnreachable):
                await frontier.beat(node.name)
            await asyncio.sleep(BEAT)

    def balanced(self, progress: Progress) -> bool:
        """No task disappears from the books, and none is in them twice."""
        return self.admitted <= progress.admitted <= self.web.tasks

    async def _look(self) -> None:
        """An operator who looks all the time: the books must balance at every look."""
        while True:
            progress = await self.frontier.progress()
            self.most_leases = max(self.most_leases, progress.leased)
            assert self.balanced(progress), f"{progress.admitted} tasks, before {self.admitted}: {progress}"
            self.admitted = progress.admitted
            await asyncio.sleep(0.7)


def settle_before_store(worker: Worker) -> None:
    """A planted bug: acknowledge first, store later."""
    committer: Committer = worker._committer

    async def commit(batch):  # type: ignore[no-untyped-def]
        await committer._settle(batch)
        await committer._store(batch)

    committer._commit = commit  # type: ignore[method-assign]


def remember_before_settle(worker: Worker) -> None:
    """A planted bug: note that a page was read before the frontier has what it led to."""
    committer: Committer = worker._committer
    settle = committer._settle

    async def settle_late(batch):  # type: ignore[no-untyped-def]
        await worker._parts.validators.remember([visit.seen for visit in batch if visit.seen])  # type: ignore[union-attr]
        await settle(batch)

    committer._settle = settle_late  # type: ignore[method-assign]
