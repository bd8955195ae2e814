"""Jobs in PostgreSQL that another program damaged, and workers of jobs that are deleted meanwhile."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.contract.postgres_servers import ask

from trotline.adapters.postgres.frontier import delete_job
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import CONNECTIONS, parse
from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.config import backends
from trotline.errors import FrontierError, FrontierGone, FrontierTooNew
from trotline.model.job import LaneRules
from trotline.model.lease import Settlement
from trotline.model.outcome import Bury, Done
from trotline.testing.clients import postgres_client
from trotline.testing.frontier_contract import BRISK, tasks


@pytest.fixture
async def jobs(anywhere: str) -> AsyncIterator[PostgresJobs]:
    """With aa-1 and bb-2."""
    jobs = PostgresJobs(Database(parse(anywhere)))
    await jobs.start("aa", LaneRules())
    await jobs.start("bb", LaneRules())
    yield jobs
    await jobs.close()


DAMAGES = {
    "junk": "UPDATE {s}.job SET rules = '\\xff6a' WHERE id = 1 RETURNING id",
    "empty": "UPDATE {s}.job SET rules = '' WHERE id = 1 RETURNING id",
    "another object": "UPDATE {s}.job SET rules = '[1]' WHERE id = 1 RETURNING id",
    "a time that does not exist": "UPDATE {s}.job SET started_at = 'nan' WHERE id = 1 RETURNING id",
    "a time after the end of all calendars": "UPDATE {s}.job SET finished_at = 1e300 WHERE id = 1 RETURNING id",
    "no tables": "DROP TABLE {s}.waiting_1, {s}.late_1, {s}.seen_1",
    "a state that does not exist": "UPDATE {s}.job SET paused = 77 WHERE id = 1 RETURNING id",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_a_job_that_cannot_be_read_hides_no_other_and_can_be_forgotten(
    jobs: PostgresJobs, anywhere: str, damage: str
) -> None:
    await ask(anywhere, damage)

    assert "bb-2" in [job.id for job in await jobs.all()]
    assert set(jobs.unreadable()) <= {"aa-1"}
    await jobs.latest("aa")
    newest = await jobs.latest("bb")
    assert newest is not None and newest.id == "bb-2"
    assert await jobs.retire(0.0) == []

    await jobs.forget("aa-1")

    assert [job.id for job in await jobs.all()] == ["bb-2"]
    assert jobs.unreadable() == ()
    assert await jobs.latest("aa") is None


@pytest.mark.parametrize("alien", ["zz}*\n-9", "jöb", "a b", "\\x41"])
async def test_an_id_that_is_not_ours_hides_no_job_and_can_be_forgotten(
    jobs: PostgresJobs, anywhere: str, alien: str
) -> None:
    await ask(
        anywhere,
        "INSERT INTO {s}.job (name, spider, version, rules, started_at)"
        " SELECT $1, 'zz', '', rules, started_at FROM {s}.job WHERE id = 1 RETURNING id",
        alien,
    )

    assert [job.id for job in await jobs.all()] == ["aa-1", "bb-2"]
    [name] = jobs.unreadable()
    assert name.isascii() and name.isprintable()
    assert await jobs.latest("zz") is None

    await jobs.forget(name)

    assert [job.id for job in await jobs.all()] == ["aa-1", "bb-2"]
    assert jobs.unreadable() == ()


async def test_a_damaged_newest_job_leaves_the_one_before_as_the_latest(jobs: PostgresJobs, anywhere: str) -> None:
    await jobs.start("aa", LaneRules())
    await ask(anywhere, "UPDATE {s}.job SET rules = '' WHERE id = 3 RETURNING id")

    latest = await jobs.latest("aa")

    assert latest is not None and latest.id == "aa-1"


async def test_a_job_that_is_deleted_while_workers_are_busy_leaves_nothing(anywhere: str) -> None:
    """They lease, settle and put until they are told; no place of theirs stays taken."""
    jobs = PostgresJobs(Database(parse(anywhere)))
    goes, stays = await jobs.start("shop", BRISK), await jobs.start("shop", BRISK)
    clients = [await postgres_client(Database(parse(anywhere)), goes) for _ in range(3)]
    other = await postgres_client(Database(parse(anywhere)), stays)
    await other.put(tasks(3))
    await clients[0].put(tasks(600))

    async def work(name: str, client) -> None:
        number = 0
        with pytest.raises(FrontierGone):
            while True:
                held = await client.lease(name, 5)
                number += 1
                await client.put(tasks(5, lane=f"{name}{number}.example"))
                ends = [Settlement(each, Bury("odd") if number % 3 == 0 else Done()) for each in held[:4]]
                await client.settle(name, ends)

    working = [asyncio.create_task(work(f"w{number}", each)) for number, each in enumerate(clients)]
    await asyncio.sleep(0.5)
    await jobs.forget(goes.id)
    async with asyncio.timeout(30):
        await asyncio.gather(*working)
    await jobs.forget(goes.id)

    for table in ("lane", "turn", "held", "counter", "tally", "step", "worker", "idle"):
        assert await ask(anywhere, f"SELECT count(*) FROM {{s}}.{table} WHERE job = 1") == [(0,)], table  # noqa: S608
    assert await ask(anywhere, "SELECT sum(running) FROM {s}.pace") == [(0,)]
    assert len(await other.lease("w", 3)) == 3
    for each in (*clients, other, jobs):
        await each.close()


async def test_a_sweep_that_was_interrupted_is_gone_on_with(jobs: PostgresJobs, anywhere: str) -> None:
    database = Database(parse(anywhere))
    async with database.transaction() as db:
        await delete_job.unlist(db, [1])
    await database.close()
    assert [job.id for job in await jobs.all()] == ["bb-2"]

    await jobs.forget("aa-1")

    assert await ask(anywhere, "SELECT count(*) FROM {s}.retired") == [(0,)]
    assert await ask(anywhere, "SELECT count(*) FROM {s}.counter WHERE job = 1") == [(0,)]


async def test_tables_of_a_newer_trotline_are_left_alone(jobs: PostgresJobs, anywhere: str) -> None:
    await ask(anywhere, "UPDATE {s}.meta SET version = 99 RETURNING version")
    later = PostgresJobs(Database(parse(anywhere)))

    with pytest.raises(FrontierTooNew, match="99"):
        await later.all()
    await later.close()


async def test_one_that_opens_a_job_that_is_not_there_is_told(jobs: PostgresJobs, anywhere: str) -> None:
    [job, _] = await jobs.all()
    await jobs.forget(job.id)

    with pytest.raises(FrontierError):
        await postgres_client(Database(parse(anywhere)), job)


async def test_a_view_of_a_job_with_damaged_rows_says_what_to_do(jobs: PostgresJobs, anywhere: str) -> None:
    [job, _] = await jobs.all()
    client = await postgres_client(Database(parse(anywhere)), job)
    await client.put(tasks(2))
    await ask(anywhere, "UPDATE {s}.pace SET lane = '\\x00ff' RETURNING id")
    await ask(anywhere, "UPDATE {s}.job SET paused = 77 WHERE id = 1 RETURNING id")

    for look in (client.lanes, client.progress):
        with pytest.raises(FrontierError, match="aa-1") as caught:
            await look()
        assert "--forget aa-1" in caught.value.hint
    await client.close()


async def test_a_process_that_looks_at_many_jobs_has_few_connections(anywhere: str) -> None:
    url = f"{anywhere}&application_name=many_jobs"
    jobs = await backends.open_jobs(url)
    started = [await jobs.start("shop", BRISK) for _ in range(12)]
    opened = [await backends.open_frontier(url, job) for job in started]
    await asyncio.gather(*(each.console.progress() for each in opened))
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'many_jobs'"

    [(used,)] = await ask(anywhere, count)

    assert 1 <= used <= CONNECTIONS
    await jobs.close()
    for each in opened[1:]:
        await each.close()
    assert (await opened[0].console.progress()).waiting == 0, "the last one goes on"
    await opened[0].close()
    for _ in range(200):
        if await ask(anywhere, count) == [(0,)]:
            break
        await asyncio.sleep(0.05)
    assert await ask(anywhere, count) == [(0,)]


async def test_every_table_with_rows_of_jobs_is_cleared_with_them(jobs: PostgresJobs, anywhere: str) -> None:
    found = await ask(
        anywhere,
        "SELECT table_name FROM information_schema.columns"
        " WHERE table_schema = $1 AND column_name = 'job' AND data_type = 'integer'",
        parse(anywhere).schema,
    )

    assert {name for (name,) in found} == {*delete_job.TABLES, "held", "retired"}
