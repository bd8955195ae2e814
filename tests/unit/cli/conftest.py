"""A command line in an empty folder, and a job that commands can show."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trotline.cli import main as cli
from trotline.config.backends import open_frontier, open_jobs
from trotline.model.job import LaneRules
from trotline.model.lease import Reject, Settlement
from trotline.model.outcome import Bury, Done
from trotline.model.pace import Pace, Rate
from trotline.model.task import Task
from trotline.testing.frontier_contract import client

SPIDER = """
from trotline import Spider

shop = Spider("shop")


@shop.page(seeds=["https://shop.example/"])
def listing(page):
    yield {}


@shop.page
def product(page):
    yield {}
"""
FRONTIER = "sqlite:.trotline/shop.frontier.db"

Said = tuple[int, str, str]
Call = Callable[..., Said]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """A command line in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def make(*words: str) -> Said:
        code = cli.call(words)
        said = capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        return code, said.out, said.err

    yield make
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
async def job(call: Call) -> str:
    """A job with one done, one waiting and two dead tasks, and one bad record."""
    pace = Pace(rate=Rate(1000.0))
    jobs = await open_jobs(FRONTIER)
    started = await jobs.start("shop", LaneRules(default=pace))
    await jobs.close()
    frontier = client(await open_frontier(FRONTIER, started))
    urls = ["https://me:secret@shop.example/a\x1b[2J", "https://shop.example/b", "https://shop.example/c"]
    tasks = [Task(url=url, route="product", lane="shop.example", fingerprint=n + 1) for n, url in enumerate(urls)]
    await frontier.put(tasks)
    leases = []
    while len(leases) < 3:
        leases += await frontier.lease("w", 3, wait=1.0)
    outcomes = [Bury("blocked: 403", "server: nginx\x1b[31m"), Bury("broken: 503"), Done()]
    rejects = (Reject("product", "price: not a number", '{"price":"x"}'),)
    order = {lease.task.fingerprint: lease for lease in leases}
    await frontier.settle(
        "w",
        [Settlement(order[n + 1], outcome, rejects=rejects if n == 2 else ()) for n, outcome in enumerate(outcomes)],
    )
    await frontier.put([Task(url="https://shop.example/d", route="product", lane="shop.example", fingerprint=9)])
    await frontier.close()
    return started.id
