"""Lanes that a process knows: locked by their paces alone, which are written where they were locked."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.contract.postgres_frontiers import PostgresBench, WheelBench

from trotline.adapters.postgres.frontier import lane_cache
from trotline.adapters.postgres.frontier.combined_statement import composed
from trotline.adapters.postgres.frontier.job_store import JobStore
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.frontier.write_transaction import _lane_parts
from trotline.errors import FrontierError
from trotline.model.lease import Admission, Settled, Settlement
from trotline.model.outcome import Done
from trotline.testing.frontier_contract import Client, task, tasks

LANES = 300


@pytest.fixture(params=[PostgresBench, WheelBench], ids=["15", "18"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[PostgresBench]:
    bench = request.param()
    yield bench
    await bench.close()


async def _opened(bench: PostgresBench, frontier: Client) -> JobStore:
    store = JobStore(bench.database(), frontier.opened.job)
    await store.open()
    return store


async def _lock_all(tx: JobTransaction) -> None:
    await tx.lock_lanes([row[0] for row in await tx.db.fetch("SELECT id FROM lane")])


async def _locked(store: JobStore) -> dict[str, tuple[int, int]]:
    """The lanes as a transaction has them: name -> paused, waits."""

    async def step(tx: JobTransaction) -> dict[str, tuple[int, int]]:
        await _lock_all(tx)
        return {lane.name: (lane.paused, lane.waits) for lane in tx.lanes}

    return await store.change(step)


async def _known(store: JobStore) -> None:
    """The first look at a server is always a full one."""
    for _ in range(3):
        await _locked(store)


async def test_the_pace_of_a_known_lane_is_found_in_one_walk_and_written_in_place(bench: PostgresBench) -> None:
    frontier = await bench.open()
    await frontier.put([each for lane in range(LANES) for each in tasks(1, lane=f"h{lane}.example")])
    store = await _opened(bench, frontier)
    async with store.database.transaction(plans=True) as db:
        tx = JobTransaction(db, store)
        await _lock_all(tx)
        for lane in tx.lanes:
            lane.running += 1
        [part] = _lane_parts(tx)
        write = await db.fetch("EXPLAIN " + composed([part])[0], *composed([part])[1:])
        lock = await db.fetch("EXPLAIN " + lane_cache._LOCK, [1, 2], [1, 2])
    await store.database.close()

    assert any("Tid Scan on pace" in row[0] for row in write), write
    assert not any("Nested Loop" in row[0] for row in lock), lock


async def test_a_pace_that_is_written_twice_in_a_transaction_keeps_both_changes(bench: PostgresBench) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(1))
    store = await _opened(bench, frontier)

    async def step(tx: JobTransaction) -> None:
        await _lock_all(tx)
        for _ in range(2):
            [lane] = tx.lanes
            lane.running += 1
            await tx.flush()

    await store.change(step)
    async with store.database.transaction() as db:
        assert await db.fetchval("SELECT running FROM pace") == 2
    await store.database.close()


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
async def test_a_pace_that_another_wrote_while_we_waited_for_it_keeps_both_changes(
    bench: PostgresBench, known: bool
) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(1))
    first, second = await _opened(bench, frontier), await _opened(bench, frontier)
    if known:
        await _known(second)
    locked, waits = asyncio.Event(), asyncio.Event()

    async def visit(tx: JobTransaction) -> None:
        if tx.store is second:
            await locked.wait()
            waits.set()
        await _lock_all(tx)
        if tx.store is first:
            locked.set()
            await waits.wait()
            await asyncio.sleep(0.2)
        [lane] = tx.lanes
        lane.running += 1

    await asyncio.gather(first.change(visit), second.change(visit))
    async with first.database.transaction() as db:
        running = await db.fetchval("SELECT running FROM pace")
    await first.database.close()
    await second.database.close()
    assert running == 2


async def test_what_changes_about_a_known_lane_is_read_again(bench: PostgresBench) -> None:
    frontier = await bench.open()
    await frontier.put([*tasks(1, lane="a.example"), *tasks(1, lane="b.example")])
    store = await _opened(bench, frontier)
    await _known(store)
    async with store.database.transaction() as db:
        await db.execute("UPDATE lane SET paused = 2, waits = 1 WHERE name = 'b.example'")

    assert await _locked(store) == {"a.example": (0, 0), "b.example": (2, 1)}
    await store.database.close()


async def test_a_server_that_took_over_is_asked_for_its_lanes(
    bench: PostgresBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    frontier = await bench.open()
    await frontier.put([*tasks(1, lane="a.example"), *tasks(1, lane="b.example")])
    store = await _opened(bench, frontier)
    await _known(store)
    async with store.database.transaction() as db:
        # It lost both, and gave their ids to others.
        await db.execute("UPDATE lane SET name = replace(name, 'example', 'test')")
    assert set(await _locked(store)) == {"a.example", "b.example"}, "they are known, or this proves nothing"
    monkeypatch.setattr(
        lane_cache, "_LOCK", lane_cache._LOCK.replace("pg_postmaster_start_time()", "'2001-01-01'::timestamptz")
    )

    assert set(await _locked(store)) == {"a.test", "b.test"}
    await store.database.close()


async def test_lanes_of_a_transaction_that_failed_are_not_known(bench: PostgresBench) -> None:
    frontier = await bench.open()
    store = await _opened(bench, frontier)

    async def fails(tx: JobTransaction) -> None:
        await tx.lock_for([task("https://a.example/1")])
        raise asyncpg.CheckViolationError("on purpose")

    with pytest.raises(FrontierError):
        await store.change(fails, timed=True)

    assert not store.known._lanes
    assert not store.known._ids
    await store.database.close()


async def test_a_lane_stays_in_step_over_many_short_calls(bench: PostgresBench) -> None:
    frontier, other = await bench.open(), await bench.again()
    for number in range(6):
        client = frontier if number % 2 else other
        assert await client.put([task(f"https://shop.example/{number}")]) == [Admission.NEW]
        [lease] = await client.lease("w", 1)
        assert await client.settle("w", [Settlement(lease, Done())]) == [Settled.OK]

    database = bench.database()
    async with database.transaction() as db:
        running = await db.fetchval("SELECT sum(running) FROM pace")
    await database.close()
    assert running == 0
