"""`trotline try` on pages and robots files that hang or crash: it ends, and says what it was reading."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.running import call, start

HANG = "def hang(*_):\n    while True: pass\n"
NO_MEMORY = """
import selectolax.lexbor
import trotline.spider.page

def fail(source):
    raise selectolax.lexbor.SelectolaxError("Can't parse HTML.")

trotline.spider.page.LexborHTMLParser = fail
"""
WAYS = {
    "its page took longer than 1 s": "while True: pass",
    "its page crashed the worker (SIGSEGV)": "ctypes.string_at(0)",
    "its page crashed the worker (SIGABRT)": "os.abort()",
}


@pytest.fixture
async def site() -> AsyncIterator[HeldSite]:
    async with HeldSite(pages=1, held=("slow",)) as opened:
        yield opened


def spider(site: HeldSite, deed: str, form: str = "def") -> str:
    text = site.spider(more="limits=Limits(parse=1.0)")
    return "import ctypes, os\n" + text.replace("def page(page: Page):\n", f"{form} page(page: Page):\n    {deed}\n")


@pytest.mark.parametrize("said", WAYS)
@pytest.mark.parametrize("form", ["def", "async def"])
async def test_a_page_that_hangs_or_crashes_ends_in_one_message(
    site: HeldSite, tmp_path: Path, said: str, form: str
) -> None:
    (tmp_path / "site.py").write_text(spider(site, WAYS[said], form))
    ended = await call(tmp_path, "try", "site.py", "--allow-private")

    assert ended.code == 3, ended
    assert f"error: killed: reading {said}" in ended.err
    assert "Limits(parse=...)" in ended.err


async def test_a_robots_file_that_hangs_is_named(site: HeldSite, tmp_path: Path) -> None:
    text = "import trotline.adapters.http.robots as robots\n" + HANG
    text += "robots.RobotsTxt._parse = hang\n"
    (tmp_path / "site.py").write_text(text + spider(site, "pass"))
    site.robots = "User-agent: *\nDisallow: /x\n"
    ended = await call(tmp_path, "try", "site.py", "--allow-private")

    assert ended.code == 3, ended
    assert "reading its robots.txt took longer than 1 s" in ended.err


@pytest.mark.parametrize(("command", "code"), [("try", 3), ("run", 3)])
async def test_a_page_that_the_parser_has_no_memory_for_is_named(
    site: HeldSite, tmp_path: Path, command: str, code: int
) -> None:
    """Whatever a page does to the parser, it is no mistake of Trotline."""
    (tmp_path / "site.py").write_text(NO_MEMORY + site.spider().replace("yield", "page.css('p'); yield", 1))
    ended = await call(tmp_path, command, "site.py", "--allow-private")

    assert ended.code == code, ended
    assert "mistake in Trotline" not in ended.err
    wanted = "needs more memory than this process may use" if command == "try" else "used more than 1,024 MiB"
    assert wanted in ended.out + ended.err


async def test_a_page_that_waits_for_its_site_is_not_taken_for_one_that_hangs(site: HeldSite, tmp_path: Path) -> None:
    (tmp_path / "site.py").write_text(spider(site, "pass"))
    running = await start(tmp_path, "try", "site.py", "page", f"{site.url}/held/slow", "--allow-private")
    await site.arrived()
    # Longer than the parse budget: waiting is not reading.
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(running.process.wait()), 1.5)
    site.release()

    assert (await running.end()).code == 0


async def test_an_interrupt_ends_it(site: HeldSite, tmp_path: Path) -> None:
    (tmp_path / "site.py").write_text(spider(site, "pass"))
    running = await start(tmp_path, "try", "site.py", "page", f"{site.url}/held/slow", "--allow-private")
    await site.arrived()
    running.signal_all(signal.SIGINT)

    ended = await running.end()
    assert ended.code == 130, ended
    assert "interrupted" in ended.err
