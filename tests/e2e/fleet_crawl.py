"""A job over many hosts of a real nginx, done by real workers on real servers, and the books afterwards.

Whoever strikes a fleet asks the same questions in the end: is every page there, is anything there that should not be,
do the frontier's books balance, and how often was which page fetched?
"""

import asyncio
import signal
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
from bench.hosts import ManyHosts, addresses, build
from tests.e2e.running import WITHIN, Running, call, start

from trotline.config import backends
from trotline.errors import FrontierError
from trotline.model.job import Progress
from trotline.testing.frontier_contract import Client, client

T = TypeVar("T")

SPIDER = """
import asyncio
import os

from trotline import Page, Spider, TrapRules

port, names = os.environ["CRAWL_PORT"], os.environ["CRAWL_HOSTS"].split(",")
seeds = [f"http://{name}:{port}/{number}.html" for name in names for number in range(int(os.environ["CRAWL_SEEDS"]))]
at_once = int(os.environ["CRAWL_AT_ONCE"])
crawl = Spider(
    "crawl", pace=os.environ["CRAWL_PACE"], concurrency=at_once, robots=False, retries=50,
    # Each page leads to the next three, and they all read the same.
    max_depth=100_000, traps=TrapRules(same_text=0),
)


@crawl.page(key="url", seeds=seeds)
async def page(page: Page):
    # Somebody must be at something when the fault comes.
    await asyncio.sleep(float(os.environ["CRAWL_THINKS"]))
    yield {"url": page.url, "title": page.css("h1::text").get(), "by": os.getppid()}
    yield page.follow("a")
"""


@dataclass(frozen=True)
class Terms:
    """How large the job is, and how fast it may be done."""

    hosts: int = 8
    pages: int = 40
    """Of each host."""
    seeds: int = 1
    """How many of these pages nobody has to find."""
    pace: str = "5/s"
    at_once: int = 8
    """Pages of one host at the same time."""
    thinks: float = 0.05
    """Seconds that the spider takes for a page."""

    @property
    def all_pages(self) -> int:
        return self.hosts * self.pages


@dataclass
class Books:
    """What became of everything."""

    wanted: set[str]
    rows: list[str]
    """The URL of each row."""
    progress: Progress
    visits: list[dict[str, Any]]
    """The ledger."""
    fetched: dict[str, list[float]] = field(default_factory=dict)
    """When each page was asked for, by the web server's log."""

    @property
    def lost(self) -> int:
        return len(self.wanted - set(self.rows))

    @property
    def unexpected(self) -> int:
        return len(set(self.rows) - self.wanted)

    @property
    def duplicated(self) -> int:
        return len(self.rows) - len(set(self.rows))

    @property
    def again(self) -> int:
        """Fetches of pages that had been fetched before."""
        return sum(len(moments) - 1 for moments in self.fetched.values())

    @property
    def refused(self) -> int:
        """Visits that went well and were too late: somebody else had the task."""
        return sum(visit["outcome"] == "done" for visit in self.visits) - self.progress.done

    @property
    def trouble(self) -> str:
        """What is wrong; empty if nothing is."""
        progress = self.progress
        faults = {
            "lost": self.lost,
            "unexpected": self.unexpected,
            "duplicated": self.duplicated,
            "left": progress.waiting + progress.leased,
            "dead": progress.dead,
            "not done once": progress.done - len(self.wanted),
            "not finished": int(progress.finished_at is None),
        }
        return ", ".join(f"{name} {count}" for name, count in faults.items() if count)


