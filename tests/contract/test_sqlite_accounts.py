"""Accounts in a frontier file: who waits for one is served without polling, and every end of a lease frees it."""

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator

import pytest
from tests.contract.conftest import SqliteFileBench, SqliteMemoryBench

from trotline.adapters.sqlite.frontier import SqliteFrontier
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.schema import FULL
from trotline.model.proxy_pool import lane_of
from trotline.rules.member_choice import OUT
from trotline.rules.pace import NEVER
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.account_histories import AccountHistory
from trotline.testing.frontier_contract.accounts import ANNA, API, BERT, BUYERS, CLEO, accounts, as_buyer, hold
from trotline.testing.frontier_contract.bench import SHOP
from trotline.testing.frontier_contract.pool_bench import give, members_of, register

OF_ANNA = f"{BUYERS}/anna"


@pytest.fixture
async def bench() -> AsyncIterator[SqliteFileBench]:
    bench = SqliteFileBench()
    yield bench
    await bench.close()


def database(client: Client) -> sqlite3.Connection:
    frontier = client.opened.frontier
    assert isinstance(frontier, SqliteFrontier)
    return frontier._file.db.connection


@pytest.mark.parametrize("seed", range(100, 110))
async def test_after_every_history_no_account_is_out(seed: int) -> None:
    bench = SqliteMemoryBench()
    try:
        lived = AccountHistory(bench, [await bench.open()], seed)
        await lived.live_through()
        db = database(lived.jobs[0])
        leased = db.execute("SELECT count(*), count(DISTINCT member) FROM task WHERE state = 2").fetchone()
        assert leased == db.execute("SELECT count(*), count(*) FROM identity WHERE place = ?", (OUT,)).fetchone()
        await lived.serve_all()

        assert db.execute("SELECT count(*) FROM identity WHERE place = ?", (OUT,)).fetchone() == (0,)
        assert db.execute("SELECT sum(running) FROM pool_member").fetchone() == (0,)
    finally:
        await bench.close()


@pytest.mark.parametrize("pool", [BUYERS, OF_ANNA])
async def test_a_worker_that_always_asks_first_shares_an_account_with_other_jobs(
    bench: SqliteFileBench, pool: str
) -> None:
    """The worker that settles asks at once; the other one polls the file."""
    hurried = await bench.open()
    patient = await bench.another_job()
    await register(bench, accounts(ANNA))
    await hurried.put(as_buyer(100))
    await patient.put(as_buyer(100, API, pool))
    of_hurried, of_patient = await hold(hurried, "hurried"), []
    visits = [0, 0]
    for _ in range(100):
        for lease in of_patient:
            await give(patient, lease, worker="patient")
        of_patient = await hold(patient, "patient")
        for lease in of_hurried:
            await give(hurried, lease, worker="hurried")
        of_hurried = await hold(hurried, "hurried")
        visits = [visits[0] + len(of_hurried), visits[1] + len(of_patient)]
        bench.jump(0.1)

    assert min(visits) >= 15, visits


async def test_an_account_for_which_no_lane_waits_goes_out_again_at_once(bench: SqliteFileBench) -> None:
    frontier = await bench.open()
    await register(bench, accounts(ANNA))
    await frontier.put(as_buyer(10) + as_buyer(1, API))
    for _ in range(11):
        [lease] = await frontier.lease("w", 1, pools=(BUYERS,))
        await give(frontier, lease)


async def test_a_lane_that_waits_for_an_account_does_not_poll(bench: SqliteFileBench) -> None:
    frontier = await bench.open()
    await register(bench, accounts(ANNA, BERT))
    await frontier.put(as_buyer(1) + as_buyer(1, API, OF_ANNA) + as_buyer(1, SHOP, OF_ANNA))
    assert members_of(await hold(frontier)) == [ANNA]
    [waiting] = database(frontier).execute("SELECT count(*) FROM lane WHERE waits = 1 AND state = ?", (FULL,))
    opened = frontier.opened.frontier
    assert isinstance(opened, SqliteFrontier)

    assert waiting == (2,)
    assert await opened._file.change(lambda turn: turn.next_wake((BUYERS,))) == NEVER


async def test_a_lane_of_an_account_that_is_in_no_pool_does_not_poll(bench: SqliteFileBench) -> None:
    frontier = await bench.open()
    await register(bench, accounts(ANNA, BERT))
    await frontier.put(as_buyer(1, pool=f"{BUYERS}/cleo"))
    assert await hold(frontier) == []
    opened = frontier.opened.frontier
    assert isinstance(opened, SqliteFrontier)

    assert await opened._file.change(lambda turn: turn.next_wake((BUYERS,))) == NEVER
    [view] = await (await bench.proxy_pools()).lanes(BUYERS)
    assert (view.lane, view.members) == (lane_of(SHOP, f"{BUYERS}/cleo"), 0)


