"""What a leader does, on real books and a virtual clock."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trotline.adapters.sqlite.database import Database
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.leadership import SqliteLeadership
from trotline.adapters.sqlite.proxy_pools import SqliteProxyPools
from trotline.coordinator.alert_watch import AlertPlan
from trotline.coordinator.coordinator import Coordinator
from trotline.coordinator.frontier_watch import FrontierWatch
from trotline.coordinator.parts import CoordinatorEvent, CoordinatorParts, CoordinatorPolicy, SpiderConfig
from trotline.errors import FrontierUnreachable, SinkUnreachable, SpiderRefused
from trotline.model.job import Job, State
from trotline.model.leadership import Term
from trotline.model.lease import Settlement
from trotline.model.outcome import Done
from trotline.model.proxy_pool import MemberResult
from trotline.model.schedule import Overlap, Schedule
from trotline.ports.backend import OpenJob
from trotline.testing.clients import sqlite_client
from trotline.testing.clocks import MORNING
from trotline.testing.frontier_contract import BRISK, Client, tasks
from trotline.testing.frontier_contract.pool_bench import POOL, VIA_POOL, pool_with, through, visit
from trotline.testing.virtual_time import run_virtual

MINUTELY = Schedule("* * * * *")


class LoopClock:
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class World:
    """A file, its coordinators, and what they said."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "frontier.db")
        self.said: list[CoordinatorEvent] = []
        self.trouble: list[Exception] = []
        """What the next deeds of the author's seeds or of the sink raise."""
        self.concluded: list[str] = []
        self.maintained = 0
        self.seeds = 10
        self._opened: list[Any] = []
        self._running: list[asyncio.Task[None]] = []

    def now(self) -> float:
        return MORNING + asyncio.get_running_loop().time()

    def open(self, kind: Any, *arguments: Any) -> Any:
        self._opened.append(kind(self.path, *arguments, now=self.now, inline=True))
        return self._opened[-1]

    @property
    def jobs(self) -> SqliteJobs:
        return self.open(SqliteJobs)

    def frontier(self, job: Job) -> Client:
        self._opened.append(sqlite_client(self.path, job, now=self.now, inline=True))
        return self._opened[-1]

    def texts(self, event: str) -> str:
        return "; ".join(each.text for each in self.said if each.event == event)

    async def proxy_pools(self) -> SqliteProxyPools:
        self._opened.append(SqliteProxyPools(Database(self.path, now=self.now, inline=True)))
        return self._opened[-1]

    def coordinate(
        self,
        name: str = "ann",
        schedule: Schedule | None = MINUTELY,
        during: str = "",
        leadership: Any = None,
        frontier_watch: Any = None,
        **policy: Any,
    ) -> "asyncio.Task[None]":
        async def open_frontier(job: Job) -> OpenJob:
            return sqlite_client(self.path, job, now=self.now, inline=True).opened

        parts = CoordinatorParts(
            leadership=leadership or self.open(SqliteLeadership),
            jobs=self.jobs,
            open_frontier=open_frontier,
            hooks=self,
            clock=LoopClock(),
            chance=random.Random(1),
            emit=self.said.append,
            open_proxy_pools=self.proxy_pools,
            frontier_watch=frontier_watch,
        )
        config = SpiderConfig(spider="shop", rules=BRISK, version="v1", schedule=schedule, during=during)
        task = asyncio.create_task(Coordinator(name, [config], parts, CoordinatorPolicy(**policy)).run())
        self._running.append(task)
        return task

    # What the coordinator does through us

    async def seed(self, job: Job, opened: OpenJob, is_leader: Any, report: Any) -> None:
        if self.trouble:
            raise self.trouble.pop(0)
        await opened.frontier.put(tasks(self.seeds))

    async def conclude(self, job: Job) -> None:
        if self.trouble:
            raise self.trouble.pop(0)
        self.concluded.append(job.id)

    async def maintain(self, now: float) -> None:
        self.maintained += 1

    # What tests do

    async def work(self, job: Job, limit: int = 1000) -> None:
        frontier = self.frontier(job)
        leases = await frontier.lease("worker", limit)
        await frontier.settle("worker", [Settlement(lease, Done(), tallies={"records": 1}) for lease in leases])
        await frontier.leave("worker")

    def events(self, *names: str) -> list[str]:
        return [news.event for news in self.said if not names or news.event in names]

    def text(self, event: str) -> str:
        return next(news.text for news in self.said if news.event == event)

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for opened in self._opened:
            await opened.close()


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., World]:
    """Play a scene on virtual time; the world it left."""

    def play(scene: Any) -> World:
        async def whole() -> World:
            world = World(tmp_path)
            try:
                await scene(world)
            finally:
                await world.close()
            return world

        return run_virtual(whole())

    return play


