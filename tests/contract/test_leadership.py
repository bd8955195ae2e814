"""One leads, its successor's epoch is larger, and what it does late is refused."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.postgres_servers import ask
from tests.contract.redis_servers import server

from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import parse
from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.adapters.postgres.frontier.leadership import PostgresLeadership
from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.leadership import RedisLeadership
from trotline.adapters.redis.scripts import script
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.leadership import SqliteLeadership
from trotline.model.job import Job, State
from trotline.model.leadership import Tick
from trotline.model.time import Moment, Seconds
from trotline.ports.leadership import TERM
from trotline.testing.clients import postgres_client, redis_client, sqlite_client
from trotline.testing.clocks import ServerClock
from trotline.testing.frontier_contract import Client, task
from trotline.testing.leadership_contract import RULES, LeadershipContract, lead
from trotline.testing.redis_server import BUILDS


class Opened:
    """What both benches have: a clock that can jump, and all that was opened, to close it."""

    def __init__(self) -> None:
        self.clock = ServerClock()
        self._opened: list[Any] = []

    async def frontier(self, job: Job) -> Client:
        raise NotImplementedError

    async def end(self, job: Job) -> None:
        await (await self.frontier(job)).seal()

    def jump(self, seconds: Seconds) -> None:
        self.clock.jump(seconds)

    def now(self) -> Moment:
        return self.clock()

    async def close(self) -> None:
        for opened in self._opened:
            await opened.close()


class SqliteBench(Opened):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.path = str(folder / "frontier.db")

    async def open(self) -> SqliteLeadership:
        self._opened.append(SqliteLeadership(self.path, now=self.clock))
        return self._opened[-1]

    async def jobs(self) -> SqliteJobs:
        self._opened.append(SqliteJobs(self.path, now=self.clock))
        return self._opened[-1]

    async def frontier(self, job: Job) -> Client:
        self._opened.append(sqlite_client(self.path, job, now=self.clock))
        return self._opened[-1]


class RedisBench(Opened):
    """One server for all tests; each begins with it empty."""

    def __init__(self, build: str) -> None:
        super().__init__()
        self.server = server(build)
        self.server.command("FLUSHALL")

    async def open(self) -> RedisLeadership:
        self._opened.append(RedisLeadership(connect(self.server.url), now=self.clock))
        return self._opened[-1]

    async def jobs(self) -> RedisJobs:
        self._opened.append(RedisJobs(connect(self.server.url), now=self.clock))
        return self._opened[-1]

    async def frontier(self, job: Job) -> Client:
        self._opened.append(redis_client(connect(self.server.url), job, now=self.clock))
        return self._opened[-1]


class PostgresBench(Opened):
    """A schema of its own for each test."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    async def open(self) -> PostgresLeadership:
        self._opened.append(PostgresLeadership(self._database()))
        return self._opened[-1]

    async def jobs(self) -> PostgresJobs:
        self._opened.append(PostgresJobs(self._database()))
        return self._opened[-1]

    async def frontier(self, job: Job) -> Client:
        self._opened.append(await postgres_client(self._database(), job))
        return self._opened[-1]

    def _database(self) -> Database:
        return Database(parse(self.url), now=self.clock)


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


class TestRedisLeadership(LeadershipContract):
    @pytest.fixture(params=BUILDS)
    async def bench(self, request: pytest.FixtureRequest) -> AsyncIterator[RedisBench]:
        bench = RedisBench(request.param)
        yield bench
        await bench.close()


class TestPostgresLeadership(LeadershipContract):
    @pytest.fixture
    async def bench(self, everywhere: str) -> AsyncIterator[PostgresBench]:
        bench = PostgresBench(everywhere)
        yield bench
        await bench.close()


@pytest.mark.parametrize("build", BUILDS)
async def test_nothing_of_a_retired_job_stays_on_the_server(build: str) -> None:
    bench = RedisBench(build)
    leadership, jobs = await bench.open(), await bench.jobs()
    term = await lead(leadership)
    first = await leadership.start(term, Tick(at=bench.now()), RULES)
    assert first is not None
    frontier = await bench.frontier(first)
    await frontier.put([task(f"https://shop.example/{number}") for number in range(3_000)])
    await frontier.steer(State.CANCELLED, "shop.example")
    await bench.end(first)
    bench.jump(1)
    await jobs.start("shop", RULES)

    assert [first.id] == await leadership.retire(await lead(leadership), bench.now())

    assert [] == await _left_of(first, leadership)
    await bench.close()


async def _left_of(job: Job, leadership: RedisLeadership) -> list[bytes]:
    """Its keys, but for those that go by themselves."""
    mine = [key for key in await leadership._server.ask("KEYS", "*") if job.id.encode() in key]
    return [key for key in mine if await leadership._server.ask("TTL", key) < 0]


