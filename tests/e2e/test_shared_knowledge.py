"""What the workers of a fleet know together: robots.txt, and the pace that an operator has changed."""

import itertools
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from bench.hosts import ManyHosts, addresses, build
from tests.e2e.fleet_job import eventually
from tests.e2e.running import Running, call, start

from trotline.testing.redis_server import RedisServer, redis

SPIDER = """
import os

from trotline import Page, Spider

crawl = Spider("crawl", pace="100/s")
home = f"http://{os.environ['HOST']}:{os.environ['PORT']}/"

@crawl.page(key="url", seeds=[f"{home}{number}.html" for number in range(int(os.environ["PAGES"]))])
def page(page: Page):
    yield {"url": page.url}
"""
PAGES = 400
GAPS = 16
PACE = 4


@pytest.fixture(scope="module")
def queue() -> Iterator[RedisServer]:
    with redis() as opened:
        yield opened


class Fleet:
    def __init__(self, folder: Path, web: ManyHosts, queue: RedisServer, serving: ExitStack) -> None:
        self.folder, self.web, self.serving = folder, web, serving
        self.lane = f"{web.hosts[0]}:{web.port}"
        self.env = {
            "HOST": web.hosts[0],
            "PORT": str(web.port),
            "PAGES": str(PAGES),
            "TROTLINE_FRONTIER": queue.url,
            "TROTLINE_SINK": f"sqlite:{folder}/rows.db",
            "TROTLINE_ALLOW_PRIVATE": "yes",
        }
        self.workers: list[Running] = []

    async def begin(self, workers: int, processes: int) -> None:
        (self.folder / "crawl.py").write_text(SPIDER)
        await self.call("start", "crawl.py", "--detach")
        for _ in range(workers):
            words = ("work", "crawl.py", "--until-finished", "--quiet", "--processes", str(processes))
            self.workers.append(await start(self.folder, *words, env=self.env))

    async def call(self, *words: str) -> None:
        ended = await call(self.folder, *words, env=self.env)
        assert ended.code == 0, ended

    async def pages(self) -> list[float]:
        """When each page was asked for, by the server's log."""
        return sorted(moment for moment, path in self.asked() if path.endswith(".html"))

    def asked(self) -> list[tuple[float, str]]:
        # The last line may be half written.
        lines = self.web.log.read_text().split("\n")[:-1]
        parts = [line.split(" ", 3) for line in lines]
        return [(float(end) - float(took), path) for end, took, _, path in parts]


@pytest.fixture
async def fleet(tmp_path: Path, queue: RedisServer) -> AsyncIterator[Fleet]:
    queue.command("FLUSHALL")
    site = build(tmp_path / "site", PAGES)
    (site / "robots.txt").write_text("User-agent: *\nDisallow: /admin/\n")
    web = ManyHosts(site, tmp_path / "server")
    web.hosts = addresses(1)
    with ExitStack() as serving:
        serving.enter_context(web)
        opened = Fleet(tmp_path, web, queue, serving)
        yield opened
        for worker in opened.workers:
            if worker.process.returncode is None:
                worker.signal_all(signal.SIGKILL)
                await worker.process.wait()


async def test_eight_workers_read_robots_txt_once_and_a_new_pace_holds_for_all_of_them(fleet: Fleet) -> None:
    await fleet.begin(workers=2, processes=4)
    await eventually(fleet.pages, lambda pages: len(pages) > 20)
    await fleet.call("pace", "--host", fleet.lane, f"{PACE}/s")

    # What was leased before may still come; two long gaps in a row are the new pace. At the old one a busy machine may
    # make a single one.
    def slow(pages: list[float]) -> list[float]:
        long = [later - sooner > 0.6 / PACE for sooner, later in itertools.pairwise(pages)]
        first = next((place for place, pair in enumerate(itertools.pairwise(long)) if all(pair)), None)
        return [] if first is None else pages[first + 1 :]

    changed = len(await fleet.pages())
    seen = await eventually(fleet.pages, lambda pages: len(slow(pages[changed:])) > GAPS)
    held = slow(seen[changed:])[: GAPS + 1]
    assert held[-1] - held[0] >= 0.8 * GAPS / PACE

    await fleet.call("pace", "--host", fleet.lane, "200/s")
    for worker in fleet.workers:
        ended = await worker.end()
        assert ended.code == 0, ended
    # Only then its log is whole.
    fleet.serving.close()
    assert len(await fleet.pages()) == PAGES
    assert [path.rpartition("/")[2] for _, path in fleet.asked()].count("robots.txt") == 1
