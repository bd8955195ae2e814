"""Jobs that have ended are cleared away, by whoever comes next, a few at a time; others only by name."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.postgres_servers import ask

from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import parse
from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.errors import FrontierGone
from trotline.model.job import Job, State
from trotline.model.lease import Settlement
from trotline.model.outcome import Bury, Done
from trotline.testing.clients import postgres_client, redis_client, sqlite_client
from trotline.testing.clocks import ServerClock
from trotline.testing.frontier_contract import BRISK
from trotline.testing.frontier_contract.bench import steady, task, tasks
from trotline.testing.redis_server import DEBIAN, redis

DAY = 86_400.0


class SqlitePlace:
    def __init__(self, path: str) -> None:
        self.clock = ServerClock()
        self._path = path
        self.jobs = SqliteJobs(path, now=self.clock)

    async def frontier(self, job: Job) -> Any:
        return sqlite_client(self._path, job, now=self.clock)

    async def size(self) -> int:
        """Rows of all tables that know of jobs."""
        with sqlite3.connect(self._path) as db:
            names = ["job", "task", "seen", "lane", "tally", "reject", "worker", "example", "upgrade", "step", "note"]
            return sum(db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names)  # noqa: S608

    async def close(self) -> None:
        await self.jobs.close()


class RedisPlace:
    def __init__(self, url: str) -> None:
        self.clock = ServerClock()
        self._url = url
        self.jobs = RedisJobs(connect(url), now=self.clock)

    async def frontier(self, job: Job) -> Any:
        return redis_client(connect(self._url), job, now=self.clock)

    async def size(self) -> int:
        """Keys that belong to a job, but for what goes by itself, and for who is told that a lane is free again."""
        client: Any = connect(self._url)
        names = await client.keys("trotline:*")
        await client.aclose()
        beside = (b":put:", b"{jobs}", b":rest")
        return len([name for name in names if not any(word in name for word in beside)])

    async def close(self) -> None:
        await self.jobs.close()


class PostgresPlace:
    def __init__(self, url: str) -> None:
        self.clock = ServerClock()
        self._url = url
        self.jobs = PostgresJobs(self._database())

    async def frontier(self, job: Job) -> Any:
        return await postgres_client(self._database(), job)

    async def size(self) -> int:
        """Rows of all tables, but for those that jobs share."""
        tables = await ask(self._url, "SELECT tablename FROM pg_tables WHERE schemaname = $1", parse(self._url).schema)
        shared = {"meta", "pace", "pool", "pool_member", "ring", "identity", "office", "tick"}
        mine = [name for (name,) in tables if name not in shared]
        counts = [await ask(self._url, f"SELECT count(*) FROM {{s}}.{name}") for name in mine]  # noqa: S608
        return sum(count for [(count,)] in counts) + len(mine)

    async def close(self) -> None:
        await self.jobs.close()

    def _database(self) -> Database:
        return Database(parse(self._url), now=self.clock)


Place = SqlitePlace | RedisPlace | PostgresPlace


@pytest.fixture(params=["sqlite", "redis", "postgres"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    if request.param == "sqlite":
        opened: Place = SqlitePlace(str(tmp_path / "frontier.db"))
        yield opened
        await opened.close()
    elif request.param == "postgres":
        opened = PostgresPlace(request.getfixturevalue("anywhere"))
        yield opened
        await opened.close()
    else:
        with redis(DEBIAN) as running:
            opened = RedisPlace(running.url)
            yield opened
            await opened.close()


async def busy(place: Place, *, end: str = "") -> Job:
    """A job with tasks in every state, and lanes, and more."""
    job = await place.jobs.start("shop", BRISK)
    frontier = await place.frontier(job)
    await frontier.put(tasks(20))
    await frontier.put([task("https://late.example/", lane="late.example", not_before=place.clock() + 1000)])
    await frontier.put([task(f"https://chain.example/{n}", lane="late.example", chain=f"{n % 2}") for n in range(9)])
    leases = await frontier.lease("w", 9)
    await frontier.settle("w", [Settlement(each, Bury("odd")) for each in leases[:3]])
    await frontier.settle("w", [Settlement(each, Done()) for each in leases[3:6]])
    await frontier.seal()
    assert await frontier.write_note("summary", b"{}", 0)
    if end == "cancelled":
        await frontier.steer(State.CANCELLED)
    elif end == "finished":
        await frontier.settle("w", [Settlement(each, Done()) for each in leases[6:]])
        place.clock.jump(2000.0)
        while more := await frontier.lease("w", 100):
            await frontier.settle("w", [Settlement(each, Done()) for each in more])
        assert await frontier.finished()
    await frontier.close()
    return job


@pytest.mark.parametrize("end", ["", "cancelled", "finished"])
async def test_nothing_is_left_of_a_job_that_is_forgotten(place: Place, end: str) -> None:
    first = await busy(place)
    before = await place.size()
    second = await busy(place, end=end)
    assert await place.size() > before

    await place.jobs.forget(second.id)

    assert await place.size() == before
    assert [job.id for job in await place.jobs.all()] == [first.id]


@pytest.mark.parametrize("end", ["cancelled", "finished"])
async def test_a_job_that_ended_long_ago_retires(place: Place, end: str) -> None:
    old = await busy(place, end=end)
    running = await busy(place)
    newest = await busy(place, end=end)
    assert await place.jobs.retire(14 * DAY) == []

    place.clock.jump(15 * DAY)

    assert await place.jobs.retire(14 * DAY) == [old.id]
    assert await place.jobs.retire(14 * DAY) == []
    assert [job.id for job in await place.jobs.all()] == [running.id, newest.id]


async def test_a_cancelled_job_is_kept_from_when_it_was_cancelled(place: Place) -> None:
    job = await busy(place)
    await busy(place)
    place.clock.jump(15 * DAY)
    frontier = await place.frontier(job)
    await frontier.steer(State.CANCELLED)
    await frontier.close()

    assert await place.jobs.retire(14 * DAY) == []
    place.clock.jump(15 * DAY)
    assert await place.jobs.retire(14 * DAY) == [job.id]


async def test_a_call_retires_no_more_than_it_may(place: Place) -> None:
    old = [await busy(place, end="cancelled") for _ in range(5)]
    place.clock.jump(15 * DAY)

    rounds = [await place.jobs.retire(14 * DAY, most=2) for _ in range(3)]

    assert [len(names) for names in rounds] == [2, 2, 0]
    assert [name for names in rounds for name in names] == [job.id for job in old[:4]]


async def test_a_worker_of_a_forgotten_job_is_told(place: Place) -> None:
    await busy(place)
    job = await busy(place)
    frontier = await place.frontier(job)
    await place.jobs.forget(job.id)

    with pytest.raises(FrontierGone):
        await frontier.lease("w", 1)
    with pytest.raises(FrontierGone):
        await frontier.put(tasks(1))
    await frontier.close()


async def test_n3_the_notes_of_a_forgotten_job_are_gone_and_none_is_written_any_more(
    place: Place,
) -> None:
    await busy(place)
    job = await busy(place)
    frontier = await place.frontier(job)
    before = await place.size()
    await place.jobs.forget(job.id)
    assert await frontier.read_notes(["summary"]) == [None]
    left = await place.size()

    for version in (0, 1):
        with pytest.raises(FrontierGone):
            await frontier.write_note("summary", b"late", version)

    assert await place.size() == left < before
    await frontier.close()


async def test_what_a_forgotten_job_held_stands_in_no_other_jobs_way(place: Place) -> None:
    """The lane has one place for all jobs, and the job that goes has it."""
    rules = steady(concurrency=1)
    stays, goes = await place.jobs.start("shop", rules), await place.jobs.start("shop", rules)
    first, second = await place.frontier(stays), await place.frontier(goes)
    for frontier in (first, second):
        await frontier.put(tasks(1))
    assert len(await second.lease("v", 1)) == 1
    assert await first.lease("w", 1) == []

    await place.jobs.forget(goes.id)
    place.clock.jump(1.0)

    assert len(await first.lease("w", 1)) == 1
    await first.close()
    await second.close()
