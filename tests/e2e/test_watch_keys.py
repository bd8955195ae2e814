"""`trotline watch` in a real terminal: the screens that keys choose, and what they do to the job."""

import asyncio
import contextlib
import os
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.e2e.running import Ended, call, start

SITE = """
from trotline import Spider

spider = Spider("slow", pace="1/m")


@spider.page(seeds=[f"http://127.0.0.1:9/{n}" for n in range(12)])
def home(page):
    yield {"title": page.url}
"""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Shows `trotline watch`, types, and reads the screen."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.shown = ""

    def type(self, keys: str) -> None:
        self.shown = ""
        os.write(self._descriptor, keys.encode())

    def read(self) -> None:
        # On Linux the end of a terminal shows as an error.
        with contextlib.suppress(OSError):
            self.shown += _ESCAPES.sub("", os.read(self._descriptor, 1 << 16).decode())

    async def until(self, text: str) -> None:
        deadline = time.monotonic() + 20
        while text not in self.shown:
            assert time.monotonic() < deadline, f"no {text!r} in {self.shown[-3000:]}"
            await asyncio.sleep(0.05)


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    (tmp_path / "slow.py").write_text(SITE)
    ended = await call(tmp_path, "start", "slow.py", "--detach")
    assert ended.code == 0, ended
    return tmp_path


@contextlib.asynccontextmanager
async def watching(folder: Path) -> AsyncIterator[tuple[Terminal, "asyncio.Task[Ended]"]]:
    ours, theirs = os.openpty()
    running = await start(folder, "watch", "slow", env={"TERM": "xterm-256color"}, stdin=theirs, stdout=theirs)
    os.close(theirs)
    terminal = Terminal(ours)
    loop = asyncio.get_running_loop()
    loop.add_reader(ours, terminal.read)
    ending = asyncio.create_task(running.end())
    try:
        yield terminal, ending
    finally:
        loop.remove_reader(ours)
        os.close(ours)


async def _state(folder: Path) -> str:
    return (await call(folder, "watch", "slow", "--once")).out.split()[1].rstrip(",")


async def test_keys_choose_what_is_seen_and_end_the_view(folder: Path) -> None:
    async with watching(folder) as (terminal, ending):
        await terminal.until("waiting 12")
        terminal.type("l")
        await terminal.until("127.0.0.1:9")
        terminal.type("i")
        await terminal.until("no visits in flight")
        terminal.type("e")
        await terminal.until("no errors")
        terminal.type("q")
        ended = await asyncio.wait_for(ending, 20)
    assert ended.code == 0, ended


async def test_a_job_is_paused_by_the_second_press_only(folder: Path) -> None:
    async with watching(folder) as (terminal, ending):
        await terminal.until("waiting 12")
        terminal.type("p")
        await terminal.until("pause slow-1? Press p again")
        assert await _state(folder) != "paused"
        terminal.type("lj")
        await terminal.until("q quit")
        terminal.type("p")
        await terminal.until("Press p again")
        terminal.type("p")
        await terminal.until("p resumes")
        assert await _state(folder) == "paused"
        terminal.type("p")
        await terminal.until("resume slow-1? Press p again")
        terminal.type("p")
        await terminal.until("resumed")
        assert await _state(folder) != "paused"
        terminal.type("q")
        await asyncio.wait_for(ending, 20)
