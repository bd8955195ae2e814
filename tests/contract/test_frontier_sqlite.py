"""The embedded frontier keeps F1 to F21, in a file and in memory."""

import contextlib
import os
import random
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from tests.contract.conftest import SqliteFileBench, SqliteMemoryBench

from trotline.adapters import host_process
from trotline.adapters.sqlite import schema
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.errors import FrontierError
from trotline.model.job import State
from trotline.model.lease import Settlement
from trotline.model.outcome import Done
from trotline.ports.frontier import DEAD_AFTER
from trotline.testing.clients import sqlite_client
from trotline.testing.clocks import wild_wall_clock
from trotline.testing.frontier_contract import BRISK, FrontierContract, steady, task
from trotline.testing.frontier_machine import frontier_machine

HISTORIES = int(os.environ.get("TROTLINE_MACHINE_EXAMPLES", "40"))
BOUNDED = settings(
    max_examples=HISTORIES,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
"""More histories with TROTLINE_MACHINE_EXAMPLES=2000."""


class TestSqliteFile(FrontierContract):
    @pytest.fixture
    async def bench(self) -> AsyncIterator[SqliteFileBench]:
        bench = SqliteFileBench()
        yield bench
        await bench.close()


@pytest.mark.slow("the same code as the file")
class TestSqliteMemory(FrontierContract):
    gaps = {  # noqa: RUF012 - a ClassVar of the suite
        "f2_an_admitted_task_outlives_the_process_that_put_it": "a job in memory ends with its process",
        "f2_a_lease_outlives_the_process_that_took_it": "a job in memory ends with its process",
        "f13_jobs": "a memory has one job",
        "f11_a_job": "a memory has one job",
        "f5_the_places_of_a_job_whose_workers_all_died_come_back_to_the_others": "a memory has one job",
        "f12_a_lane_paused_in_one_job_runs_in_another": "a memory has one job",
        "f12_a_lane_paused_in_one_job_slows_no_other": "a memory has one job",
        "f12_a_paused_job_slows_no_other": "a memory has one job",
        "f18_robots_txt_of_one_job_holds_for_another": "a memory has one job",
        "a1_one_lease_at_a_time_over_all_lanes_jobs_and_workers": "a memory has one job",
        "a5_the_next_holder_reads_what_the_last_one_saved": "a memory has one job",
        "r2_a_job_that_waits_for_a_ban_to_end_gets_the_member_that_another_returns": "a memory has one job",
        "r2_jobs_share_the_members_of_a_lane": "a memory has one job",
        "r3_of_several_jobs_the_longest_interval_per_member_holds": "a memory has one job",
    }

    @pytest.fixture
    async def bench(self) -> AsyncIterator[SqliteMemoryBench]:
        bench = SqliteMemoryBench()
        yield bench
        await bench.close()


async def test_the_files_own_clock_does_not_follow_a_wall_clock_that_jumps(tmp_path: Path) -> None:
    path = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(path)
    job = await jobs.start("shop", BRISK)
    before = time.time()
    for skew in (7200.0, -7200.0):
        with wild_wall_clock(skew):
            frontier = sqlite_client(path, job, rng=random.Random(1))
            await frontier.put([task(f"https://shop.example/{skew}")])
            [lease] = await frontier.lease("w", 5)
            await frontier.close()

        assert abs(lease.leased_at - before) < 60
    await jobs.close()


async def test_a_worker_whose_process_has_certainly_ended_is_dead_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(path)
    job = await jobs.start("shop", BRISK)
    await jobs.close()
    frontier = sqlite_client(path, job)
    for name in ("here", "killed", "elsewhere", "kept"):
        await frontier.beat(name)
    here, boot = host_process.process_name(), host_process.boot()
    gone = f"{here.split('/')[0]}/{os.getpid()}/1"
    processes = {
        "here": here,
        "killed": f"{gone} kept by {gone}",
        # The same boot, as on this machine, and pids of another container.
        "elsewhere": f"{boot}.pid:[1]/{os.getpid()}/1",
        "kept": f"{gone} kept by {here}",
    }
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.executemany("UPDATE worker SET process = ? WHERE id = ?", [(its, name) for name, its in processes.items()])

    dead = {view.name: view.silent_for >= DEAD_AFTER for view in await frontier.workers()}
    await frontier.close()

    assert dead == {"here": False, "killed": True, "elsewhere": False, "kept": False}


async def test_a_file_from_before_workers_had_figures_goes_on_working(tmp_path: Path) -> None:
    path = str(tmp_path / "frontier.db")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as old:
        for statement in schema.TABLES.split(";"):
            old.execute(statement)
        old.execute(f"PRAGMA user_version = {schema.VERSION}")
        old.execute(
            "INSERT INTO job (name, spider, version, rules, started_at, paused) VALUES ('shop-1', 'shop', '', ?, 0, 1)",
            (msgspec.json.encode(BRISK),),
        )
        old.execute("INSERT INTO worker (job, id, seen_at, process) VALUES (1, 'old', 0, '')")

    jobs = SqliteJobs(path)
    [job] = await jobs.all()
    await jobs.close()
    for _ in range(2):
        frontier = sqlite_client(path, job)
        assert (await frontier.progress()).paused
        assert [view.name for view in await frontier.workers()] == ["old"]
        await frontier.close()
    frontier = sqlite_client(path, job)
    await frontier.steer(State.RUNNING)
    await frontier.put([task("https://shop.example/")])
    [lease] = await frontier.lease("new", 5)
    await frontier.settle("new", [Settlement(lease, Done())])

    assert [(view.name, view.done) for view in await frontier.workers()] == [("new", 1)], "the silent one was rescued"
    await frontier.close()


async def test_a_lease_of_an_older_version_is_in_flight_since_an_unknown_time(tmp_path: Path) -> None:
    path = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(path)
    frontier = sqlite_client(path, await jobs.start("shop", BRISK))
    await frontier.put([task("https://shop.example/old"), task("https://shop.example/new")])
    [old] = await frontier.lease("w", 1)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as older:
        older.execute("UPDATE task SET leased_at = NULL, starts_at = NULL")
    [new] = await frontier.lease("w", 1)

    found = await frontier.in_flight()

    assert [(each.url, each.leased_at) for each in found] == [(old.task.url, None), (new.task.url, new.leased_at)]
    await frontier.close()
    await jobs.close()


LONG = [pytest.mark.timeout(120 + 5 * HISTORIES), pytest.mark.slow("many random histories of calls")]

TestSqliteFileMachine = frontier_machine(SqliteFileBench).TestCase
TestSqliteFileMachine.settings = BOUNDED
TestSqliteFileMachine.pytestmark = LONG

TestSqliteMemoryMachine = frontier_machine(SqliteMemoryBench).TestCase
TestSqliteMemoryMachine.settings = BOUNDED
TestSqliteMemoryMachine.pytestmark = LONG


async def test_a_file_that_is_ready_is_opened_while_somebody_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be another connection of this process, which needs the loop to come to its end."""
    path = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(path)
    await jobs.start("shop", BRISK)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr("trotline.adapters.sqlite.database.BUSY", 0.1)

    again = SqliteJobs(path)

    assert [job.spider for job in await again.all()] == ["shop"]
    writer.close()
    await again.close()
    await jobs.close()


async def test_a_file_of_an_older_form_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "frontier.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as old:
        old.execute("CREATE TABLE job (id INTEGER PRIMARY KEY)")
        old.execute(f"PRAGMA user_version = {schema.VERSION - 1}")

    with pytest.raises(FrontierError, match="older Trotline") as refused:
        SqliteJobs(str(path))

    assert "--frontier sqlite:" in refused.value.hint


async def test_who_forgets_a_job_gives_its_places_back(tmp_path: Path) -> None:
    path = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(path)
    one, other = [sqlite_client(path, await jobs.start("shop", steady(concurrency=1))) for _ in range(2)]
    await one.put([task("https://shop.example/")])
    await other.put([task("https://shop.example/")])
    assert len(await one.lease("w", 1)) == 1
    assert await other.lease("v", 1) == []
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as forgetting:
        forgetting.execute("DELETE FROM task WHERE job = 1")
        forgetting.execute("DELETE FROM lane WHERE job = 1")

    assert len(await other.lease("v", 1, wait=5.0)) == 1
    for each in (one, other, jobs):
        await each.close()
