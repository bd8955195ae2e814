"""Alerts of coordinators: told once, and once when they are over."""

import asyncio

import pytest

from tests.unit.coordinator.conftest import LoopClock
from trotline.adapters.sqlite.console import SqliteConsole
from trotline.adapters.sqlite.leadership import SqliteLeadership
from trotline.coordinator.alert_watch import AlertPlan
from trotline.coordinator.frontier_outage_alert import FrontierWatch
from trotline.errors import FrontierUnreachable
from trotline.model.job import State
from trotline.model.leadership import Term
from trotline.model.proxy_pool import MemberResult
from trotline.testing.frontier_contract import BRISK, tasks
from trotline.testing.frontier_contract.pool_bench import POOL, VIA_POOL, pool_with, through, visit


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
        "no proxy free (datacenter for shop.example): all 2 proxies of pool datacenter rest for shop.example, first"
        in world.during
    )
    over = [event.data["alert"] for event in world.said if event.event == "alert.over"]
    assert "no proxy free" in over


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


def test_a_frontier_that_takes_no_writes_has_recovered_when_it_takes_one(play, monkeypatch):
    full = False
    write_note = SqliteConsole.write_note

    async def refused(self, *given):
        if full:
            raise FrontierUnreachable("the server is out of memory")
        return await write_note(self, *given)

    monkeypatch.setattr(SqliteConsole, "write_note", refused)

    async def scene(world):
        nonlocal full
        world.coordinate(schedule=None)
        job = await world.jobs.start("shop", BRISK)
        await world.frontier(job).put(tasks(5))
        await asyncio.sleep(30)
        full = True
        await asyncio.sleep(120)
        world.during = world.events("coordinator.trouble", "coordinator.recovered")
        full = False
        await asyncio.sleep(60)

    world = play(scene)

    assert world.during == ["coordinator.trouble"], "it answers questions, and takes nothing"
    told = [news.text for news in world.said if news.event in ("coordinator.trouble", "coordinator.recovered")]
    assert told == ["the server is out of memory; retrying", "recovered from: the server is out of memory"]


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
