"""Make the recordings: `python -m bench.eta.record`. Crawls with the real worker and frontier, on virtual time."""

import asyncio
import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from trotline import Page, Spider
from trotline.config.components import open_gate
from trotline.model.answer import Answer, Failure
from trotline.model.job import Job
from trotline.model.record import Record
from trotline.model.task import LATER, SOON, Task
from trotline.ports.frontier import BEAT
from trotline.rules.eta_bounds import Load
from trotline.testing.clients import sqlite_client
from trotline.testing.frontier_contract import Client
from trotline.testing.virtual_time import run_virtual
from trotline.worker.dependencies import WorkerParts
from trotline.worker.parsing_marker import Marker
from trotline.worker.worker import Worker
from trotline.worker.worker_settings import WorkerPolicy

FOLDER = Path(__file__).parent / "recordings"
EVERY = 0.5
"""Seconds between two looks, as the views of a run have it."""
MOST = 400
"""Samples of one recording; of longer crawls every n-th look is kept."""

Row = tuple[float, int, int, int, int, int, float]
"""Time, waiting, leased, done, dead, admitted, and how long the longest lane takes at its pace."""
Links = Callable[[str], list[str]]


class Crawl(NamedTuple):
    name: str
    pace: str
    seeds: list[str]
    links: Links
    """URL -> the links on that page. What begins with "!" goes later, with "+" sooner."""
    took: Callable[[str, random.Random], float] = lambda _, chance: chance.uniform(0.05, 0.3)
    slow: str = ""
    """A host that gets one page a second."""
    fails: float = 0.0
    """How many of the answers are a 503."""
    admits: float = 0.0
    """Requests per second, beyond which the site answers 429."""
    resumed_at: float = 0.0
    """The run is stopped then, and the recording is that of its second half."""
    concurrency: int = 8


class Site:
    def __init__(self, crawl: Crawl, seed: int) -> None:
        self._crawl = crawl
        self._chance = random.Random(seed)
        self._credit, self._at = 1.0, 0.0

    async def fetch(self, task: Task, way: object = None) -> Answer | Failure:
        if self._crawl.admits and not self._has_credit():
            return Answer(url=task.url, status=429, headers=(("retry-after", "2"),))
        await asyncio.sleep(self._crawl.took(task.url, self._chance))
        if self._chance.random() < self._crawl.fails:
            return Answer(url=task.url, status=503)
        links = "".join(f'<a href="{link}">x</a>' for link in self._crawl.links(task.url))
        headers = (("content-type", "text/html; charset=utf-8"),)
        return Answer(url=task.url, status=200, headers=headers, body=f"<h1>{task.url}</h1>{links}".encode())

    def _has_credit(self) -> bool:
        now = asyncio.get_running_loop().time()
        self._credit = min(self._crawl.admits, self._credit + (now - self._at) * self._crawl.admits)
        self._at = now
        self._credit -= 1.0
        return self._credit >= 0.0

    async def fetch_start(self, task: Task, most: int, way: object = None) -> Answer | Failure:
        return await self.fetch(task)

    async def close(self) -> None:
        """Nothing was opened."""


class NoSink:
    keeps_visits = False

    async def write(self, batch: list[Record], visits: object = ()) -> None:
        """Rows are of no interest here."""

    async def close(self) -> None:
        """Nothing was opened."""


def spider_of(crawl: Crawl) -> Spider:
    lanes: Any = {crawl.slow: "1/s"} if crawl.slow else {}
    spider = Spider("eta", pace=crawl.pace, lanes=lanes, concurrency=crawl.concurrency, robots=False, traps=None)

    @spider.page(seeds=crawl.seeds)
    def page(page: Page) -> Any:
        yield {"name": page.url}
        for link in page.css("a::attr(href)").getall():
            priority = {"!": LATER, "+": SOON}.get(link[0])
            yield page.task(link.lstrip("!+"), **({} if priority is None else {"priority": priority}))

    return spider


async def record(crawl: Crawl, seed: int = 1) -> list[Row]:
    loop = asyncio.get_running_loop()
    spider = spider_of(crawl)
    job = Job(id="eta-1", spider="eta", started_at=0.0, rules=spider.rules)
    frontier = sqlite_client(
        ":memory:", job, now=lambda: 1_000_000.0 + loop.time(), rng=random.Random(seed), inline=True
    )
    gate = open_gate(spider)
    await frontier.put(gate.seeds(list(spider.seeds()), 0.0).tasks)
    await frontier.seal()
    rows: list[Row] = []
    if crawl.resumed_at:
        await _run(crawl, spider, frontier, [], seed, crawl.resumed_at)
        await asyncio.sleep(60.0)
    await _run(crawl, spider, frontier, rows, seed + 1, None)
    await frontier.close()
    return rows


