"""Handlers that bring their process down: the page pays for it, and no other."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.running import call, progress_of, rows_of

RUN = ("run", "site.py", "--allow-private", "--json", "--slots", "4")
BAD = "page/5"

WAYS = {
    "segfaults": "ctypes.string_at(0)",
    "aborts": "os.abort()",
    "exits": "os._exit(7)",
    "exits as if all were well": "os._exit(0)",
    "loops for ever": "while True: pass",
    # The kernel's own killer needs a whole machine; what it sends is this signal.
    "is killed for its memory": "os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.fixture
async def site() -> AsyncIterator[HeldSite]:
    async with HeldSite(pages=9, held=()) as opened:
        yield opened


def spider(site: HeldSite, deed: str) -> str:
    text = site.spider(more="limits=Limits(parse=1.0)")
    bad = f'def page(page: Page):\n    if page.url.endswith("{BAD}"):\n        {deed}\n'
    return "import asyncio, ctypes, os, resource, signal, sys\n" + text.replace("def page(page: Page):\n", bad)


@pytest.mark.parametrize("way", WAYS)
async def test_a_page_that_kills_is_buried_after_two_kills_and_all_others_are_stored(
    site: HeldSite, tmp_path: Path, way: str
):
    (tmp_path / "site.py").write_text(spider(site, WAYS[way]))
    ended = await call(tmp_path, *RUN)

    assert ended.code == 3, ended
    assert sorted(row["name"] for row in rows_of(tmp_path / "site.db")) == sorted(site.names - {BAD})
    [why] = ended.summary["reasons"]
    assert why.startswith("killed"), why
    assert site.visits[BAD] == 2
    books = await progress_of(tmp_path, "site")
    assert (books.waiting, books.leased, books.done, books.dead) == (0, 0, len(site.names) - 1, 1)


@pytest.mark.parametrize("deed", ["sys.exit(0)", "raise BaseException('panic')", "raise asyncio.CancelledError"])
@pytest.mark.parametrize("form", ["def", "async def"])
async def test_whatever_a_handler_raises_it_has_failed_and_nothing_else(
    site: HeldSite, tmp_path: Path, deed: str, form: str
):
    (tmp_path / "site.py").write_text(spider(site, deed).replace("def page", f"{form} page"))
    ended = await call(tmp_path, *RUN)

    assert ended.code == 3, ended
    assert sorted(row["name"] for row in rows_of(tmp_path / "site.db")) == sorted(site.names - {BAD})


async def test_two_processes_share_the_work_and_one_bad_page_stops_neither(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(spider(site, WAYS["segfaults"]))
    ended = await call(tmp_path, *RUN, "--processes", "2")

    assert ended.code == 3, ended
    assert sorted(row["name"] for row in rows_of(tmp_path / "site.db")) == sorted(site.names - {BAD})


async def test_a_buried_page_can_be_revived_once_its_handler_is_mended(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(spider(site, WAYS["segfaults"]))
    assert (await call(tmp_path, *RUN)).code == 3

    (tmp_path / "site.py").write_text(site.spider())
    assert (await call(tmp_path, "dead", "site", "--why", "killed", "--revive")).code == 0
    ended = await call(tmp_path, *RUN)

    assert ended.code == 0, ended
    assert {row["name"] for row in rows_of(tmp_path / "site.db")} == site.names


async def test_processes_that_die_for_no_page_end_the_run_with_a_word(site: HeldSite, tmp_path: Path):
    modules = '{"trotline.processes.child", "trotline.processes.fork_server"}'
    child_only = f"import os, sys\nif {modules} & {{*sys.orig_argv}}:\n    os._exit(9)\n"
    (tmp_path / "site.py").write_text(child_only + site.spider())
    ended = await call(tmp_path, *RUN)

    assert ended.code == 2, ended
    assert "died 8 times" in ended.err
    (tmp_path / "site.py").write_text(site.spider())
    assert (await call(tmp_path, *RUN)).code == 0
    assert {row["name"] for row in rows_of(tmp_path / "site.db")} == site.names
