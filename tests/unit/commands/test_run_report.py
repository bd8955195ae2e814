"""What looking at a job costs those who work on it."""

import asyncio

import pytest

from trotline.adapters.sqlite.console import SqliteConsole
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.open_job import open_job
from trotline.cli.plain_views import facts
from trotline.commands import run_report
from trotline.commands.run_report import Reporter
from trotline.errors import FrontierUnreachable, SinkUnreachable
from trotline.model.job import LaneRules, LaneView
from trotline.model.lease import Settlement
from trotline.model.outcome import Bury, Done
from trotline.model.row_counts import Stored
from trotline.processes.signals import STOPPING
from trotline.testing.frontier_contract.bench import tasks


class ManyLanes(SqliteConsole):
    """A console that takes its time to say how its lanes are."""

    slow = 0.0
    asked = 0

    async def lanes(self, limit: int = 20) -> list[LaneView]:
        self.asked += 1
        await asyncio.sleep(self.slow)
        return await super().lanes(limit)


async def test_lanes_are_looked_at_for_a_twentieth_of_the_time_at_most(tmp_path):
    place = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(place)
    opened = open_job(place, await jobs.start("shop", LaneRules()))
    await opened.frontier.put(tasks(3))
    frontier = ManyLanes(opened.console._file)
    reporter = Reporter(opened._replace(console=frontier))

    frontier.slow = 0.05
    seen = [(await reporter.report()).lanes for _ in range(5)]
    assert frontier.asked == 1
    assert all(seen) and seen[0] == seen[-1]

    frontier.slow = 0.0
    # Few lanes are quickly told, and looked at again and again.
    async with asyncio.timeout(30):
        while frontier.asked < 3:
            await reporter.report()
            await asyncio.sleep(0.05)
    await opened.close()
    await jobs.close()


class Silent:
    """A sink whose server takes the question and does not answer, for as long as it is away."""

    new = 3

    def __init__(self) -> None:
        self.there = asyncio.Event()
        self.there.set()

    async def count(self, *, rows: bool = True) -> Stored:
        async with asyncio.timeout(60):
            await self.there.wait()
        return Stored(new=self.new)


class Refusing(Silent):
    """A sink whose server says at once that it is away."""

    async def count(self, *, rows: bool = True) -> Stored:
        if not self.there.is_set():
            raise SinkUnreachable("cannot count rows: nobody listens there", hint="Start it.")
        return Stored(new=self.new)


@pytest.mark.parametrize("kind", [Silent, Refusing])
async def test_rows_that_cannot_be_counted_now_are_not_told_as_if_they_were(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(run_report, "COUNT_WITHIN", 0.2)
    monkeypatch.setattr(run_report, "COUNT_EVERY", 0.01)
    place = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(place)
    frontier = open_job(place, await jobs.start("shop", LaneRules()))
    sink = kind()
    reporter = Reporter(frontier, sink=sink)

    async def counted(wanted: Stored | None) -> None:
        async with asyncio.timeout(20):
            while True:
                if (await reporter.report()).stored == wanted:
                    return
                await asyncio.sleep(0.02)

    await counted(Stored(new=3))
    sink.there.clear()
    await counted(None)
    sink.new = 5
    sink.there.set()
    # Soon: how long an answer did not come says nothing about what counting costs.
    await counted(Stored(new=5))
    await frontier.close()
    await jobs.close()


async def test_the_last_report_tells_what_held_the_waiting_tasks_back(tmp_path):
    place = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(place)
    opened = open_job(place, await jobs.start("shop", LaneRules()))
    await opened.frontier.put(tasks(2))
    reporter = Reporter(opened)

    await reporter.report("shop.example: 429, again in 14 s")
    await reporter.report("")
    assert (await reporter.last(STOPPING)).held_back == "shop.example: 429, again in 14 s"
    [lease] = await opened.frontier.lease("w", 1, wait=1.0)
    await opened.frontier.settle("w", [Settlement(lease, Done())])
    await reporter.report("")
    assert (await reporter.last(STOPPING)).held_back == "", "pages were read since then"
    await opened.close()
    await jobs.close()


async def test_after_a_revival_the_rate_is_unknown_and_never_negative(tmp_path):
    place = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(place)
    opened = open_job(place, await jobs.start("shop", LaneRules()))
    await opened.frontier.put(tasks(3))
    reporter = Reporter(opened)
    for outcome in (Done(), Bury("broken: it")):
        [lease] = await opened.frontier.lease("w", 1, wait=1.0)
        await opened.frontier.settle("w", [Settlement(lease, outcome)])
        await reporter.report()

    assert await opened.console.revive(why="broken") == 1
    after = await reporter.report()
    assert after.pages_per_second is None
    assert facts(after)["pages_per_second"] is None
    [lease] = await opened.frontier.lease("w", 1, wait=1.0)
    await opened.frontier.settle("w", [Settlement(lease, Done())])
    later = (await reporter.report()).pages_per_second
    assert later is not None and later > 0
    await opened.close()
    await jobs.close()


async def test_a_command_that_is_interrupted_during_an_outage_gives_the_last_known_counts(tmp_path, monkeypatch):
    place = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(place)
    opened = open_job(place, await jobs.start("shop", LaneRules()))
    await opened.frontier.put(tasks(3))
    reporter = Reporter(opened)
    await reporter.report()

    async def away(console):
        raise FrontierUnreachable("connection refused")

    monkeypatch.setattr(SqliteConsole, "progress", away)
    report = await reporter.parting()
    assert report.progress.waiting == 3
    assert report.held_back.startswith("frontier is unreachable: connection refused")

    shown = []
    showing = asyncio.create_task(reporter.show(shown.append, lambda: STOPPING))
    async with asyncio.timeout(10):
        while not shown:  # noqa: ASYNC110 - a list has no event
            await asyncio.sleep(0.01)
    showing.cancel()
    assert shown[0].held_back.startswith(f"{STOPPING}; frontier is unreachable"), "acknowledged at once"
    assert STOPPING not in (await reporter.parting()).held_back
    await opened.close()
    await jobs.close()