@pytest.mark.parametrize("build", BUILDS)
async def test_clearing_away_that_was_interrupted_is_gone_on_with(build: str) -> None:
    bench = RedisBench(build)
    leadership, jobs = await bench.open(), await bench.jobs()
    old = await jobs.start("shop", RULES)
    await jobs.start("shop", RULES)
    await leadership._under_term("retire_jobs", await lead(leadership), old.id)

    assert [] == await leadership.retire(await lead(leadership), bench.now())

    assert [] == await _left_of(old, leadership)
    await bench.close()


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("lost", [1, 2])
async def test_a_start_whose_reply_was_lost_is_asked_again_and_its_job_can_be_worked_on(build: str, lost: int) -> None:
    bench = RedisBench(build)
    leadership, jobs = await bench.open(), await bench.jobs()
    term = await lead(leadership)
    _lose_reply(leadership, lost)

    job = await leadership.start(term, Tick(at=bench.now(), schedule="nightly"), RULES)

    assert job is not None
    assert [job] == await jobs.all()
    await (await bench.frontier(job)).put([task("https://shop.example/")])
    assert (await (await bench.frontier(job)).progress()).waiting == 1
    await bench.close()


def _lose_reply(leadership: RedisLeadership, which: int) -> None:
    """The server does what it is told, and its answer to this call of tick_start does not arrive."""
    really, start = leadership._server.client.execute_command, script("tick_start")
    calls = 0

    async def execute(*command: Any, **options: Any) -> Any:
        nonlocal calls
        answer = await really(*command, **options)
        mine = command[:2] in (("EVALSHA", start.sha), ("EVAL", start.text))
        calls += mine
        if mine and calls == which:
            raise ConnectionError("the line went dead")
        return answer

    leadership._server.client.execute_command = execute


@pytest.mark.parametrize("build", BUILDS)
async def test_by_the_servers_own_clock_a_term_lasts_fifteen_seconds(build: str) -> None:
    bench = RedisBench(build)
    leadership = RedisLeadership(connect(bench.server.url))

    term = await lead(leadership)

    assert term.lasts == pytest.approx(TERM)
    assert (await leadership.campaign("shop", "bob")).holder == "ann"
    await leadership.close()


async def test_nothing_of_a_retired_job_stays_in_the_file(bench: SqliteBench) -> None:
    leadership, jobs = await bench.open(), await bench.jobs()
    old = await jobs.start("shop", RULES)
    frontier = await bench.frontier(old)
    await frontier.put([task(f"https://shop.example/{number}") for number in range(12_000)])
    await frontier.steer(State.CANCELLED, "shop.example")
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


async def test_nothing_of_a_retired_job_stays_in_postgres(anywhere: str) -> None:
    bench = PostgresBench(anywhere)
    leadership, jobs = await bench.open(), await bench.jobs()
    old = await jobs.start("shop", RULES)
    frontier = await bench.frontier(old)
    for part in range(3):
        await frontier.put([task(f"https://shop.example/{part}/{number}") for number in range(4_000)])
    await frontier.steer(State.CANCELLED, "shop.example")
    await bench.end(old)
    newest = await jobs.start("shop", RULES)
    await (await bench.frontier(newest)).put([task("https://shop.example/kept")])
    bench.jump(100)

    assert [old.id] == await leadership.retire(await lead(leadership), bench.now())

    left = await ask(anywhere, "SELECT name FROM {s}.job UNION ALL SELECT name FROM {s}.lane WHERE job = 1")
    own = "SELECT relname FROM pg_class WHERE relnamespace = '{s}'::regnamespace AND relname ~ "
    tables = await ask(anywhere, f"{own} '^(waiting|late|chained|grave|seen)_1(_|$)'")
    assert (left, tables, await ask(anywhere, "SELECT job FROM {s}.retired")) == ([(newest.id,)], [], [])
    await bench.close()


async def test_by_the_clock_of_postgres_a_term_lasts_fifteen_seconds(everywhere: str) -> None:
    leadership = PostgresLeadership(Database(parse(everywhere)))

    term = await lead(leadership)

    assert term.lasts == pytest.approx(TERM)
    assert (await leadership.campaign("shop", "bob")).holder == "ann"
    await leadership.close()


async def test_a_leader_keeps_no_connection_of_postgres_for_its_term(anywhere: str) -> None:
    """A term is a row with an end, not a lock of a session, which a pooler would give to another client."""
    first, second = PostgresLeadership(Database(parse(anywhere))), PostgresLeadership(Database(parse(anywhere)))
    term = await lead(first)
    await first.close()

    assert (await second.campaign("shop", "bob")).holder == "ann"
    await second.skip(term, Tick(at=1.0))
    await second.close()
