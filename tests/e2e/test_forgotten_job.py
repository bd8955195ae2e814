"""A worker whose job an operator forgets: it says so, and takes part in the next one."""

from pathlib import Path

import pytest
from tests.e2e.fleet import Fleet
from tests.e2e.held_site import HeldSite
from tests.e2e.running import call, rows_of, start


async def test_a_worker_outlives_a_job_that_is_forgotten(tmp_path: Path) -> None:
    async with HeldSite(pages=3) as site:
        (tmp_path / "site.py").write_text(site.spider())
        await call(tmp_path, "start", "site.py", "--detach")
        worker = await start(tmp_path, "work", "site.py", "--allow-private", "--grace", "1s", "--json")
        await site.arrived()

        forgot = await call(tmp_path, "jobs", "--forget", "site-1", "--force")
        assert forgot.code == 0, forgot
        while (event := await worker.event())["event"] != "forgotten":
            assert event["event"] in ("waits", "joined", "progress"), event
        assert event["job"] == "site-1"

        site.release()
        ended = await call(tmp_path, "start", "site.py", "--json")
        assert ended.code == 0, ended
        worker.process.terminate()
        await worker.end()
        assert {row["name"] for row in rows_of(tmp_path / "site.db")} >= site.names


async def test_a_worker_of_one_job_ends_when_it_is_forgotten(tmp_path: Path) -> None:
    async with HeldSite(pages=3) as site:
        (tmp_path / "site.py").write_text(site.spider())
        await call(tmp_path, "start", "site.py", "--detach")
        worker = await start(tmp_path, "work", "site.py", "--allow-private", "--grace", "1s", "--until-finished")
        await site.arrived()
        await call(tmp_path, "jobs", "--forget", "site-1", "--force")
        ended = await worker.end()

        assert "its tasks are gone; this worker ends with it" in ended.out
        assert "waits for the next job" not in ended.out
        assert "error" not in ended.err


@pytest.mark.parametrize("words", [("start", "site.py"), ("watch", "site"), ("watch", "site", "--json")])
async def test_a_view_of_a_job_ends_when_it_is_forgotten(tmp_path: Path, words: tuple[str, ...]) -> None:
    """It showed the last figures for ever: a script that waits for `start` did, too."""
    async with HeldSite(pages=3) as site:
        (tmp_path / "site.py").write_text(site.spider())
        await call(tmp_path, "start", "site.py", "--detach")
        watching = await start(tmp_path, *words)
        assert watching.process.stdout is not None
        assert await watching.process.stdout.readline()
        await call(tmp_path, "jobs", "--forget", "site-1", "--force")
        ended = await watching.end()

    assert (ended.code, "site-1 was forgotten (trotline jobs --forget), or its" in ended.err) == (2, True)


@pytest.mark.parametrize("fleet", ["servers"], indirect=True)
async def test_no_command_takes_a_forgotten_job_for_a_frontier_that_is_unreachable(fleet: Fleet) -> None:
    async with HeldSite(pages=3) as site:
        (fleet.folder / "site.py").write_text(site.spider())
        running = await fleet.start("run", "site.py", "--grace", "1s")
        await site.arrived()
        assert (await fleet.call("jobs", "--forget", "site-1", "--force")).code == 0
        ended = await running.end()

    assert "has no such job" in ended.err
    assert "unreachable" not in ended.out and "leave.failed" not in ended.err, ended
    assert "beat.failed" not in ended.err, ended
