"""One leads, its successor's epoch is larger, and what it does late is refused."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from trotline.adapters.sqlite.frontier import SqliteFrontier
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.leadership import SqliteLeadership
from trotline.model.job import Job
from trotline.model.moments import Moment, Seconds
from trotline.testing.clocks import ServerClock
from trotline.testing.frontier_contract import task
from trotline.testing.leadership_contract import RULES, LeadershipContract, lead


class SqliteBench:
    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "frontier.db")
        self.clock = ServerClock()
        self._opened: list[Any] = []

    async def open(self) -> SqliteLeadership:
        self._opened.append(SqliteLeadership(self.path, now=self.clock))
        return self._opened[-1]

    async def jobs(self) -> SqliteJobs:
        self._opened.append(SqliteJobs(self.path, now=self.clock))
        return self._opened[-1]

    async def frontier(self, job: Job) -> SqliteFrontier:
        self._opened.append(SqliteFrontier(self.path, job, now=self.clock))
        return self._opened[-1]

    async def end(self, job: Job) -> None:
        await (await self.frontier(job)).seal()

    def jump(self, seconds: Seconds) -> None:
        self.clock.jump(seconds)

    def now(self) -> Moment:
        return self.clock()

    async def close(self) -> None:
        for opened in self._opened:
            await opened.close()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[SqliteBench]:
    bench = SqliteBench(tmp_path)
    yield bench
    await bench.close()


class TestSqliteLeadership(LeadershipContract):
    @pytest.fixture
    async def bench(self, tmp_path: Path) -> AsyncIterator[SqliteBench]:
        bench = SqliteBench(tmp_path)
        yield bench
        await bench.close()


async def test_nothing_of_a_retired_job_stays_in_the_file(bench: SqliteBench) -> None:
    leadership, jobs = await bench.open(), await bench.jobs()
    old = await jobs.start("shop", RULES)
    frontier = await bench.frontier(old)
    await frontier.put([task(f"https://shop.example/{number}") for number in range(12_000)])
    await frontier.cancel("shop.example")
    await bench.end(old)
    newest = await jobs.start("shop", RULES)
    kept = await bench.frontier(newest)
    await kept.put([task("https://shop.example/kept")])
    bench.jump(100)

    assert [old.id] == await leadership.retire(await lead(leadership), bench.now())

    counts = {
        table: jobs._db.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
        for table in ("job", "task", "seen", "lane", "retired")
    }
    assert {"job": 1, "task": 1, "seen": 1, "lane": 1, "retired": 0} == counts
