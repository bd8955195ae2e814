"""`kill -9` of one of several Scrapy processes at random: which items are lost, with the bridge and with scrapy-redis?

    python -m tests.e2e.scrapy_kills --kills 200 --pages 5000

The same plan for both: a tree of pages, three processes, and a kill whenever so many more items are stored. A process
that was killed is replaced at once. At the end each page must have its item.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from aiohttp import web
from tests.e2e.small_site import serving

from trotline.testing.redis_server import DEBIAN, redis

FAN = 10
"""Links of a page."""
LATENCY = 0.05
BRIDGE, PEER = "Trotline", "scrapy-redis"
WITHIN = 3600.0


@dataclass(frozen=True)
class Plan:
    pages: int
    kills: int
    processes: int
    seed: int


@dataclass(frozen=True)
class Result:
    name: str
    kills: int
    lost: int
    twice: int
    """Items that were stored once more;"""
    unexplained: int = 0
    """of these, after a process had stored them that was not killed."""


def tree(pages: int, *, most: int = 0, gate: asyncio.Event | None = None) -> web.Application:
    """`most`: after so many answers, all others wait for the gate."""
    answered = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal answered
        number = int(request.match_info["number"])
        answered += 1
        if gate is not None and answered > most:
            await gate.wait()
        await asyncio.sleep(LATENCY)
        links = "".join(
            f'<a href="/{child}">{child}</a>'
            for child in range(number * FAN + 1, number * FAN + FAN + 1)
            if child < pages
        )
        return web.Response(text=f"<h1>{number}</h1>{links}", content_type="text/html")

    app = web.Application()
    app.router.add_get("/{number}", answer)
    return app


def settings(name: str, url: str) -> list[str]:
    if name == BRIDGE:
        return [
            "ADDONS={'trotline.bridges.scrapy.Addon': 500}".replace("'", '"'),
            f"TROTLINE={url}",
            "TROTLINE_ONCE=True",
        ]
    return [
        "SCHEDULER=scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS=scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_PERSIST=True",
        f"REDIS_URL={url}",
    ]


class Fleet:
    def __init__(self, folder: Path, site: str, words: Sequence[str]) -> None:
        self.items = folder / "items"
        self._log = folder / "log"
        self._site = site
        self._words = words
        self.running: list[asyncio.subprocess.Process] = []
        self.killed: set[int] = set()

    async def start(self) -> None:
        spider = Path(__file__).parent / "scrapy_project" / "tree.py"
        options = [word for one in self._words for word in ("-s", one)]
        words = [sys.executable, "-W", "ignore", "-m", "scrapy", "runspider", str(spider), *options]
        env = {**os.environ, "SITE": self._site, "ITEMS": str(self.items)}
        with self._log.open("ab") as log:
            self.running.append(await asyncio.create_subprocess_exec(*words, env=env, stdout=log, stderr=log))

    def stored(self) -> list[int]:
        return [page for page, _ in self.rows()]

    def rows(self) -> list[tuple[int, int]]:
        """Page and process of each item, in the order in which they were stored."""
        lines = self.items.read_text().splitlines() if self.items.exists() else []
        return [(int(page), int(process)) for page, process in (line.split() for line in lines)]

    def repeated(self) -> tuple[int, int]:
        """Items that were stored once more, and those of them that no kill explains."""
        last: dict[int, int] = {}
        twice = unexplained = 0
        for page, process in self.rows():
            if page in last:
                twice += 1
                unexplained += last[page] not in self.killed
            last[page] = process
        return twice, unexplained

    async def kill(self, chance: Random) -> bool:
        alive = [one for one in self.running if one.returncode is None]
        if not alive:
            return False
        one = chance.choice(alive)
        self.running.remove(one)
        self.killed.add(one.pid)
        os.kill(one.pid, signal.SIGKILL)
        await one.wait()
        return True

    async def end(self) -> None:
        for one in self.running:
            if one.returncode is None:
                one.kill()
            await one.wait()

    def log(self) -> str:
        return self._log.read_text()[-3000:]


async def run(name: str, url: str, plan: Plan, folder: Path) -> Result:
    chance, killed = Random(plan.seed), 0
    async with serving(tree(plan.pages)) as site, asyncio.timeout(WITHIN):
        fleet = Fleet(folder, site, settings(name, url))
        try:
            for _ in range(plan.processes):
                await fleet.start()
            for number in range(1, plan.kills + 1):
                if not await reached(fleet, number * plan.pages // (plan.kills + 1)):
                    break
                killed += await fleet.kill(chance)
                await fleet.start()
            for one in fleet.running:
                await one.wait()
        finally:
            await fleet.end()
        stored = fleet.stored()
        if not stored:
            print(fleet.log())
        return Result(name, killed, plan.pages - len(set(stored)), *fleet.repeated())


async def reached(fleet: Fleet, items: int) -> bool:
    """False: all processes have ended before."""
    while len(set(fleet.stored())) < items:
        if all(one.returncode is not None for one in fleet.running):
            return False
        await asyncio.sleep(0.05)
    return True


async def compare(plan: Plan, names: Sequence[str]) -> list[Result]:
    results = []
    for name in names:
        with redis(DEBIAN) as server, TemporaryDirectory(prefix="scrapy-kills-") as folder:
            results.append(await run(name, server.url, plan, Path(folder)))
            shown = results[-1]
            print(
                f"{shown.name:14} {shown.kills} kills over {plan.pages:,} pages: items lost {shown.lost:,}, "
                f"stored more than once {shown.twice:,} ({shown.unexplained:,} not explained by a kill)",
                flush=True,
            )
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=(BRIDGE, PEER))
    given = parser.parse_args()
    plan = Plan(given.pages, given.kills, given.processes, given.seed)
    results = asyncio.run(compare(plan, [given.only] if given.only else [BRIDGE, PEER]))
    return 1 if any(one.lost for one in results if one.name == BRIDGE) else 0


if __name__ == "__main__":
    sys.exit(main())
