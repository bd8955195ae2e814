"""`--log-format json`: everything on standard error is a JSON line, whoever wrote it."""

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.running import call, start

JSON = ("--log-format", "json")
CANARY = "canary-0123456789"


@pytest.fixture
async def site() -> AsyncIterator[HeldSite]:
    async with HeldSite(pages=6, held=()) as opened:
        yield opened


def spider(site: HeldSite, deed: str) -> str:
    text = site.spider().replace("def page(page: Page):\n", f"def page(page: Page):\n    {deed}\n")
    return "import logging, os, sys\n" + text


def events(err: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in err.splitlines()]
    for line in lines:
        assert {"ts", "level", "event", "logger", "message"} <= set(line)
    return lines


def named(lines: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["event"] == event]


async def test_a_run_logs_its_begin_and_end_and_what_handlers_print(site: HeldSite, tmp_path: Path):
    deed = (
        'print("seen", page.url); sys.stderr.write("oops\\x1b[2J " + page.url + "?token=' + CANARY + '\\n");'
        ' logging.getLogger("shop").warning("mine %s", page.url)'
    )
    (tmp_path / "site.py").write_text(spider(site, deed))
    ended = await call(tmp_path, "run", "site.py", "--allow-private", "--quiet", *JSON)
    lines = events(ended.err)
    assert ended.code == 0 and ended.out == ""
    [began], [end] = named(lines, "run.started"), named(lines, "run.ended")
    assert (began["job"], began["spider"], began["resumed"]) == ("site-1", "site", False)
    assert (end["done"], end["dead"]) == (7, 0)
    printed = named(lines, "handler.output")
    assert all(line["worker"] and line["job"] == "site-1" for line in printed)
    text = "\n".join(line["message"] for line in printed)
    assert text.count("seen http") == 7 and text.count("oops") == 7
    assert len(named(lines, "log")) == 7, "the spider's own logger"
    assert CANARY not in ended.err and "\x1b" not in ended.err


async def test_the_death_of_a_process_is_an_event(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(spider(site, 'if page.url.endswith("page/5"): os._exit(7)'))
    ended = await call(tmp_path, "run", "site.py", "--allow-private", "--quiet", *JSON)
    deaths = named(events(ended.err), "child.ended")
    assert len(deaths) == 2 and all(line["code"] == 7 and line["worker"] for line in deaths)


async def test_with_level_debug_every_visit_is_a_line(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    ended = await call(tmp_path, "run", "site.py", "--allow-private", "--quiet", *JSON, "--log-level", "debug")
    visits = named(events(ended.err), "visit.settled")
    assert len(visits) == 7 and {line["verdict"] for line in visits} == {"ok"}
    assert {line["status"] for line in visits} == {200}


async def test_the_error_of_a_handler_is_an_event_with_its_traceback(site: HeldSite, tmp_path: Path):
    deed = 'if "/page/" in page.url: raise ValueError(f"no price on {page.url}?token=' + CANARY + '")'
    (tmp_path / "site.py").write_text(spider(site, deed))
    ended = await call(tmp_path, "run", "site.py", "--allow-private", "--quiet", *JSON)
    [line] = named(events(ended.err), "handler.failed")
    assert (line["level"], line["route"], line["pages"]) == ("info", "page", 1)
    assert "/page/" in line["url"] and "ValueError: no price on" in line["error"] and "site.py" in line["error"]
    assert CANARY not in ended.err


async def test_an_error_is_a_line_too(tmp_path: Path):
    (tmp_path / "bad.py").write_text("raise RuntimeError('no')\n")
    ended = await call(tmp_path, "run", "bad.py", *JSON)
    assert ended.code == 2
    [line] = events(ended.err)
    assert (line["event"], line["level"]) == ("command.output", "error") and "RuntimeError" in line["message"]


async def test_workers_and_coordinators_log_their_events(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    started = await call(tmp_path, "start", "site.py", "--detach", "--quiet", *JSON)
    assert named(events(started.err), "start.ended")[0]["job"] == "site-1"
    worker = await call(
        tmp_path,
        "work",
        "site.py",
        "--allow-private",
        "--until-finished",
        "--quiet",
        env={"TROTLINE_LOG_FORMAT": "json"},
    )
    lines = events(worker.err)
    assert [line["event"] for line in lines] == ["worker.joined", "worker.ended"]
    assert (lines[1]["done"], lines[1]["job"]) == (7, "site-1")
    leader = await start(tmp_path, "coordinate", "site.py", *JSON)
    await leader.line("leading")
    leader.process.send_signal(signal.SIGTERM)
    [led] = named(events((await leader.end()).err), "coordinator.leads")
    assert led["spider"] == "site"


async def test_text_logs_have_the_level_that_was_set(site: HeldSite, tmp_path: Path):
    deed = 'logging.getLogger("shop").info("details of %s", page.url)'
    (tmp_path / "site.py").write_text(spider(site, deed))
    quiet = await call(tmp_path, "run", "site.py", "--allow-private", "--quiet")
    assert "details" not in quiet.err
    told = await call(tmp_path, "run", "site.py", "--allow-private", "--quiet", "--fresh", "--log-level", "info")
    assert told.err.count("INFO shop details of") == 7
