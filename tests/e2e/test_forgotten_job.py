"""A worker whose job an operator forgets: it says so, and takes part in the next one."""

from pathlib import Path

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

        assert "site-1 was forgotten" in ended.out, ended
        assert "error" not in ended.err
