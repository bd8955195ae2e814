"""B45: the whole bomb corpus in a process of its own, and how much memory it took."""

import subprocess
import sys

import pytest

from trotline.testing.torture import TortureServer
from trotline.testing.torture.bombs import KINDS

ALLOWED_KIB = 64 * 1024
PATHS = [f"/bomb/{kind}/{mib}" for kind in KINDS for mib in (16, 500, 4000)] + ["/redirect/bomb"]
CHILD = """
import asyncio, re, sys
from pathlib import Path

from trotline.adapters.http.fetcher import HttpFetcher
from trotline.processes import process_memory
from trotline.model.answer import Answer
from trotline.model.limits import Limits
from trotline.model.task import Task


def kib(name):
    return int(re.search(rf"^{name}:\\s+(\\d+) kB", Path("/proc/self/status").read_text(), re.M)[1])


async def main(origin, paths):
    fetcher = HttpFetcher(Limits(), user_agent="t", spider="s", allow_private=True)
    fetch = lambda path: fetcher.fetch(Task(url=origin + path, route="r"))
    for path in ("/body/whole", "/packed/gzip", "/bomb/gzip/1", "/bomb/br/1", "/bomb/zstd/1"):
        assert isinstance(await fetch(path), Answer), path
    base = kib("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    for path in paths:
        outcome = await fetch(path)
        if isinstance(outcome, Answer) and outcome.status == 200:
            assert len(outcome.body) <= 32 * 1024 * 1024, path
    alone = kib("VmHWM") - base
    slots = asyncio.Semaphore(16)

    async def visit(path):
        async with slots:
            await fetch(path)

    await asyncio.gather(*map(visit, paths))
    await fetcher.close()
    print(alone, kib("VmHWM") - base)


process_memory.tune()
asyncio.run(main(sys.argv[1], sys.argv[2:]))
"""


def test_b45_the_whole_bomb_corpus_takes_64_mib_at_most() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("peak memory is read from /proc")
    with TortureServer.in_thread() as server:
        origin = server.url("")
        ran = subprocess.run([sys.executable, "-c", CHILD, origin, *PATHS], capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr
    alone, together = map(int, ran.stdout.split())
    assert alone <= ALLOWED_KIB, f"{alone} KiB one after another"
    assert together <= ALLOWED_KIB, f"{together} KiB with 16 at once"