async def soon(world: World, count: int = 1) -> Job:
    """The job of the first tick, when it is seeded."""
    while len(world.events("job.seeded", "job.trouble")) < count:  # noqa: ASYNC110 - virtual time costs nothing
        await asyncio.sleep(1)
    job = await world.jobs.latest("shop")
    assert job is not None
    return job


def test_one_leads_and_the_other_says_so_once(play):
    async def scene(world):
        world.coordinate("ann", schedule=None)
        await asyncio.sleep(1)
        world.coordinate("bob", schedule=None)
        await asyncio.sleep(300)

    world = play(scene)

    first, second = (news.text for news in world.said)
    assert first.startswith("leading (term 1); no schedule")
    assert second == "ann leads (term 1); standing by"


def test_who_is_asked_to_stop_resigns_and_the_other_leads_within_seconds(play):
    async def scene(world):
        leader = world.coordinate("ann", schedule=None)
        await asyncio.sleep(1)
        world.coordinate("bob", schedule=None)
        await asyncio.sleep(10)
        leader.cancel()
        await asyncio.sleep(7)

    assert play(scene).said[-1].text.startswith("leading (term 2)")


def test_a_tick_starts_a_job_seeds_it_and_tells_its_end(play):
    async def scene(world):
        world.coordinate()
        world.job = await soon(world)
        world.seeded = await world.frontier(world.job).progress()
        await world.work(world.job)
        await asyncio.sleep(10)

    world = play(scene)

    assert (world.seeded.waiting, world.seeded.sealed, world.job.version) == (10, True, "v1")
    assert world.events()[:5] == ["coordinator.leads", "tick.next", "tick.started", "job.seeding", "job.seeded"]
    assert world.text("job.finished") == "shop-1 finished: 10 done, 0 dead"
    assert world.events("job.finished") == ["job.finished"]
    assert world.concluded == ["shop-1"]


def test_a_run_is_left_out_with_a_line_while_the_job_before_is_unfinished(play):
    async def scene(world):
        world.coordinate()
        await soon(world)
        await asyncio.sleep(150)
        world.all = await world.jobs.all()

    world = play(scene)

    assert [job.id for job in world.all] == ["shop-1"]
    assert world.events("tick.skipped") == ["tick.skipped"] * 2
    assert world.text("tick.skipped").endswith("shop-1 is not finished")


def test_a_run_that_waits_starts_when_the_job_before_is_finished(play):
    async def scene(world):
        world.coordinate(schedule=Schedule("* * * * *", "UTC", Overlap.WAIT))
        job = await soon(world)
        await asyncio.sleep(200)
        world.before = len(await world.jobs.all())
        await world.work(job)
        await asyncio.sleep(10)
        world.after = len(await world.jobs.all())

    world = play(scene)

    assert (world.before, world.after) == (1, 2), "what waited is one run"
    assert world.events("tick.waits") == ["tick.waits"]


def test_a_cancelled_job_stands_in_nobodys_way(play):
    async def scene(world):
        world.coordinate()
        await world.frontier(await soon(world)).steer(State.CANCELLED)
        await asyncio.sleep(65)
        world.all = await world.jobs.all()

    assert [job.id for job in play(scene).all] == ["shop-1", "shop-2"]


def test_a_schedule_that_was_changed_owes_nothing(play):
    async def scene(world):
        first = world.coordinate(schedule=Schedule("0 0 1 1 *"))
        await asyncio.sleep(5)
        first.cancel()
        await asyncio.sleep(40 * 60)
        world.coordinate(schedule=Schedule("*/30 * * * *"))
        await asyncio.sleep(60)
        world.all = await world.jobs.all()

    world = play(scene)

    # MORNING is 15:06:40: the tick at 15:30 was before this schedule began.
    assert [] == world.all


def test_seeds_that_fail_are_tried_again(play):
    async def scene(world):
        world.trouble = [SpiderRefused("no such file"), ZeroDivisionError("in the author's code")]
        world.coordinate()
        job = await soon(world, 3)
        world.progress = await world.frontier(job).progress()

    world = play(scene)

    assert (world.progress.waiting, world.progress.sealed) == (10, True)
    assert any("ZeroDivisionError: in the author's code" in news.text for news in world.said)


