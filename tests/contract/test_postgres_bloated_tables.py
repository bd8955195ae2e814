"""Tables are rewritten beside an old snapshot (frontier/rewrite_bloated_tables.py), while everybody works."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.contract.postgres_frontiers import PostgresBench, WheelBench

from trotline.adapters.postgres.frontier import rewrite_bloated_tables
from trotline.adapters.postgres.frontier.rewrite_bloated_tables import HOT
from trotline.errors import FrontierUnreachable
from trotline.model.lease import Admission, Settled, Settlement
from trotline.model.outcome import Done, Retry
from trotline.testing.frontier_contract import Client, tasks
from trotline.testing.frontier_contract.bench import lease_all

TABLES = [hot.name for hot in HOT]


@pytest.fixture(params=[PostgresBench, WheelBench], ids=["15", "18"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[PostgresBench]:
    bench = request.param()
    yield bench
    await bench.close()


def _many(count: int, lanes: int) -> list:
    return [task for lane in range(lanes) for task in tasks(count // lanes, lane=f"h{lane}.example")]


async def _work_off(frontier: Client, worker: str, until: asyncio.Event) -> list[int]:
    """Leases and settles until nothing is left; the fingerprints of what was done."""
    done: list[int] = []
    while True:
        leases = await frontier.lease(worker, 7)
        if not leases and until.is_set() and (await frontier.progress()).waiting == 0:
            return done
        outcomes = [
            Retry(0, "once more") if lease.task.attempt == 0 and lease.token % 5 == 0 else Done() for lease in leases
        ]
        answers = await frontier.settle(worker, [Settlement(*pair) for pair in zip(leases, outcomes, strict=True)])
        assert set(answers) <= {Settled.OK}
        done += [lease.task.fingerprint for lease, how in zip(leases, outcomes, strict=True) if isinstance(how, Done)]


async def test_calls_beside_rotations_lose_nothing_and_see_whole_tables(bench: PostgresBench) -> None:
    frontier = await bench.open()
    given, until, rotations = _many(2400, 8), asyncio.Event(), 0
    database = bench.database()

    async def put() -> None:
        """Puts until some tables were rewritten meanwhile: on a busy machine that takes more tasks."""
        other = await bench.again()
        for first in range(0, len(given), 9):
            assert set(await other.put(given[first : first + 9])) == {Admission.NEW}
            if first >= 240 and rotations > 5:
                del given[first + 9 :]
                break
        until.set()

    async def look() -> None:
        seen = 0
        while not until.is_set():
            progress = await frontier.progress()
            assert seen <= progress.admitted <= len(given), "the books have a hole"
            seen = progress.admitted

    async def rotate() -> None:
        nonlocal rotations
        while not until.is_set():
            for table in TABLES:
                rotations += await rewrite_bloated_tables._rewrite(database, table)
                await asyncio.sleep(0.02)

    workers = [_work_off(await bench.again(), f"w{number}", until) for number in range(3)]
    _, _, _, *done = await asyncio.gather(put(), look(), rotate(), *workers)
    await database.close()

    assert rotations > 5, "they must have happened, or this proves nothing"
    assert sorted(fp for some in done for fp in some) == sorted(task.fingerprint for task in given)
    progress = await frontier.progress()
    assert (progress.done, progress.waiting, progress.leased) == (len(given), 0, 0)


async def test_a_rotation_that_dies_in_the_middle_changes_nothing(
    bench: PostgresBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    frontier = await bench.open()
    await frontier.put(_many(40, 4))
    held = await frontier.lease("w", 10)
    database = bench.database()

    async def dies(db, table):  # type: ignore[no-untyped-def]
        await db.execute(f"CREATE TEMPORARY TABLE aside ON COMMIT DROP AS SELECT * FROM {table}")  # noqa: S608
        await db.execute(f"TRUNCATE {table}")
        await db.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    monkeypatch.setattr(rewrite_bloated_tables, "_put_back", dies)
    for table in TABLES:
        with pytest.raises(FrontierUnreachable):
            await rewrite_bloated_tables._rewrite(database, table)
    await database.close()

    assert set(await frontier.settle("w", [Settlement(lease, Done()) for lease in held])) == {Settled.OK}
    assert len(await lease_all(frontier, "w")) == 30


async def test_a_look_that_has_begun_is_not_disturbed(bench: PostgresBench) -> None:
    await bench.open()
    database = bench.database()
    async with database.transaction(view=True) as look:
        assert await look.fetchval("SELECT count(*) FROM job") == 1
        assert not await rewrite_bloated_tables._rewrite(database, "counter")
        assert await look.fetchval("SELECT count(*) FROM counter") == 64
    assert await rewrite_bloated_tables._rewrite(database, "counter")
    await database.close()


async def test_a_table_that_a_dump_has_locked_is_left_alone(bench: PostgresBench) -> None:
    frontier = await bench.open()
    database = bench.database()
    dump = await asyncpg.connect(bench.place())
    async with dump.transaction(isolation="repeatable_read", readonly=True):
        await dump.execute(f"LOCK TABLE {database.address.quoted}.turn IN ACCESS SHARE MODE")
        assert not await rewrite_bloated_tables._rewrite(database, "turn")
        assert set(await frontier.put(tasks(5))) == {Admission.NEW}
        assert len(await lease_all(frontier, "w")) == 5
    await dump.close()
    await database.close()


async def test_what_vacuum_cannot_remove_is_dropped(bench: PostgresBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite_bloated_tables, "_FEW", 20)
    frontier = await bench.open()
    await frontier.put(_many(200, 2))
    database = bench.database()
    report = await asyncpg.connect(bench.place())
    try:
        async with report.transaction(isolation="repeatable_read", readonly=True):
            await report.fetchval("SELECT 1")
            rewritten: set[str] = set()
            async with asyncio.timeout(60):
                while "turn" not in rewritten:
                    for lease in await frontier.lease("w", 2):
                        await frontier.settle("w", [Settlement(lease, Retry(0, "again"))])
                    rewritten.update(await rewrite_bloated_tables.rotate(database, 1))
    finally:
        await report.close()
        await database.close()


async def test_without_an_old_snapshot_nothing_is_rewritten(
    bench: PostgresBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite_bloated_tables, "_FEW", 20)
    frontier = await bench.open()
    await frontier.put(_many(40, 2))
    database = bench.database()
    for _ in range(60):
        for lease in await frontier.lease("w", 2):
            await frontier.settle("w", [Settlement(lease, Retry(0, "again"))])
    # The server's figures of a session come within a second.
    await asyncio.sleep(1.5)
    await frontier.progress()

    assert await rewrite_bloated_tables.rotate(database, 1) == []
    await database.close()
