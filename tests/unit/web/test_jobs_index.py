"""Jobs over several frontiers, connections that are shared and closed, and frontiers that cannot be reached."""

import shutil
from pathlib import Path

import pytest

from tests.unit.web.conftest import Client, Folder, Serving
from trotline.config import backends
from trotline.config.settings import Settings
from trotline.errors import FrontierUnreachable
from trotline.model.job import LaneRules
from trotline.web import jobs_index
from trotline.web.errors import Refused
from trotline.web.jobs_index import JobsIndex


async def start(frontier: str, spider: str) -> str:
    jobs = await backends.open_jobs(frontier)
    try:
        return (await jobs.start(spider, LaneRules(), "")).id
    finally:
        await jobs.close()


async def test_the_jobs_of_a_folder_come_from_all_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".trotline").mkdir()
    for spider in ("a", "b"):
        await start(f"sqlite:.trotline/{spider}.frontier.db", spider)
    index = JobsIndex(Settings())
    assert [["a-1"], ["b-1"]] == [list(place.jobs) for place in await index.places()]
    with pytest.raises(Refused, match="no job 'c-1'"):
        await index.find("c-1")
    shutil.copy(".trotline/a.frontier.db", ".trotline/copy.frontier.db")
    index.forget_list()
    with pytest.raises(Refused, match="several jobs a-1"):
        await index.find("a-1")
    await index.close()


async def test_a_job_is_opened_once_for_all_and_closed_when_idle(folder: Folder) -> None:
    now = 0.0
    index = JobsIndex(folder.settings, lambda: now)
    async with index.opened(folder.job) as one, index.opened(folder.job) as other:
        assert one is other
        now += 10 * jobs_index.IDLE
        await index.close_idle()
        assert (await one.console.progress()).waiting == 5
    now += jobs_index.IDLE
    await index.close_idle()
    assert not index._open
    await index.close()


async def test_a_file_that_took_its_place_is_noticed(folder: Folder) -> None:
    index = JobsIndex(folder.settings)
    async with index.opened(folder.job) as opened:
        assert 5 == (await opened.console.progress()).waiting
    path = Path(folder.settings.frontier.removeprefix("sqlite:"))
    for file in folder.path.glob("frontier.db*"):
        file.unlink()
    await start(f"sqlite:{path}", "shop")
    index.forget_list()
    async with index.opened(folder.job) as opened:
        assert 0 == (await opened.console.progress()).waiting
    await index.close()


async def test_while_a_frontier_is_unreachable_the_last_figures_are_shown_and_changes_are_refused(
    server: Client, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (await server.get(f"/api/v1/jobs/{folder.job}")).json
    assert (before["age"], before["unreachable"]) == (0.0, "")
    assert (await server.get("/readyz")).status == 200
    assert '<div id="outage" data-live></div>' in (await server.get(f"/jobs/{folder.job}/lanes")).body.decode()

    async def away(*_: object) -> None:
        raise FrontierUnreachable("connection refused")

    [entry] = server.site.index._open.values()
    monkeypatch.setattr(type(entry.opened.console), "progress", away)
    monkeypatch.setattr(type(entry.opened.console), "steer", away)
    server.site.snapshots.forget(folder.job)
    look = (await server.get(f"/api/v1/jobs/{folder.job}")).json
    assert look["unreachable"] == "connection refused"
    assert look["waiting"] == before["waiting"]
    # The style sheet makes a page with this part grey, whichever parts were there before.
    assert 'id="unreachable"' in (await server.get(f"/jobs/{folder.job}/lanes")).body.decode()
    answer = await server.post(f"/api/v1/jobs/{folder.job}/pause")
    assert (503, "connection refused") == (answer.status, answer.what)


async def test_a_server_that_is_away_from_the_start_is_named_and_not_empty(serving: Serving) -> None:
    client = await serving(Settings(frontier="redis://127.0.0.1:1/0", sink="sqlite:x.db"))
    answer = (await client.get("/api/v1/jobs")).json
    assert [] == answer["jobs"]
    [place] = answer["places"]
    assert place["unreachable"] and place["age"] is None
    assert 503 == (await client.get("/api/v1/jobs/shop-1")).status
    assert (await client.get("/healthz")).status == 200, "a restart would not help"
    ready = await client.get("/readyz")
    assert (ready.status, ready.what) == (503, "degraded: 1 of 1 frontiers unreachable")
    assert "Whether an alert fires is unknown." in (await client.get("/alerts")).body.decode()
