"""Two coordinators on virtual time: kills, pauses, lost replies; and what must be true of a schedule at the end."""

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tests.simulation.faults import CALM, Node, Temper
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.leadership import SqliteLeadership
from trotline.coordinator.coordinator import Coordinator
from trotline.coordinator.dependencies import CoordinatorParts, CoordinatorPolicy, IsLeader, SpiderConfig
from trotline.coordinator.seed_backpressure import SeedFeed
from trotline.errors import FrontierUnreachable
from trotline.model.job import Job, LaneRules
from trotline.model.leadership import Term, Tick
from trotline.model.lease import Settlement
from trotline.model.outcome import Done
from trotline.model.schedule import Overlap, Schedule
from trotline.model.time import Moment, Seconds
from trotline.ports.backend import OpenJob
from trotline.rules import schedules
from trotline.testing.clients import sqlite_client
from trotline.testing.frontier_contract import BRISK, Client, task
from trotline.testing.virtual_time import run_virtual

COORDINATORS = 2
SEEDS = 30
BATCH = 7
WAR = 300.0
"""Virtual seconds of faults, then they stop."""
PEACE = 210.0
TAKES_OVER = 20.0
"""A term, and a little for the look at the clock."""
LONGEST_JOB = 130.0
"""In peace."""
MORNING = 1_750_000_000.0
ROUGH = Temper(crash=0.008, freeze=0.02, lost_reply=0.04, twice=0.04, slow=0.0)
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it


class CoordinatorVerdict(msgspec.Struct):
    """How a simulated night of coordinators ended."""

    seed: int
    kills: int
    ticks: list[Moment]
    """Of the schedule, from where it began."""
    started: list[tuple[Moment, str]]
    """Ticks that started a job, in the order in which the server did it."""
    dealt_with: dict[Moment, Moment]
    """Tick -> when it was started or passed over."""
    jobs: list[Job]
    admitted: dict[str, int]
    announced: Counter[str]
    epochs: list[tuple[int, str]]
    """Terms in the order in which they began."""
    peace_at: Moment
    end_at: Moment
    overlap: Overlap

    def broken(self) -> list[str]:
        """The invariants that do not hold, in words."""
        times = [at for at, _ in self.started]
        # Where ticks wait for the job before, they may be late, by as much as a job takes.
        waits = self.overlap is Overlap.WAIT
        patience = LONGEST_JOB if waits else 2 * TAKES_OVER
        late = [
            at for at in self.ticks if self.peace_at < at < self.end_at - patience and not self._in_time(at, patience)
        ]
        owed = [at for at in self.ticks if at < self.end_at - patience and not self._followed(at)]
        wrong = {name: count for name, count in self.admitted.items() if count != SEEDS}
        silent = [job.id for job in self.jobs if self.announced[job.id] != 1]
        epochs = [epoch for epoch, _ in self.epochs]
        checks = {
            f"ticks that started twice: {times}": len(times) == len(set(times)),
            f"ticks out of order: {times}": times == sorted(times),
            f"jobs that no tick started: {self.jobs}": {name for _, name in self.started} == {j.id for j in self.jobs},
            f"moments that are no ticks: {times}": set(times) <= set(self.ticks),
            f"ticks that were lost: {owed}": not owed,
            f"ticks that were late in peace: {late}": not late,
            f"jobs without exactly their seeds: {wrong}": not wrong,
            f"jobs whose end was not told exactly once: {silent}": not silent,
            f"epochs that do not rise: {self.epochs}": epochs == sorted(set(epochs)),
        }
        return [words for words, holds in checks.items() if not holds]

    def _in_time(self, at: Moment, patience: Seconds) -> bool:
        return any(tick >= at for tick, when in self.dealt_with.items() if when <= at + patience)

    def _followed(self, at: Moment) -> bool:
        """Dealt with, or made up for by a later one."""
        return any(tick >= at for tick in self.dealt_with)


