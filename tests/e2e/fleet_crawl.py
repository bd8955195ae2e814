"""A job over many hosts of a real nginx, done by real workers on real servers, and the books afterwards.

Whoever strikes a fleet asks the same questions in the end: is every page there, is anything there that should not be,
do the frontier's books balance, and how often was which page fetched?
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.hosts import ManyHosts, addresses, build
from tests.e2e.fleet_job import FleetJob, faults, named

from trotline.model.job import Progress

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
    def faults(self) -> dict[str, int]:
        return faults(self.wanted, self.rows, self.progress)

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
        return named(self.faults)


@dataclass
class Crawl(FleetJob):
    """The pages of a site with many hosts."""

    terms: Terms
    site: ManyHosts

    spider = "crawl.py"
    text = SPIDER

    @property
    def environment(self) -> dict[str, str]:
        return {
            "CRAWL_PORT": str(self.site.port),
            "CRAWL_HOSTS": ",".join(self.site.hosts),
            "CRAWL_SEEDS": str(self.terms.seeds),
            "CRAWL_PACE": self.terms.pace,
            "CRAWL_AT_ONCE": str(self.terms.at_once),
            "CRAWL_THINKS": str(self.terms.thinks),
            **super().environment,
        }

    async def books(self) -> Books:
        """The site is closed for it: only then its log is whole."""
        progress = await self.progress()
        self.site.__exit__(None, None, None)
        rows, visits = await self.select("SELECT url FROM records", "SELECT * FROM visits ORDER BY leased_at")
        wanted = {
            f"http://{name}:{self.site.port}/{number}.html"
            for name in self.site.hosts
            for number in range(self.terms.pages)
        }
        return Books(wanted, [row["url"] for row in rows], progress, visits, fetched(self.site))


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
    site.__enter__()
    try:
        async with Crawl(folder, frontier, sink, terms, site).begun() as opened:
            yield opened
    finally:
        if site.process is not None and site.process.returncode is None:
            site.__exit__(None, None, None)