def test_seeds_that_never_work_do_not_stand_in_the_way_of_the_next_run(play):
    async def scene(world):
        world.trouble = [SpiderRefused("no such file")] * 3
        world.coordinate()
        await soon(world, 3)
        await asyncio.sleep(120)
        world.all = await world.jobs.all()

    world = play(scene)

    assert world.all[0].announced
    assert len(world.all) > 1
    assert "empty run" in world.text("alert.raised")


def test_a_job_is_not_sealed_because_the_server_was_away_while_it_was_seeded(play):
    async def scene(world):
        world.trouble = [FrontierUnreachable("away") for _ in range(6)]
        world.coordinate()
        job = await soon(world, 6)
        world.before = await world.frontier(job).progress()
        await soon(world, 7)
        world.after = await world.frontier(job).progress()

    world = play(scene)

    assert (world.before.sealed, world.after.sealed, world.after.waiting) == (False, True, 10)


def test_the_end_is_told_only_when_the_sink_is_finished(play):
    async def scene(world):
        world.coordinate()
        job = await soon(world)
        world.trouble = [SinkUnreachable("the disk is full") for _ in range(3)]
        await world.work(job)
        await asyncio.sleep(7)
        world.early = world.events("job.finished")
        await asyncio.sleep(20)

    world = play(scene)

    assert (world.early, world.events("job.finished")) == ([], ["job.finished"])
    assert world.events("job.trouble") == ["job.trouble"], "said once, however often it is tried"


def test_a_job_that_was_revived_is_told_again(play):
    async def scene(world):
        world.coordinate(schedule=None)
        job = await world.jobs.start("shop", BRISK)
        frontier = world.frontier(job)
        await frontier.put(tasks(3))
        await frontier.seal()
        await frontier.steer(State.CANCELLED, "shop.example")
        await asyncio.sleep(10)
        await frontier.revive()
        await world.work(job)
        await asyncio.sleep(10)

    assert [news.text for news in play(scene).said if news.event == "job.finished"] == [
        "shop-1 finished: 0 done, 3 dead",
        "shop-1 finished: 3 done, 0 dead",
    ]


def test_what_a_dead_worker_held_goes_back_when_no_worker_is_left(play):
    async def scene(world):
        world.coordinate(schedule=None)
        job = await world.jobs.start("shop", BRISK)
        frontier = world.frontier(job)
        await frontier.put(tasks(5))
        await frontier.lease("dead", 5)
        await asyncio.sleep(40)
        world.progress = await frontier.progress()
        world.workers = await frontier.workers()

    world = play(scene)

    assert (world.progress.waiting, world.progress.leased) == (5, 0)
    assert [] == world.workers, "the coordinator is no worker"
    assert world.events("job.rescued") == ["job.rescued"]


def test_old_jobs_are_forgotten_and_the_sink_is_maintained(play):
    async def scene(world):
        for _ in range(3):
            await world.frontier(await world.jobs.start("shop", BRISK)).seal()
        world.coordinate(schedule=None, keep=500.0, retire_every=600.0)
        await asyncio.sleep(2 * 600 + 60)
        world.all = await world.jobs.all()

    world = play(scene)

    assert [job.id for job in world.all] == ["shop-3"]
    assert world.events("job.retired") == ["job.retired"] * 2
    assert world.maintained == 3


def test_an_alert_is_told_once_and_once_when_it_is_over(play):
    async def scene(world):
        world.coordinate(schedule=None)
        job = await world.jobs.start("shop", BRISK)
        frontier = world.frontier(job)
        await frontier.put(tasks(5))
        await asyncio.sleep(600)
        await world.work(job, 2)
        await asyncio.sleep(60)
        world.meanwhile = world.events("alert.over")
        await world.work(job, 1)
        await asyncio.sleep(60)

    world = play(scene)

    assert world.meanwhile == [], "two pages in five minutes may be the last ones"
    assert world.events("alert.raised", "alert.over") == ["alert.raised", "alert.over"]
    assert {"alert": "stalled job", "rule": "stalled"}.items() <= world.said[-1].data.items()


def test_a_cancelled_job_is_looked_at_once_more_and_again_when_it_is_resumed(play):
    async def scene(world):
        world.coordinate(schedule=None)
        job = await world.jobs.start("shop", BRISK)
        frontier = world.frontier(job)
        await frontier.put(tasks(5))
        await asyncio.sleep(400)
        await frontier.steer(State.CANCELLED)
        await asyncio.sleep(60)
        world.during = world.events("alert.raised", "alert.over", "alert.continues")
        await frontier.steer(State.RUNNING)
        await asyncio.sleep(400)

    world = play(scene)

    assert world.during == ["alert.raised", "alert.over"]
    assert world.events("alert.raised", "alert.over", "alert.continues") == [
        "alert.raised",
        "alert.over",
        "alert.raised",
    ]


