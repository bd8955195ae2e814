"""The heartbeat of a worker in the process of a program that embeds it."""

import asyncio
from types import SimpleNamespace

import pytest

from tests.unit.worker.fake_ports import DiaryFrontier
from trotline.commands.app import _beat
from trotline.model.work_stats import WorkStats
from trotline.ports.frontier import BEAT
from trotline.testing.virtual_time import run_virtual


def test_a_frontier_that_was_away_gets_heartbeats_again(caplog: pytest.LogCaptureFixture) -> None:
    """One failed call ended them all, and with them the leases of a worker that lived."""
    frontier = DiaryFrontier([])
    frontier.beat_away = 3

    async def story() -> None:
        worker = SimpleNamespace(name="w", stats=WorkStats())
        beating = asyncio.create_task(_beat(frontier, worker, 4, ()))  # type: ignore[arg-type]
        await asyncio.sleep(10 * BEAT)
        beating.cancel()

    run_virtual(story())
    assert len(frontier.beats) >= 5
    assert [record.getMessage() for record in caplog.records] == ["beat.failed locked"]