@dataclass
class Crawl:
    """A job that is started, with commands that know where it is."""

    folder: Path
    terms: Terms
    site: ManyHosts
    frontier_url: str
    sink_url: str
    stack: AsyncExitStack
    workers: list[Running] = field(default_factory=list)
    _frontier: Client | None = None

    @property
    def environment(self) -> dict[str, str]:
        return {
            "CRAWL_PORT": str(self.site.port),
            "CRAWL_HOSTS": ",".join(self.site.hosts),
            "CRAWL_SEEDS": str(self.terms.seeds),
            "CRAWL_PACE": self.terms.pace,
            "CRAWL_AT_ONCE": str(self.terms.at_once),
            "CRAWL_THINKS": str(self.terms.thinks),
            "TROTLINE_FRONTIER": self.frontier_url,
            "TROTLINE_SINK": self.sink_url,
            "TROTLINE_ALLOW_PRIVATE": "yes",
        }

    async def begin(self) -> None:
        (self.folder / "crawl.py").write_text(SPIDER)
        ended = await call(self.folder, "start", "crawl.py", "--detach", env=self.environment)
        assert ended.code == 0, ended

    async def worker(self, *words: str, folder: Path | None = None, env: dict[str, str] | None = None) -> Running:
        """A worker that ends with the job. `folder`: where its spider is, if that is another version."""
        command = ["work", "crawl.py", "--until-finished", *words]
        if "--json" not in words:
            command.append("--quiet")
        running = await start(folder or self.folder, *command, env={**self.environment, **(env or {})})
        self.workers.append(running)
        return running

    async def frontier(self) -> Client:
        if self._frontier is None:
            self._frontier = await newest(self.frontier_url)
            self.stack.push_async_callback(self._frontier.close)
        return self._frontier

    async def progress(self) -> Progress:
        return await (await self.frontier()).progress()

    async def until(self, fits: Callable[[Progress], bool], within: float = WITHIN) -> Progress:
        """The job's books once they fit."""
        return await eventually(self.progress, fits, within)

    async def done(self, more: int) -> Progress:
        """When that many more pages are done than now."""
        now = (await self.progress()).done
        return await self.until(lambda progress: progress.done >= now + more)

    async def ended(self) -> None:
        """When the job is finished, and every worker that was not killed has ended well."""
        for worker in self.workers:
            end = await worker.end()
            assert end.code in (0, -signal.SIGKILL), end
        await self.until(lambda progress: progress.finished_at is not None)

    async def books(self) -> Books:
        """The site is closed for it: only then its log is whole."""
        progress = await self.progress()
        self.site.__exit__(None, None, None)
        url, _, schema = self.sink_url.partition("?schema=")
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(f"SET search_path TO {schema or 'public'}")
            rows = [row["url"] for row in await connection.fetch("SELECT url FROM records")]
            visits = [dict(row) for row in await connection.fetch("SELECT * FROM visits ORDER BY leased_at")]
        finally:
            await connection.close()
        wanted = {
            f"http://{name}:{self.site.port}/{number}.html"
            for name in self.site.hosts
            for number in range(self.terms.pages)
        }
        return Books(wanted, rows, progress, visits, fetched(self.site))


async def eventually(look: Callable[[], Awaitable[T]], fits: Callable[[T], bool], within: float = WITHIN) -> T:
    """What is seen once it fits; a frontier that is away is asked again."""
    async with asyncio.timeout(within):
        while True:
            with suppress(FrontierError):
                seen = await look()
                if fits(seen):
                    return seen
            await asyncio.sleep(0.02)


async def newest(frontier_url: str) -> Client:
    """The frontier of the newest job, as an operator sees it."""
    jobs = await backends.open_jobs(frontier_url)
    try:
        job = (await jobs.all())[-1]
    finally:
        await jobs.close()
    return client(await backends.open_frontier(frontier_url, job))


def fetched(site: ManyHosts) -> dict[str, list[float]]:
    """When each page was asked for, in the order of time."""
    found: dict[str, list[float]] = defaultdict(list)
    for line in site.log.read_text().splitlines():
        end, took, _status, address = line.split(" ", 3)
        found[address].append(float(end) - float(took))
    for moments in found.values():
        moments.sort()
    return found


@asynccontextmanager
async def crawl(
    folder: Path, frontier: str, sink: str, terms: Terms, hosts: Sequence[str] = ()
) -> AsyncIterator[Crawl]:
    """A job that is seeded and has no worker yet. `hosts`: addresses of the site, if not those of this machine."""
    site = ManyHosts(build(folder / "site", terms.pages), folder / "server")
    site.hosts = hosts or addresses(terms.hosts)
    async with AsyncExitStack() as stack:
        site.__enter__()
        opened = Crawl(folder, terms, site, frontier, sink, stack)
        try:
            await opened.begin()
            yield opened
        finally:
            for worker in opened.workers:
                if worker.process.returncode is None:
                    worker.signal_all(signal.SIGKILL)
                    await worker.process.wait()
            if site.process is not None and site.process.returncode is None:
                site.__exit__(None, None, None)