def simulate_coordinators(
    seed: int, *, temper: Temper = ROUGH, break_it: Callable[["_Night"], None] | None = None
) -> CoordinatorVerdict:
    """Run one night. The same seed gives the same night."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        return run_virtual(_Night(seed, temper, str(Path(folder) / "frontier.db"), break_it).run())


class _Night:
    def __init__(self, seed: int, temper: Temper, path: str, break_it: Callable[["_Night"], None] | None) -> None:
        self.seed = seed
        self.temper = temper
        self.chance = random.Random(seed)
        self.path = path
        self.break_it = break_it
        self.kills = 0
        self.started: list[tuple[Moment, str]] = []
        self.dealt_with: dict[Moment, Moment] = {}
        self.announced: Counter[str] = Counter()
        self.epochs: list[tuple[int, str]] = []
        self.frontiers: dict[str, Client] = {}
        self.overlap = self.chance.choice(list(Overlap))
        schedule = Schedule("* * * * *", "UTC", self.overlap)
        self.config = SpiderConfig(spider="shop", rules=BRISK, version="v1", schedule=schedule)
        self.pages_per_look = self.chance.choice([1, 3, 50])
        """How fast the fleet is: a job may take longer than the next tick is away."""

    def now(self) -> Moment:
        return MORNING + asyncio.get_running_loop().time()

    async def run(self) -> CoordinatorVerdict:
        self.leadership = SqliteLeadership(self.path, now=self.now, inline=True)
        self.jobs = SqliteJobs(self.path, now=self.now, inline=True)
        for opened in (self.leadership, self.jobs):
            _forgo_the_disk(opened)
        self.watched = _Watched(self)
        if self.break_it is not None:
            self.break_it(self)
        places = [asyncio.create_task(self._place(place)) for place in range(COORDINATORS)]
        fleet = asyncio.create_task(self._fleet())
        await asyncio.sleep(WAR)
        self.temper = CALM
        peace_at = self.now()
        await asyncio.sleep(PEACE)
        verdict = await self._verdict(peace_at)
        for running in (*places, fleet):
            running.cancel()
        await asyncio.gather(*places, fleet, return_exceptions=True)
        for opened in (self.leadership, self.jobs, *self.frontiers.values()):
            await opened.close()
        return verdict

    async def _verdict(self, peace_at: Moment) -> CoordinatorVerdict:
        jobs = await self.jobs.all()
        # The last tick's job may still be on its way.
        ended = [job for job in jobs if job.started_at < self.now() - LONGEST_JOB]
        begin = min(self.dealt_with, default=MORNING)
        return CoordinatorVerdict(
            seed=self.seed,
            kills=self.kills,
            ticks=_ticks(self.config, begin, self.now()),
            started=[(at, name) for at, name in self.started if name in {job.id for job in ended}],
            dealt_with=self.dealt_with,
            jobs=ended,
            admitted={job.id: (await self.frontier(job).progress()).admitted for job in ended},
            announced=self.announced,
            epochs=self.epochs,
            peace_at=peace_at,
            end_at=self.now(),
            overlap=self.overlap,
        )

    def frontier(self, job: Job) -> Client:
        """One object is the whole fleet's server."""
        if job.id not in self.frontiers:
            self.frontiers[job.id] = sqlite_client(
                self.path, job, now=self.now, rng=random.Random(self.seed), inline=True
            )
            _forgo_the_disk(self.frontiers[job.id])
        return self.frontiers[job.id]

    async def _fleet(self) -> None:
        """Workers that visit pages, and need no coordinator for that."""
        while True:
            await asyncio.sleep(3.0)
            for job in await self.jobs.all():
                if job.finished_at is None:
                    frontier = self.frontier(job)
                    leases = await frontier.lease("worker", self.pages_per_look)
                    await frontier.settle("worker", [Settlement(lease, Done()) for lease in leases])

    async def _place(self, place: int) -> None:
        """One machine: a coordinator, and another incarnation of it after every death."""
        for incarnation in range(10_000):
            await asyncio.sleep(self.chance.uniform(0.1, 10))
            node = Node(f"c{place}-{incarnation}", random.Random(self.chance.random()), lambda: self.temper)
            running = asyncio.create_task(self._coordinator(node).run())
            killed = asyncio.create_task(node.killed.wait())
            try:
                await asyncio.wait([running, killed], return_when=asyncio.FIRST_COMPLETED)
                if running.done():
                    running.result()
            finally:
                # Cancelling runs `finally` blocks, but the ports are cut: nothing of it has an effect.
                node.kill()
                running.cancel()
                killed.cancel()
            self.kills += 1

    def _coordinator(self, node: Node) -> Coordinator:
        async def open_frontier(job: Job) -> OpenJob:
            both: Any = _Cut(_Announced(self.frontier(job), self), node)
            return OpenJob(job, both, both)

        parts = CoordinatorParts(
            leadership=_Cut(self.watched, node),  # type: ignore[arg-type]
            jobs=_Cut(self.jobs, node),  # type: ignore[arg-type]
            open_frontier=open_frontier,
            hooks=_Hooks(node),
            clock=_CutClock(node),
            chance=random.Random(self.chance.random()),
            emit=lambda event: None,
        )
        return Coordinator(node.name, [self.config], parts, CoordinatorPolicy())


