"""Proxy pools in a frontier file: every way in which a lease can end returns its member."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contract.conftest import SqliteMemoryBench

from trotline.adapters.sqlite.database import Database
from trotline.adapters.sqlite.frontier import SqliteFrontier
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.pool_ring import decode_ring
from trotline.adapters.sqlite.proxy_pools import SqliteProxyPools
from trotline.config import backends
from trotline.errors import SettingsError
from trotline.rules.member_choice import OUT
from trotline.testing.clients import sqlite_client
from trotline.testing.frontier_contract import BRISK, Client, tasks
from trotline.testing.frontier_contract.pool_bench import POOL, give, members_of, pool_with, take, through
from trotline.testing.frontier_contract.proxy_histories import history


@pytest.fixture
async def pools(tmp_path: Path) -> AsyncIterator[SqliteProxyPools]:
    pools = SqliteProxyPools(Database(str(tmp_path / "frontier.db")))
    yield pools
    await pools.close()


@pytest.fixture
async def frontier(tmp_path: Path) -> AsyncIterator[Client]:
    jobs = SqliteJobs(str(tmp_path / "frontier.db"))
    frontier = sqlite_client(str(tmp_path / "frontier.db"), await jobs.start("shop", BRISK))
    await jobs.close()
    yield frontier
    await frontier.close()


@pytest.mark.parametrize("seed", range(100, 108))
async def test_after_every_history_the_members_at_rest_and_in_the_ring_are_those_that_were_dealt(seed: int) -> None:
    bench = SqliteMemoryBench()
    try:
        await history(bench, seed, most=seed % 3)
        opened = (await bench.again()).opened.frontier
        assert isinstance(opened, SqliteFrontier)

        db = opened._file.db.connection

        assert db.execute("SELECT count(*) FROM identity WHERE place = ?", (OUT,)).fetchone() == (0,)
        assert db.execute("SELECT sum(running) FROM pool_member").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM task WHERE state <> 2 AND member IS NOT NULL").fetchone() == (0,)
        rings = db.execute("SELECT pace, state FROM ring").fetchall()
        assert len(rings) == 3
        for pace, state in rings:
            dealt = db.execute("SELECT member FROM pool_member WHERE seq <= ?", (decode_ring(state).dealt,)).fetchall()
            there = db.execute(
                "SELECT i.member FROM identity i JOIN pool_member m ON m.member = i.member WHERE i.pace = ?", (pace,)
            ).fetchall()
            assert sorted(dealt) == sorted(there)
            assert dealt
    finally:
        await bench.close()


async def test_a_task_that_cannot_be_read_keeps_no_member(
    tmp_path: Path, frontier: Client, pools: SqliteProxyPools
) -> None:
    await pools.register(pool_with(1))
    await frontier.put(through(2))
    with contextlib.closing(sqlite3.connect(tmp_path / "frontier.db")) as other:
        other.execute("UPDATE task SET body = x'00' WHERE id = 1")
        other.commit()

    assert members_of(await frontier.lease("w", 5, wait=5.0, pools=(POOL,))) == [1]


async def test_a_deleted_job_gives_its_members_back(tmp_path: Path, frontier: Client, pools: SqliteProxyPools) -> None:
    await pools.register(pool_with(1, 2))
    jobs = SqliteJobs(str(tmp_path / "frontier.db"))
    other = sqlite_client(str(tmp_path / "frontier.db"), await jobs.start("other", BRISK))
    await other.put(through(5))
    await frontier.put(through(5))
    assert members_of(await take(other, "o")) == [1, 2]
    assert await take(frontier) == []

    await jobs.forget(other.opened.job.id)

    assert members_of(await frontier.lease("w", 5, wait=5.0, pools=(POOL,))) != []
    await other.close()
    await jobs.close()


async def test_a_lane_without_a_pool_keeps_no_ring(frontier: Client, tmp_path: Path) -> None:
    await frontier.put(tasks(3))
    for lease in await frontier.lease("w", 3):
        await give(frontier, lease)

    with contextlib.closing(sqlite3.connect(tmp_path / "frontier.db")) as other:
        assert other.execute("SELECT count(*) FROM ring").fetchone() == (0,)


async def test_an_idle_worker_does_not_wake_up_for_lanes_of_pools_that_it_does_not_serve(
    frontier: Client, pools: SqliteProxyPools
) -> None:
    await pools.register(pool_with(1, interval=2.0))
    await frontier.put(through(3))
    [lease] = await take(frontier)
    await give(frontier, lease)
    assert await take(frontier) == [], "the lane rests until its member is due"

    opened = frontier.opened.frontier
    assert isinstance(opened, SqliteFrontier)
    wakes = await opened._file.change(lambda turn: [turn.next_wake(("",)), turn.next_wake((POOL,))])

    assert wakes[0] == float("inf")
    assert wakes[1] < float("inf")


async def test_registering_what_is_in_force_writes_nothing(tmp_path: Path, pools: SqliteProxyPools) -> None:
    await pools.register(pool_with(1, 2))
    with contextlib.closing(sqlite3.connect(tmp_path / "frontier.db")) as other:
        before = other.execute("PRAGMA data_version").fetchone()
        assert await pools.register(pool_with(1, 2))
        assert other.execute("PRAGMA data_version").fetchone() == before
        assert await pools.register(pool_with(1, 3))
        assert other.execute("PRAGMA data_version").fetchone() != before


async def test_pools_are_opened_by_the_url_of_a_frontier_and_memory_has_none(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'frontier.db'}"
    opened = await backends.open_proxy_pools(url)
    assert await opened.register(pool_with(1))
    assert await opened.lanes(POOL) == await opened.members(POOL, "a") == await opened.down(POOL) == []
    assert await opened.release(POOL, "shop.example via datacenter") == 0
    await opened.close()

    with pytest.raises(SettingsError, match="in memory") as refused:
        await backends.open_proxy_pools("sqlite::memory:")
    assert "sqlite:PATH" in refused.value.hint
