"""The fast rigs of `tests.e2e.advice_rigs`, the command, the signal of the web server, and a fleet that grows by it."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e import advice_rigs
from tests.e2e.advice_rig_kit import Result, slow_site, until_all_report
from tests.e2e.running import call, jobs_of, lives, rows_of, start

from trotline.config import backends

pytestmark = pytest.mark.timeout(240)
SPIDER = """
from trotline import Page, Spider

shop = Spider("shop", pace="{pace}", concurrency=200, robots=False)

@shop.page(key="url", seeds=[f"http://127.0.0.1:{port}/{{n}}" for n in range({pages})])
def page(page: Page):
    yield {{"url": page.url}}
"""
PRICES = """
currency = "EUR"
as_of = "2026-11-01"
[machine.small]
cores = 2
memory = 4
per_hour = 0.1
"""


@pytest.mark.slow("measures throughput twice")
# The other limits: `make soak`, or python -m tests.e2e.advice_rigs.
@pytest.mark.parametrize("name", ["pace", "chain"] if os.environ.get("SOAK") else ["pace"])
async def test_the_limit_is_named_and_one_more_worker_gives_what_was_said(tmp_path: Path, name: str) -> None:
    # Rigs that wait most of the time: they say the same on a busy machine.
    result: Result = await advice_rigs.RIGS[name](tmp_path, 11.0)

    print(result)
    assert not result.trouble, result


@pytest.mark.slow("figures come every five seconds")
async def test_a_run_is_advised_by_its_pace_and_machines_are_compared(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    async with slow_site(0.02) as there:
        (tmp_path / "shop.py").write_text(SPIDER.format(pace="10/s", port=there.port, pages=4000))
        running = await start(tmp_path, "run", "shop.py", "--allow-private", "--json")
        try:
            await _pages(running, 20)
            [job] = await jobs_of(tmp_path, "shop")
            opened = await backends.open_frontier(f"sqlite:{tmp_path}/.trotline/shop.frontier.db", job)
            # What a worker has done is known from its second heartbeat on: measured from before it, nothing is.
            await until_all_report(opened, 1)
            await opened.close()
            ended = await call(
                tmp_path, "advise", "shop", "--measure", "12s", "--prices", "prices.toml", "--within", "1s", "--json"
            )
            # Of the figures that the run keeps.
            text = await call(tmp_path, "advise", "shop")
        finally:
            running.signal_all(15)
            await running.exit_code()

    assert ended.code == text.code == 0, (ended, text)
    found = json.loads(ended.out)
    assert (found["advice"]["limit"], found["advice"]["wanted_workers"]) == ("pace", 1)
    assert found["advice"]["gain"] < 0.05
    assert {each["limit"] for each in found["options"]} == {"pace"}
    assert next(each for each in found["signals"] if each["name"] == "time")["raised"] is True
    assert any("redis://" in each["then"] for each in found["moves"])
    assert f"127.0.0.1:{there.port} is at its limit of 10/s" in text.out


async def _pages(running: object, number: int) -> None:
    while True:
        event = await running.event()  # type: ignore[attr-defined]
        if event["event"] == "progress" and event["done"] >= number:
            return


async def test_bad_input_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SPIDER.format(pace="5/s", port=1, pages=1))
    (tmp_path / "bad.toml").write_text("currency = 3")

    short = await call(tmp_path, "advise", "--measure", "1s")
    bad = await call(tmp_path, "advise", "--prices", "bad.toml")
    nowhere = await call(tmp_path, "lab", "shop.py", "--out", "bad.toml")
    crossed = await call(tmp_path, "fleet", "shop.py", "--min", "4", "--max", "2")

    assert [ended.code for ended in (short, bad, nowhere, crossed)] == [2, 2, 2, 2]
    assert (
        "10s" in short.err and "price table" in bad.err and "cannot be made" in nowhere.err and "--max 2" in crossed.err
    )


@pytest.mark.skipif(not os.environ.get("SOAK"), reason="a laboratory of half a minute: make soak")
async def test_a_laboratory_writes_its_report_and_touches_nothing_else(tmp_path: Path) -> None:
    async with slow_site(0.02) as there:
        (tmp_path / "shop.py").write_text(SPIDER.format(pace="5/s", port=there.port, pages=2000))
        ended = await call(tmp_path, "lab", "shop.py", "--minutes", "0.5", "--allow-private")

    assert ended.code == 0, ended
    report, page = (tmp_path / "lab-shop.md").read_text(), (tmp_path / "lab-shop.html").read_text()
    assert "| 1 | 16 | " in report and "| pace |" in report
    assert "<svg" in page and "<script" not in page
    assert not (tmp_path / "shop.db").exists() and not (tmp_path / ".trotline").exists()


@pytest.mark.slow("more workers start after half a minute")
@pytest.mark.skipif(not os.environ.get("SOAK"), reason="a minute of waiting: make soak")
async def test_a_fleet_starts_more_workers_while_slots_are_the_limit_and_stops_gracefully(tmp_path: Path) -> None:
    env = {
        "TROTLINE_FRONTIER": f"sqlite:{tmp_path}/f.db",
        "TROTLINE_SINK": f"sqlite:{tmp_path}/r.db",
        "TROTLINE_ALLOW_PRIVATE": "yes",
    }
    async with slow_site(0.5) as there:
        (tmp_path / "shop.py").write_text(SPIDER.format(pace="500/s", port=there.port, pages=5000))
        assert (await call(tmp_path, "start", "shop.py", "--detach", env=env)).code == 0
        running = await start(tmp_path, "fleet", "shop.py", "--max", "2", "--slots", "2", "--json", env=env)
        started, scaled = await running.event(), await running.event()
        running.process.terminate()
        ended = await running.end()
        looked = await call(tmp_path, "watch", "shop", "--once", "--json", env=env)

    assert started["event"] == "fleet.started"
    assert (scaled["event"], scaled["workers"]) == ("fleet.scaled", 2)
    assert "of 2 slots are busy" in scaled["text"]
    assert ended.code == 130 and ended.events[-1]["event"] == "fleet.ended", ended
    seen = looked.events[0]
    assert (seen["leased"], seen["dead"]) == (0, 0)
    assert len(rows_of(tmp_path / "r.db")) == seen["done"] > 50


@pytest.mark.slow("starts real workers")
async def test_workers_of_a_fleet_that_was_killed_stop(tmp_path: Path) -> None:
    env = {"TROTLINE_FRONTIER": f"sqlite:{tmp_path}/f.db", "TROTLINE_ALLOW_PRIVATE": "yes"}
    async with slow_site(0.1) as there:
        (tmp_path / "shop.py").write_text(SPIDER.format(pace="50/s", port=there.port, pages=5000))
        assert (await call(tmp_path, "start", "shop.py", "--detach", env=env)).code == 0
        running = await start(tmp_path, "fleet", "shop.py", "--max", "1", "--slots", "2", "--grace", "2s", env=env)
        await _until(lambda: len(there.requests) >= 5)
        workers = _children(running.process.pid)
        running.process.kill()
        await running.process.wait()
        assert workers
        await _until(lambda: not any(map(lives, workers)))


async def _until(fits: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not fits():  # noqa: ASYNC110 - other processes have no event of ours
            await asyncio.sleep(0.1)


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]