def test_a_pool_without_a_free_proxy_is_an_alert_until_it_has_one(play):
    async def scene(world):
        pools = await world.proxy_pools()
        await pools.register(pool_with(1, 2, rest=1200.0))
        world.coordinate(schedule=None)
        job = await world.jobs.start("shop", BRISK)
        frontier = world.frontier(job)
        await frontier.put(through(5))
        for _ in range(2):
            await visit(frontier, MemberResult.BLOCKED)
        await asyncio.sleep(40)
        world.before = world.texts("alert.raised")
        await asyncio.sleep(350)
        world.during = world.texts("alert.raised")
        await pools.release(POOL, VIA_POOL)
        await frontier.lease("w", 1, pools=(POOL,))
        await asyncio.sleep(60)

    world = play(scene)

    assert "no proxy" not in world.before
    assert (
        "no proxy free (datacenter for shop.example): pool datacenter has no free proxy for shop.example"
        in world.during
    )
    over = [event.data["alert"] for event in world.said if event.event == "alert.over"]
    assert "no proxy free" in over


def test_who_only_looks_after_jobs_leaves_the_schedule_to_its_leader(play):
    async def scene(world):
        world.coordinate("start", schedule=None, during="start")
        await asyncio.sleep(1)
        world.coordinate("ann")
        await soon(world)
        await asyncio.sleep(30)

    world = play(scene)

    assert world.events("coordinator.leads") == ["coordinator.leads"] * 2
    assert world.events("job.seeding") == ["job.seeding"], "one of them seeds"


def test_who_only_looks_after_jobs_tells_their_end(play):
    async def scene(world):
        world.coordinate("start", schedule=None, during="start")
        await world.frontier(await world.jobs.start("shop", BRISK)).seal()
        await asyncio.sleep(10)

    assert play(scene).events("job.finished") == ["job.finished"]


def test_an_end_that_a_worker_has_told_is_noted_and_looked_at(play):
    async def scene(world):
        world.coordinate()
        job = await soon(world)
        frontier = world.frontier(job)
        leases = await frontier.lease("worker", 1000)
        await frontier.settle("worker", [Settlement(lease, Done()) for lease in leases])
        world.told = await frontier.announce_finish()
        await asyncio.sleep(10)

    world = play(scene)

    assert world.told
    assert world.events("job.finished", "job.over") == ["job.over"]
    assert "empty run" in world.text("alert.raised")


class Away(SqliteLeadership):
    """The leadership of a server that can be away."""

    away = False

    async def campaign(self, election: str, name: str) -> Term:
        if self.away:
            raise FrontierUnreachable("cannot reach the server")
        return await super().campaign(election, name)


@pytest.mark.parametrize("other", [True, False], ids=["stands by", "leads"])
def test_a_frontier_that_is_away_is_an_alert_of_every_coordinator(play, other):
    async def scene(world):
        if other:
            world.coordinate("ann", schedule=None)
            await asyncio.sleep(1)
        watch = FrontierWatch("redis://db", "host-1", ["shop"], AlertPlan(), LoopClock(), world.now)
        server = world.open(Away)
        world.coordinate("bob", schedule=None, leadership=server, frontier_watch=watch)
        await asyncio.sleep(30)
        server.away = True
        await asyncio.sleep(60)
        server.away = False
        await asyncio.sleep(60)

    world = play(scene)

    assert world.events("alert.raised", "alert.over") == ["alert.raised", "alert.over"]
    assert "frontier unreachable: cannot reach the server" in world.text("alert.raised")


@pytest.mark.parametrize("other", [True, False], ids=["stands by", "leads"])
def test_trouble_that_is_over_is_told_once(play, other):
    async def scene(world):
        if other:
            world.coordinate("ann", schedule=None)
            await asyncio.sleep(1)
        server = world.open(Away)
        world.coordinate("bob", schedule=None, leadership=server)
        await asyncio.sleep(30)
        server.away = True
        await asyncio.sleep(9)
        server.away = False
        await asyncio.sleep(300)

    world = play(scene)

    told = [news.text for news in world.said if news.event in ("coordinator.trouble", "coordinator.recovered")]
    assert told == ["cannot reach the server; retrying", "recovered from: cannot reach the server"]
