"""The view of a job while its frontier does not answer."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from trotline.adapters.sqlite.console import SqliteConsole
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.commands import run_report, watch
from trotline.commands.run_report import Report
from trotline.errors import FrontierUnreachable
from trotline.model.job import Job, LaneRules, Progress

AWAY = FrontierUnreachable("cannot reach it: connection refused")


@pytest.fixture
async def job(tmp_path: Path) -> Job:
    jobs = SqliteJobs(str(tmp_path / "frontier.db"))
    job = await jobs.start("shop", LaneRules())
    await jobs.close()
    return job


@pytest.mark.parametrize("hangs", [False, True])
async def test_an_outage_does_not_end_the_view(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    """Whether the server refuses connections or says nothing. The last known counts are shown, with their age."""
    monkeypatch.setattr(watch, "COUNT_EVERY", 0.01)
    monkeypatch.setattr(run_report, "SLOW", 0.05)
    progress, beside = SqliteConsole.progress, watch._beside
    seen: list[Report] = []
    enough, down, shown = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def show(report: Report) -> None:
        seen.append(report)
        shown.set()

    async def asked(console: SqliteConsole) -> Progress:
        if down.is_set() and hangs:
            await asyncio.sleep(60)
        if down.is_set():
            raise AWAY
        return await progress(console)

    async def counted(*where: Any) -> dict[str, Any]:
        if down.is_set():
            raise AWAY
        return await beside(*where)

    monkeypatch.setattr(SqliteConsole, "progress", asked)
    monkeypatch.setattr(watch, "_beside", counted)
    watching = asyncio.create_task(watch.watch(f"sqlite:{tmp_path / 'frontier.db'}", job, show, enough=enough))
    async with asyncio.timeout(30):
        await shown.wait()
        down.set()
        first = len(seen)
        while len(seen) < first + 3:
            await asyncio.sleep(0.01)
            assert not watching.done()
        assert re.search(r"last answer \d+ s ago", seen[-1].held_back)
        assert seen[-1].held_back.startswith("frontier does not answer" if hangs else "frontier is unreachable")
        enough.set()
        last = await watching

    assert last.held_back == seen[-1].held_back
