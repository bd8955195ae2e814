"""What the frontier in PostgreSQL does when the server, a client or the schema is not as it should be."""

import asyncio
from pathlib import Path

import asyncpg
import pytest
from tests.contract.postgres_frontiers import PostgresBench, WheelBench

from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import parse
from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.errors import FrontierGone, FrontierTooNew, FrontierUnreachable, SettingsError
from trotline.model.lease import Admission, Settled, Settlement
from trotline.model.outcome import Bury, Done
from trotline.testing.clients import postgres_client
from trotline.testing.frontier_contract import BRISK, task, tasks
from trotline.testing.postgres_server import PASSWORD, WHEEL, postgres


@pytest.fixture
async def bench():
    bench = WheelBench()
    yield bench
    await bench.close()


async def test_a_server_that_crashes_is_unreachable_and_then_goes_on_with_what_was_acknowledged():
    with postgres(WHEEL) as server:
        database = Database(parse(server.url))
        jobs = PostgresJobs(Database(parse(server.url)))
        frontier = await postgres_client(database, await jobs.start("shop", BRISK))
        await frontier.put(tasks(10))
        before = frontier.generation
        held = await frontier.lease("w", 4)
        server.stop("immediate")

        with pytest.raises(FrontierUnreachable) as caught:
            await frontier.put([task("https://shop.example/late")])
        server.start()

        assert PASSWORD not in f"{caught.value} {caught.value.__cause__!r}"
        progress = await frontier.progress()
        assert progress.waiting + progress.leased == 10
        assert frontier.generation > before
        answers = await frontier.settle("w", [Settlement(lease, Done()) for lease in held])
        # A lease may be lost with the last moments before a crash, never a task.
        assert answers.count(Settled.OK) == (await frontier.progress()).done
        assert await frontier.put(tasks(10)) == [Admission.DUPLICATE] * 10
        await frontier.close()
        await jobs.close()


async def test_a_call_with_thousands_of_tasks_takes_no_ids_of_the_next_one(bench: PostgresBench):
    frontier = await bench.open()

    for first in range(0, 10_000, 5_000):
        given = [task(f"https://shop.example/{number}") for number in range(first, first + 5_000)]
        assert set(await frontier.put(given)) == {Admission.NEW}

    leases = [lease for _ in range(10) for lease in await frontier.lease("w", 1_000)]
    assert [lease.task.url for lease in leases] == [f"https://shop.example/{number}" for number in range(10_000)]


async def test_a_client_that_stops_in_the_middle_of_a_call_frees_its_lanes(bench: PostgresBench):
    bench.options = lambda: "&timeout=1s&prepare=yes"  # type: ignore[method-assign]
    frontier = await bench.open()
    await frontier.put(tasks(3))
    stopped = bench.database()
    with pytest.raises(FrontierUnreachable):
        async with stopped.transaction() as db:
            await db.fetch("SELECT id FROM pace FOR NO KEY UPDATE")
            began = asyncio.get_running_loop().time()
            assert len(await frontier.lease("w", 3, wait=20.0)) == 3, "the server ended the other transaction"
            assert asyncio.get_running_loop().time() - began > 1.0, "its lane was locked until then"
            await db.fetch("SELECT 1")
    await stopped.close()


async def test_a_schema_of_a_newer_version_is_refused(bench: PostgresBench):
    await bench.open()
    database = bench.database()
    async with database.transaction() as db:
        await db.execute("UPDATE meta SET version = 99")
    await database.close()

    with pytest.raises(FrontierTooNew, match="newer Trotline"):
        await bench.again()


async def test_a_job_that_was_forgotten_is_gone_for_its_workers(bench: PostgresBench):
    frontier = await bench.open()
    await frontier.put(tasks(3))
    held = await frontier.lease("w", 1)
    jobs = PostgresJobs(bench.database())
    await jobs.forget(frontier.opened.job.id)
    await jobs.close()

    for call in (
        frontier.put(tasks(5)),
        frontier.settle("w", [Settlement(held[0], Done(), children=(task("https://shop.example/child"),))]),
        frontier.lease("w", 1),
        frontier.finished(),
    ):
        try:
            answer = await call
        except FrontierGone:
            continue
        assert answer == [Settled.STALE]


async def test_calls_with_the_same_tasks_in_another_order_admit_each_once(bench: PostgresBench):
    clients = [await bench.open(), await bench.again(), await bench.again()]
    given = [each for lane in range(20) for each in tasks(10, lane=f"h{lane}.example")]

    answers = await asyncio.gather(
        clients[0].put(given), clients[1].put(given[::-1]), clients[2].put(given[100:] + given[:100])
    )

    assert sum(answer.count(Admission.NEW) for answer in answers) == len(given)
    assert (await clients[0].progress()).waiting == len(given)


async def test_odd_values_are_stored(bench: PostgresBench):
    frontier = await bench.open()

    assert await frontier.put([task("https://shop.example/far", priority=10**15)]) == [Admission.NEW]
    [lease] = await frontier.lease("w", 1)
    assert lease.task.priority == 10**15
    odd = task("https://shop.example/nul", lane="a\0b", chain="c\0")
    assert await frontier.put([odd, task("https://shop.example/2", lane="a\0b", chain="c\0")])
    [first] = await frontier.lease("w", 5)
    assert (first.task.lane, first.task.chain) == (odd.lane, odd.chain)
    assert await frontier.settle("w", [Settlement(first, Bury("why \0", "\ud800"), tallies={"\0": 1})]) == [Settled.OK]
    assert (await frontier.progress()).dead == 2, "the chain is one chain"


@pytest.mark.parametrize("option", ["freshness=6h", "visits=week", "shema=x", "prepare=maybe"])
def test_an_option_that_has_no_effect_is_refused(option: str):
    with pytest.raises(SettingsError, match="the frontier postgresql://db/shop"):
        parse(f"postgresql://u:{PASSWORD}@db/shop?{option}")


async def test_a_lease_survives_a_vacuum_in_the_background(bench: PostgresBench):
    frontier = await bench.open()
    await frontier.put(tasks(3))
    database = bench.database()
    await database.vacuum("turn")
    await database.close()

    assert len(await frontier.lease("w", 3)) == 3


async def test_the_message_of_a_server_that_does_not_exist_has_no_password():
    database = Database(parse(f"postgresql://u:{PASSWORD}@127.0.0.1:1/shop"))
    with pytest.raises(FrontierUnreachable, match="connection refused") as caught:
        async with database.transaction():
            pass
    assert PASSWORD not in str(caught.value)
    assert not isinstance(caught.value.__cause__, asyncpg.PostgresError)
    await database.close()


async def test_a_rotated_password_is_read_again_from_its_file(tmp_path: Path):
    """A worker that held the old one would be locked out until a person restarts it."""
    file = tmp_path / "password"
    file.touch(0o600)
    file.write_text(PASSWORD)
    with postgres(WHEEL) as server:
        database = Database(parse(f"{server.url.replace(f':{PASSWORD}@', '@')}?password=file:{file}"))
        async with database.transaction() as connection:
            await connection.execute("ALTER ROLE CURRENT_USER PASSWORD 'rotated-password'")
        server.stop()
        server.start()
        with pytest.raises(FrontierUnreachable, match="the server ended the connection"):
            async with database.transaction():
                pass
        with pytest.raises(FrontierUnreachable, match="authentication failed"):
            async with database.transaction():
                pass
        file.write_text("rotated-password")

        async with database.transaction() as connection:
            assert await connection.fetchval("SELECT 1") == 1
        await database.close()
