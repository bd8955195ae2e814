"""What a look at the overview asks of the frontier: counted, not timed."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.web.conftest import Client, Serving, task
from trotline.config import backends
from trotline.config.settings import Settings
from trotline.model.job import Job, LaneRules, LaneView
from trotline.ports.backend import OpenJob
from trotline.web import job_snapshots, jobs_index

LOOKS = 12


class CountedConsole:
    """Counts the calls, and the lanes that were handed over."""

    def __init__(self, console: Any) -> None:
        self._console = console
        self.calls: Counter[str] = Counter()
        self.lanes = 0

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self._console, name)

    async def all_lanes(self) -> AsyncIterator[Sequence[LaneView]]:
        self.calls["all_lanes"] += 1
        async for page in self._console.all_lanes():
            self.lanes += len(page)
            yield page


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[CountedConsole]:
    """The consoles that the server opens."""
    consoles: list[CountedConsole] = []
    real = backends.open_frontier

    async def open_frontier(url: str, job: Job) -> OpenJob:
        found = await real(url, job)
        consoles.append(CountedConsole(found.console))
        return found._replace(console=consoles[-1])

    monkeypatch.setattr(jobs_index.backends, "open_frontier", open_frontier)
    # Each look reads anew, and observes.
    monkeypatch.setattr(job_snapshots, "FRESH", 0.0)
    monkeypatch.setattr(job_snapshots, "OBSERVE_EVERY", 0.0)
    return consoles


async def job_with(lanes: int, path: Path, opened: list[CountedConsole]) -> Settings:
    frontier = f"sqlite:{path}/{lanes}.db"
    jobs = await backends.open_jobs(frontier)
    job = await jobs.start("wide", LaneRules(), "")
    await jobs.close()
    filled = await backends.open_frontier(frontier, job)
    await filled.frontier.put([task("", f"host-{number}.example") for number in range(lanes)])
    await filled.close()
    opened.clear()
    return Settings(frontier=frontier, sink=f"sqlite:{path}/rows.db")


async def cost_of_looks(server: Client, opened: list[CountedConsole]) -> Counter[str]:
    """After the first two, which survey the lanes and begin the series."""
    for _ in range(2):
        assert (await server.get("/")).status == 200
    [console] = opened
    console.calls.clear()
    for _ in range(LOOKS):
        assert (await server.get("/")).status == 200
    opened.clear()
    return console.calls


async def test_a_look_at_the_overview_costs_the_same_whatever_the_number_of_lanes(
    serving: Serving, opened: list[CountedConsole], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    few = await cost_of_looks(await serving(await job_with(3, tmp_path, opened)), opened)
    many = await cost_of_looks(await serving(await job_with(600, tmp_path, opened)), opened)

    # A note may become full between two looks.
    assert set(few) | set(many) <= {"progress", "workers", "read_notes", "write_note"}
    for calls in (few, many):
        assert calls["workers"] == 2 * LOOKS, "one of the look, one of the observer"
        assert calls["progress"] <= 2 * LOOKS + 1, "and one for the alerts, which are read seldom"
        assert calls["read_notes"] <= 4 * LOOKS + 1


async def test_the_lanes_are_surveyed_once_for_all_viewers_and_looks(
    serving: Serving, opened: list[CountedConsole], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = await serving(await job_with(600, tmp_path, opened))
    for _ in range(LOOKS):
        await server.get("/")
    [console] = opened
    assert (console.calls["all_lanes"], console.lanes) == (1, 600)