async def test_a_waiting_call_of_another_job_returns_when_the_account_does(bench: SqliteFileBench) -> None:
    frontier = await bench.open()
    other = await bench.another_job()
    await register(bench, accounts(ANNA))
    await frontier.put(as_buyer(2))
    await other.put(as_buyer(1, API, OF_ANNA))
    [lease] = await hold(frontier)
    waiting = asyncio.create_task(other.lease("v", 1, wait=10.0, pools=(BUYERS,)))
    await asyncio.sleep(0.3)
    assert not waiting.done()

    await give(frontier, lease)
    began = time.monotonic()

    assert members_of(await waiting) == [ANNA]
    assert time.monotonic() - began < 2.0


async def test_an_account_of_a_job_that_is_forgotten_rests_and_then_is_free(bench: SqliteFileBench) -> None:
    """The worker that has it learns of this with its next call: its request may be under way."""
    frontier = await bench.open()
    await register(bench, accounts(ANNA, rest_of_dead=60.0))
    other = await bench.another_job()
    await other.put(as_buyer(2))
    await frontier.put(as_buyer(2, API))
    [lease] = await hold(other, "o")
    assert await hold(frontier) == []
    jobs = SqliteJobs(other.opened.frontier._file.db.path, now=bench.now)  # type: ignore[attr-defined]

    await jobs.forget(other.opened.job.id)
    await jobs.close()

    assert await hold(frontier) == []
    bench.jump(58.0)
    assert await hold(frontier) == []
    bench.jump(2.0)
    assert members_of(await hold(frontier)) == [lease.member]


async def test_a_task_that_cannot_be_read_keeps_no_account(bench: SqliteFileBench) -> None:
    frontier = await bench.open()
    await register(bench, accounts(ANNA))
    await frontier.put(as_buyer(1) + as_buyer(1, API))
    database(frontier).execute("UPDATE task SET body = x'00' WHERE id = 1")

    assert members_of(await frontier.lease("w", 5, wait=5.0, pools=(BUYERS,))) == [ANNA]


@pytest.mark.parametrize("ended", [True, False])
async def test_an_account_of_a_process_that_ended_on_this_host_does_not_rest(
    bench: SqliteFileBench, ended: bool
) -> None:
    frontier = await bench.open()
    await register(bench, accounts(ANNA, rest_of_dead=60.0))
    await frontier.put(as_buyer(2))
    assert len(await hold(frontier, "gone")) == 1
    name = "from trotline.adapters import host_process; print(host_process.process_name())"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", name, stdout=subprocess.PIPE)
    printed = (await process.communicate())[0].decode().strip()
    assert printed
    if ended:
        database(frontier).execute("UPDATE worker SET process = ? WHERE id = 'gone'", (printed,))
    bench.jump(20.0)

    assert members_of(await hold(frontier)) == [ANNA] * ended


async def test_an_account_that_is_removed_and_added_while_it_is_out_is_not_doubled(bench: SqliteFileBench) -> None:
    frontier = await bench.open()
    await register(bench, accounts(ANNA))
    await frontier.put(as_buyer(2) + as_buyer(2, API))
    [lease] = await hold(frontier)
    await register(bench, accounts(CLEO, version=2.0), accounts(ANNA, version=3.0))

    assert await hold(frontier) == []
    await give(frontier, lease)

    bench.jump(1.0)
    assert members_of(await hold(frontier)) == [ANNA]


async def test_a_file_without_accounts_gets_their_columns(bench: SqliteFileBench) -> None:
    frontier = await bench.open()
    path = frontier.opened.frontier._file.db.path  # type: ignore[attr-defined]
    with contextlib.closing(sqlite3.connect(path)) as old:
        old.execute("DROP INDEX lane_waits")
        for column in ("uses", "window_began", "state", "last_pace", "yield_until"):
            old.execute(f"ALTER TABLE pool_member DROP COLUMN {column}")
        for column in ("member", "waits"):
            old.execute(f"ALTER TABLE lane DROP COLUMN {column}")
        old.commit()

    again = await bench.again()
    await register(bench, accounts(ANNA))
    await again.put(as_buyer(1, pool=OF_ANNA))

    assert members_of(await hold(again)) == [ANNA]
