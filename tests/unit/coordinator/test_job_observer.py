"""What is kept of a job for those who look, on a real file and a virtual clock."""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.coordinator.job_observer import OBSERVE_EVERY, Observer
from trotline.model.outcome import Done
from trotline.rules import worker_exit_log
from trotline.rules.time_series import FINEST, RESOLUTIONS
from trotline.testing.clients import sqlite_client
from trotline.testing.clocks import MORNING
from trotline.testing.frontier_contract import Client, tasks
from trotline.testing.frontier_contract.bench import end, lease_one, steady
from trotline.testing.virtual_time import run_virtual

HOUR = 3600.0


def _clock() -> float:
    return asyncio.get_running_loop().time()


def _now() -> float:
    return MORNING + _clock()


async def _job(path: Path) -> Callable[[], Client]:
    """A new job; what is returned opens it, as a process of its own would."""
    jobs = SqliteJobs(str(path), now=_now, inline=True)
    job = await jobs.start("shop", steady(concurrency=2), "v1")
    await jobs.close()
    return lambda: sqlite_client(str(path), job, now=_now, inline=True)


async def _observe(observers: list[Observer], seconds: float) -> None:
    until = _clock() + seconds
    while _clock() < until:
        for observer in observers:
            await observer.observe()
        await asyncio.sleep(OBSERVE_EVERY)


@pytest.fixture
def virtually(tmp_path: Path) -> Callable[[Callable[[Path], Coroutine[Any, Any, None]]], None]:
    return lambda test: run_virtual(test(tmp_path / "frontier.db"))


def test_the_series_has_one_point_per_step_whoever_looks(virtually: Any) -> None:
    async def test(path: Path) -> None:
        open_job = await _job(path)
        clients = [open_job() for _ in range(3)]
        await clients[0].put(tasks(5))
        await _observe([Observer(client.opened.console, _clock) for client in clients], 600)

        fine, coarse = [await Observer(clients[0].opened.console, _clock).series(each) for each in RESOLUTIONS[:2]]

        assert [later.at - point.at for point, later in pairwise(fine)] == [5] * (len(fine) - 1)
        assert len(fine) in (120, 121)
        assert len(coarse) in (10, 11)
        assert {point.waiting for point in fine} == {5}
        for client in clients:
            await client.close()

    virtually(test)


def test_the_series_goes_on_after_a_restart(virtually: Any) -> None:
    async def test(path: Path) -> None:
        open_job = await _job(path)
        for _ in range(4):
            client = open_job()
            await _observe([Observer(client.opened.console, _clock)], 60)
            await client.close()
        client = open_job()
        points = await Observer(client.opened.console, _clock).series(FINEST)
        assert len(points) >= 47
        await client.close()

    virtually(test)


def test_points_are_the_counters_of_the_job(virtually: Any) -> None:
    async def test(path: Path) -> None:
        client = (await _job(path))()
        observer = Observer(client.opened.console, _clock)
        await client.put(tasks(3))
        await observer.observe()
        await end(client, "w", await lease_one(client, "w"), Done())
        await client.beat("w")
        await asyncio.sleep(OBSERVE_EVERY)
        await observer.observe()

        first, last = await observer.series(FINEST)

        assert (first.waiting, first.done, first.workers) == (3, 0, 0)
        assert (last.waiting, last.done, last.workers) == (2, 1, 1)
        await client.close()

    virtually(test)


def test_lanes_are_surveyed_now_and_then_by_one_of_many(virtually: Any) -> None:
    async def test(path: Path) -> None:
        open_job = await _job(path)
        one, other = open_job(), open_job()
        await one.put(tasks(3))
        found = (await Observer(one.opened.console, _clock).observe()).summary
        await one.put(tasks(9))

        soon = (await Observer(other.opened.console, _clock).observe()).summary
        await asyncio.sleep(20)
        later = (await Observer(other.opened.console, _clock).observe()).summary

        assert (found.lanes.lanes, found.lanes.waiting) == (1, 3)
        assert soon == found, "what one published is good enough for the other"
        assert later.lanes.waiting == 9
        await one.close()
        await other.close()

    virtually(test)


def test_a_finished_job_is_not_observed_for_ever(virtually: Any) -> None:
    async def test(path: Path) -> None:
        client = (await _job(path))()
        await client.put(tasks(1))
        await client.seal()
        await end(client, "w", await lease_one(client, "w"), Done())
        observer = Observer(client.opened.console, _clock)
        await _observe([observer], HOUR / 2)

        points = await observer.series(FINEST)

        assert points[-1].done == 1
        assert len(points) <= 13
        await client.close()

    virtually(test)


def test_workers_that_left_or_died_stay_known_to_every_observer(virtually: Any) -> None:
    async def test(path: Path) -> None:
        client = (await _job(path))()
        await client.put(tasks(3))
        await client.beat("leaver")
        await lease_one(client, "lost")
        await Observer(client.opened.console, _clock).observe()
        await client.leave("leaver")
        await asyncio.sleep(HOUR / 60)
        silent = await Observer(client.opened.console, _clock).observe()
        # Its lease is taken over, and the frontier forgets it.
        await lease_one(client, "other")
        await asyncio.sleep(OBSERVE_EVERY)
        found = await Observer(client.opened.console, _clock).observe()

        assert [(one.name, one.why) for one in silent.log.gone] == [("leaver", worker_exit_log.LEFT)]
        assert [(one.name, one.why) for one in found.log.gone] == [
            ("lost", worker_exit_log.DIED),
            ("leaver", worker_exit_log.LEFT),
        ]
        assert found.log.gone[0].leased == 1
        await client.close()

    virtually(test)
