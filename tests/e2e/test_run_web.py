"""`trotline run --web`: the dashboard lives as long as the run, however that ends."""

import asyncio
import json
import signal
from pathlib import Path

import aiohttp
import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.running import Running, start


async def _address(running: Running) -> tuple[str, dict[str, str]]:
    """With the token that goes with it."""
    assert running.process.stderr is not None
    line = (await asyncio.wait_for(running.process.stderr.readline(), 30)).decode()
    assert line.startswith("dashboard: http://127.0.0.1:"), line
    address, _, token = line.split()[1].partition("login#")
    return address, {"Authorization": f"Bearer {token}"}


async def _is_gone(address: str) -> bool:
    async with aiohttp.ClientSession() as client:
        for _ in range(100):
            try:
                await (await client.get(f"{address}api/v1/health")).read()
            except aiohttp.ClientConnectionError:
                return True
            await asyncio.sleep(0.1)
    return False


@pytest.mark.parametrize("end", [None, signal.SIGINT, signal.SIGKILL], ids=["finished", "interrupted", "killed"])
async def test_the_dashboard_shows_the_job_and_ends_with_the_run(tmp_path: Path, end: signal.Signals | None) -> None:
    async with HeldSite(pages=3) as site:
        (tmp_path / "site.py").write_text(site.spider())
        running = await start(tmp_path, "run", "site.py", "--allow-private", "--grace", "1s", "--web")
        address, token = await _address(running)
        await site.arrived()
        async with aiohttp.ClientSession() as client:
            async with client.get(f"{address}api/v1/jobs") as answer:
                assert answer.status == 401, "other users of this machine"
            async with client.get(f"{address}api/v1/jobs", headers=token) as answer:
                [job] = (await answer.json())["jobs"]
        assert (job["job"], job["workers"]) == ("site-1", 1)

        if end is not None:
            running.process.send_signal(end)
        site.release()

        assert await _is_gone(address)
        await running.end()


async def test_a_second_run_finds_another_port(tmp_path: Path) -> None:
    async with HeldSite(pages=1) as site:
        runs, addresses = [], []
        for name in ("one", "two"):
            (tmp_path / f"{name}.py").write_text(site.spider().replace('"site"', f'"{name}"'))
            runs.append(await start(tmp_path, "run", f"{name}.py", "--allow-private", "--web"))
            addresses.append((await _address(runs[-1]))[0])
        site.release()
        for running in runs:
            assert (await running.end()).code == 0
    assert len(set(addresses)) == 2


async def test_a_json_log_has_the_address_without_the_token(tmp_path: Path) -> None:
    async with HeldSite(pages=3) as site:
        (tmp_path / "site.py").write_text(site.spider())
        options = ("--allow-private", "--grace", "1s", "--web", "--log-format", "json")
        running = await start(tmp_path, "run", "site.py", *options)
        assert running.process.stderr is not None
        line = json.loads(await asyncio.wait_for(running.process.stderr.readline(), 30))
        running.process.send_signal(signal.SIGINT)
        _, rest = await asyncio.wait_for(running.process.communicate(), 30)
    assert line["event"] == "command.output" and line["message"].startswith("dashboard: http://127.0.0.1:")
    assert "login" not in line["message"] and b"login#" not in rest