async def _run(crawl: Crawl, spider: Spider, frontier: Client, rows: list[Row], seed: int, until: float | None) -> None:
    tools = WorkerParts(
        job="eta-1",
        frontier=frontier,
        fetcher=Site(crawl, seed),
        sink=NoSink(),
        gate=open_gate(spider),
        marker=Marker(),
        chance=random.Random(seed),
    )
    worker = Worker(f"w{seed}", spider, tools, WorkerPolicy(slots=32, batch=16, grace=5.0))
    working = asyncio.create_task(worker.run())
    others = [asyncio.create_task(_look(frontier, rows)), asyncio.create_task(_beat(frontier, f"w{seed}"))]
    if until is not None:
        await asyncio.sleep(until)
        worker.stop()
    await working
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await frontier.leave(f"w{seed}")
    rows.append(await _row(frontier, rows))


async def _look(frontier: Client, rows: list[Row]) -> None:
    while True:
        rows.append(await _row(frontier, rows))
        await asyncio.sleep(EVERY)


async def _row(frontier: Client, rows: list[Row]) -> Row:
    progress = await frontier.progress()
    floor = max((Load(lane.waiting, lane.interval, lane.rests_for).floor for lane in await frontier.lanes()), default=0)
    now = asyncio.get_running_loop().time()
    began = _BEGAN.setdefault(id(rows), now)
    counts = (progress.waiting, progress.leased, progress.done, progress.dead, progress.admitted)
    return (round(now - began, 2), *counts, round(floor, 2))


_BEGAN: dict[int, float] = {}


async def _beat(frontier: Client, worker: str) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            await frontier.beat(worker)
            await asyncio.sleep(BEAT)


def thinned(rows: list[Row]) -> list[Row]:
    step = -(-len(rows) // MOST)
    return [*rows[:-1:step], rows[-1]]


# --- the crawls ------------------------------------------------------------------------------------------------------


def flat(count: int, host: str = "a.test") -> list[str]:
    return [f"http://{host}/p/{number}" for number in range(count)]


def _catalog(url: str) -> list[str]:
    parts = url.split("/")[3:]
    if parts == ["catalog"]:
        return [f"!http://a.test/list/{number}" for number in range(40)]
    if parts[0] == "list":
        return [f"+http://a.test/product/{parts[1]}-{number}" for number in range(12)]
    return []


def _deep(url: str) -> list[str]:
    number = int(url.rsplit("/", 1)[1])
    return [f"http://a.test/page/{number + 1}"] if number < 240 else []


def _closure(url: str) -> list[str]:
    """A site of 900 pages that link to each other at random: discoveries grow fewer."""
    chance = random.Random(url)
    return [f"http://a.test/{chance.randrange(900)}" for _ in range(5)]


def _bursty(url: str) -> list[str]:
    kind, number = url.split("/")[3:5]
    if kind == "section":
        pages = [f"http://a.test/item/{number}-{page}" for page in range(60)]
        return [*pages, f"!http://a.test/section/{int(number) + 1}"] if int(number) < 5 else pages
    return []


CRAWLS = [
    Crawl("flat list", "5/s", ["http://a.test/"], lambda url: flat(400) if url.endswith("test/") else []),
    Crawl("deep pagination", "4/s", ["http://a.test/page/1"], _deep),
    Crawl("catalog with two levels", "5/s", ["http://a.test/catalog"], _catalog),
    Crawl(
        "many hosts",
        "1/s",
        [url for host in range(30) for url in flat(10 + 7 * (host % 11), f"h{host}.test")],
        lambda _: [],
    ),
    Crawl("throttled host", "20/s", flat(500), lambda _: [], admits=4.0),
    Crawl("retries", "5/s", flat(400), lambda _: [], fails=0.1),
    Crawl("short job of 20 s", "3/s", flat(60), lambda _: []),
    Crawl(
        "long tail on one slow host",
        "10/s",
        [*flat(600), *flat(150, "slow.test")],
        lambda _: [],
        slow="slow.test",
    ),
    Crawl("bursty discovery", "6/s", ["http://a.test/section/0"], _bursty),
    Crawl("resume", "5/s", flat(600), lambda _: [], resumed_at=50.0),
    Crawl("closure of a site", "8/s", ["http://a.test/0"], _closure),
]


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for crawl in CRAWLS:
        rows = thinned(run_virtual(record(crawl)))
        path = FOLDER / f"{crawl.name.replace(' ', '-')}.json"
        path.write_text(json.dumps({"name": crawl.name, "rows": rows}, separators=(",", ":")) + "\n")
        print(f"{crawl.name}: {rows[-1][0]:.0f} s, {rows[-1][5]} tasks, {len(rows)} samples")


if __name__ == "__main__":
    main()