class _Watched:
    """The server's side of leadership, with everything noted that it does."""

    def __init__(self, night: _Night) -> None:
        self._night = night
        self._real = night.leadership

    async def campaign(self, election: str, candidate: str) -> Term:
        term = await self._real.campaign(election, candidate)
        if (term.epoch, term.holder) not in self._night.epochs:
            self._night.epochs.append((term.epoch, term.holder))
        return term

    async def start(self, term: Term, tick: Tick, rules: LaneRules, version: str = "") -> Job | None:
        job = await self._real.start(term, tick, rules, version)
        if job is not None:
            self.note_start(tick, job)
        return job

    def note_start(self, tick: Tick, job: Job) -> None:
        if (tick.at, job.id) not in self._night.started:
            self._night.started.append((tick.at, job.id))
        self._night.dealt_with.setdefault(tick.at, self._night.now())

    async def skip(self, term: Term, tick: Tick) -> None:
        await self._real.skip(term, tick)
        self._night.dealt_with.setdefault(tick.at, self._night.now())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _Announced:
    def __init__(self, frontier: Client, night: _Night) -> None:
        self._frontier = frontier
        self._night = night

    async def announce_finish(self) -> bool:
        told = await self._frontier.announce_finish()
        self._night.announced[self._frontier.job.id] += told
        return told

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frontier, name)


class _Cut:
    """A port, as a node that may die sees it."""

    def __init__(self, port: Any, node: Node) -> None:
        self._port = port
        self._node = node

    async def close(self) -> None:
        """Other coordinators and the fleet go on with it."""

    async def all_lanes(self) -> AsyncIterator[Any]:
        """Its pages as one call: each may fail like it."""

        async def pages() -> list[Any]:
            return [page async for page in self._port.all_lanes()]

        for page in await self._call("all_lanes", pages):
            yield page

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name, getattr(self._port, name))

    async def _call(self, name: str, method: Any, *arguments: Any, **options: Any) -> Any:
        if self._node.killed.is_set():
            # Only what cleans up comes here: a killed process would not.
            raise FrontierUnreachable("killed")
        return await self._node.call(
            name, lambda: method(*arguments, **options), lambda: FrontierUnreachable("no answer")
        )


class _CutClock:
    def __init__(self, node: Node) -> None:
        self._node = node

    def now(self) -> Seconds:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: Seconds) -> None:
        await asyncio.sleep(seconds)
        await self._node.alive()


class _Hooks:
    def __init__(self, node: Node) -> None:
        self._clock = _CutClock(node)

    async def seed(self, job: Job, opened: OpenJob, is_leader: IsLeader, report: Callable[[str], None]) -> None:
        both: Any = opened.frontier
        feed = SeedFeed(both, self._clock, high_water=SEEDS, is_leader=is_leader, report=report)
        seeds = [task(f"https://shop.example/{number}") for number in range(SEEDS)]
        for first in range(0, SEEDS, BATCH):
            await feed.put(seeds[first : first + BATCH])

    async def conclude(self, job: Job) -> None:
        return

    async def follow_up(self, job: Job, opened: OpenJob) -> None:
        return

    async def maintain(self, now: Moment) -> None:
        return


def start_in_two_steps(night: _Night) -> None:
    """A planted bug: start the job, then remember the tick."""
    real, watched = night.leadership, night.watched

    async def start(term: Term, tick: Tick, rules: LaneRules, version: str = "") -> Job:
        job = await night.jobs.start(term.election, rules, version)
        watched.note_start(tick, job)
        await asyncio.sleep(0.1)
        await real.skip(term, msgspec.structs.replace(tick, job=job.id))
        return job

    watched.start = start  # type: ignore[method-assign]


def _ticks(config: SpiderConfig, since: Moment, until: Moment) -> list[Moment]:
    assert config.schedule is not None
    found, at = [], since
    while (at := schedules.upcoming(config.schedule, at)) <= until:
        found.append(at)
    return found


def _forgo_the_disk(opened: Any) -> None:
    """Nobody pulls this plug: without waiting for the disk a night takes a tenth of the time."""
    connection = opened._file.db.connection if hasattr(opened, "_file") else opened._db.connection
    connection.execute("PRAGMA synchronous = OFF")
