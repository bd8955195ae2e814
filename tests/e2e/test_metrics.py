"""The metrics of real commands, scraped over HTTP, against the counters and the ledger of the job."""

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.e2e.held_site import HeldSite
from tests.e2e.running import Running, call, progress_of, start

from trotline.config import backends
from trotline.model.work_stats import WorkStats
from trotline.testing.servers import listen

PAGES = 40
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
async def site() -> AsyncIterator[HeldSite]:
    async with HeldSite(pages=PAGES) as opened:
        yield opened


def free_port() -> int:
    [found] = listen(["127.0.0.1"])
    with found:
        return int(found.getsockname()[1])


async def scrape(port: int, path: str = "/metrics") -> str:
    async with aiohttp.ClientSession() as client:
        for _ in range(300):
            try:
                async with client.get(f"http://127.0.0.1:{port}{path}") as response:
                    assert response.status == 200
                    return await response.text()
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.1)
    raise AssertionError("no endpoint")


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def total(found: Samples, name: str, **labels: str) -> float:
    return sum(value for (of, has), value in found.items() if of == name and set(labels.items()) <= has)


async def until(port: int, name: str, least: float, **labels: str) -> str:
    for _ in range(600):
        text = await scrape(port)
        if total(samples(text), name, **labels) >= least:
            return text
        await asyncio.sleep(0.1)
    raise AssertionError(f"{name} stays below {least}:\n{text}")


def ledger(folder: Path) -> Counter[str]:
    """Visits by verdict."""
    with closing(sqlite3.connect(folder / "site.db")) as db:
        return Counter({verdict or "none": count for verdict, count in db.execute(
            "SELECT verdict, count(*) FROM visits WHERE outcome <> 'refused' GROUP BY verdict"
        )})  # fmt: skip


async def stop(running: Running) -> None:
    running.process.send_signal(signal.SIGTERM)
    await running.end()


def check_by_promtool(text: str) -> None:
    # Not in requirements/debian.txt: the package has 330 MB with what it needs.
    promtool = shutil.which("promtool") or os.environ.get("PROMTOOL")
    if promtool is None:
        pytest.skip("promtool is not installed. Try: apt-get install prometheus, or set PROMTOOL to its path")
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


async def test_the_counters_of_a_worker_are_those_of_the_job_and_of_the_ledger(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    site.release()
    port = free_port()
    assert (await call(tmp_path, "start", "site.py", "--detach")).code == 0
    options = ("--allow-private", "--json", "--processes", "2", "--slots", "4", "--metrics", str(port))
    worker = await start(tmp_path, "work", "site.py", *options)
    # It waits for the next job: the figures of the last one are still there.
    while (await worker.event()).get("event") != "ended":
        pass
    found = samples(await scrape(port))
    job = await progress_of(tmp_path, "site")
    assert job.finished_at is not None
    visits = {verdict: total(found, "trotline_visits_total", verdict=verdict) for verdict in ledger(tmp_path)}
    assert visits == ledger(tmp_path) and sum(visits.values()) >= PAGES + 2
    assert total(found, "trotline_records_total") == job.tallies["records"]
    assert total(found, "trotline_received_bytes_total") == job.size
    assert total(found, "trotline_fetch_seconds_count") == total(found, "trotline_parse_seconds_count") == PAGES + 2
    assert total(found, "trotline_commit_seconds_count") >= 1
    assert total(found, "trotline_slot_seconds_total", phase="busy") > 0
    assert total(found, "trotline_cpu_seconds_total") > 0
    assert total(found, "trotline_processes") == 0, "they have ended with the job"
    assert await scrape(port, "/healthz") == "ok\n"
    await stop(worker)


async def test_counters_do_not_go_back_when_a_process_is_killed(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider(pace="20/s"))
    port = free_port()
    run = await start(tmp_path, "run", "site.py", "--allow-private", "--json", "--metrics", str(port))
    text = await until(port, "trotline_visits_total", 5)
    before = samples(text)
    assert total(before, "trotline_tasks", state="done") >= 5
    assert total(before, "trotline_job_state", state="running") == 1
    assert 0 < total(before, "trotline_memory_bytes") < total(before, "trotline_memory_limit_bytes")
    [child] = run.children()
    os.kill(child, signal.SIGKILL)
    after = samples(await until(port, "trotline_process_restarts_total", 1))
    for (name, labels), value in before.items():
        if name.startswith("trotline_") and name.endswith(("_total", "_count", "_sum", "_bucket")):
            assert after[name, labels] >= value, name
    site.release()
    assert (await run.end()).code == 0
    check_by_promtool(text)


async def test_a_worker_reports_its_figures_to_the_frontier(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    run = await start(tmp_path, "run", "site.py", "--allow-private", "--json", "--memory", "512MiB")
    await site.arrived()
    place = f"sqlite:{tmp_path}/.trotline/site.frontier.db"
    jobs = await backends.open_jobs(place)
    job = await jobs.latest("site")
    await jobs.close()
    assert job is not None
    opened = await backends.open_frontier(place, job)
    stats: WorkStats | None = None
    for _ in range(300):
        [worker] = await opened.console.workers()
        stats = worker.about.stats
        if stats is not None and stats.visits.get("ok", 0) == PAGES + 1:
            break
        await asyncio.sleep(0.1)
    await opened.close()
    assert stats is not None and stats.visits == {"ok": PAGES + 1} and stats.records == PAGES + 1
    assert stats.uptime > 0 and stats.cpu > 0 and stats.slots.busy > 0
    assert worker.about.memory_limit == 512 * 2**20 and worker.about.cpu_cores > 0 and worker.about.host_memory > 0
    site.release()
    assert (await run.end()).code == 0


async def test_a_coordinator_shows_the_jobs_that_it_leads(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    port = free_port()
    assert (await call(tmp_path, "start", "site.py", "--detach")).code == 0
    leader = await start(tmp_path, "coordinate", "site.py", "--json", "--metrics", str(port))
    text = await until(port, "trotline_tasks", 1, state="waiting")
    found = samples(text)
    assert total(found, "trotline_coordinator_leading", spider="site") == 1
    assert total(found, "trotline_alert_firing") == 0
    assert any(name == "trotline_alert_firing" for name, _ in found), "rules that do not fire are 0"
    assert not any(name == "trotline_visits_total" for name, _ in found), "it visits nothing"
    other = free_port()
    standby = await start(tmp_path, "coordinate", "site.py", "--json", "--metrics", str(other))
    while (await standby.event())["event"] != "coordinator.stands_by":
        pass
    second = samples(await scrape(other))
    assert total(second, "trotline_coordinator_leading", spider="site") == 0
    assert not any(name == "trotline_tasks" for name, _ in second), "only the leader shows jobs"
    await stop(standby)
    await stop(leader)
    check_by_promtool(text)


async def test_a_port_that_is_taken_is_refused_before_anything_is_fetched(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    [taken] = listen(["127.0.0.1"])
    with taken:
        ended = await call(tmp_path, "run", "site.py", "--allow-private", "--metrics", str(taken.getsockname()[1]))
    assert ended.code == 2 and "cannot listen" in ended.err and "--metrics PORT" in ended.err
    assert not site.visits
