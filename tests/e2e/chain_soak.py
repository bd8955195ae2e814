"""Chains on a fleet whose workers are killed at random: was every step visited after the one before it was done?

    python -m tests.e2e.chain_soak --chains 1000 --steps 20 --workers 5

The steps of a chain go from host to host. The first half of them are seeds, each of the others is found on the page
before it. Some pages answer 503 at first. The site's log tells in which order steps were asked for: once a step was,
none before it is asked for again, however often a worker dies. The database tells which rows there are.
"""

import argparse
import asyncio
import json
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg
from aiohttp import web
from tests.e2e.fleet import Servers, servers
from tests.e2e.fleet_crawl import newest
from tests.e2e.fleet_soak import Account, Fleet
from tests.e2e.running import Running, call, start
from xxhash import xxh3_64_intdigest

from trotline.model.job import Progress
from trotline.testing.frontier_contract import Client
from trotline.testing.servers import listen

HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
SPIDER = """
import asyncio
import os

from trotline import FileSeeds, Page, Spider

hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
chains = Spider("chains", pace="1000/s", concurrency=200, robots=False, retries=50, max_depth=100_000, hosts=hosts)


@chains.page(key="url", seeds=FileSeeds("seeds.jsonl"))
async def step(page: Page):
    # Somebody must be at something when the kill comes.
    await asyncio.sleep(float(os.environ["CHAIN_THINKS"]))
    yield {"url": page.url}
    for url in page.links("a"):
        yield step.task(url, chain=page.chain)
"""


@dataclass
class Plan:
    """How much is asked of the fleet."""

    chains: int = 1000
    steps: int = 20
    workers: int = 5
    kills: int = 40
    slots: int = 16
    thinks: float = 0.05
    trouble: int = 100
    """One page of so many answers 503 at first."""
    at: str = "0.5-1.5"
    """Seconds from one kill to the next, the least and the most."""
    seed: int = 1
    patience: float = 3600.0

    @property
    def pauses(self) -> tuple[float, float]:
        least, _, most = self.at.partition("-")
        return float(least), float(most or least)

    @property
    def seeded(self) -> int:
        """Steps of a chain that are seeds."""
        return max(1, self.steps // 2)


class ChainSite:
    """`/CHAIN/STEP` on several hosts, with a log of what was asked for."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.log: dict[str, list[int]] = defaultdict(list)
        """Of each chain the steps, in the order in which they were asked for."""
        self.failed: Counter[str] = Counter()
        self.answered: set[tuple[str, int]] = set()
        self.early: list[str] = []
        """Steps that were asked for before the one in front of them was answered."""

    async def __aenter__(self) -> "ChainSite":
        sockets = listen(list(HOSTS))
        application = web.Application()
        application.router.add_get("/{chain}/{step:\\d+}", self._answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        for socket in sockets:
            await web.SockSite(self._runner, socket).start()
        self.port = sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def url(self, chain: int, step: int) -> str:
        return f"http://{HOSTS[(chain + step) % len(HOSTS)]}:{self.port}/c{chain}/{step}"

    async def _answer(self, request: web.Request) -> web.Response:
        chain, step = request.match_info["chain"], int(request.match_info["step"])
        self.log[chain].append(step)
        if step and (chain, step - 1) not in self.answered:
            self.early.append(request.path)
        if self._is_troubled(request.path) and not self.failed[request.path]:
            self.failed[request.path] += 1
            return web.Response(status=503, text="come back later")
        self.answered.add((chain, step))
        following = step + 1
        link = ""
        if self._plan.seeded <= following < self._plan.steps:
            link = f'<a href="{self.url(int(chain[1:]), following)}">next</a>'
        return web.Response(text=f"<h1>{request.path}</h1>{link}", content_type="text/html")

    def _is_troubled(self, path: str) -> bool:
        return bool(self._plan.trouble) and xxh3_64_intdigest(path.encode()) % self._plan.trouble == 0

    @property
    def overtaken(self) -> list[str]:
        """Steps that were asked for after a later one of their chain, or with a gap."""
        return [
            f"{chain}/{now} after {before}"
            for chain, steps in self.log.items()
            for before, now in zip([-1, *steps], steps, strict=False)
            if not before <= now <= before + 1
        ]


@dataclass
class ChainJob:
    """The job, for `fleet_soak.Fleet`."""

    folder: Path
    plan: Plan
    site: ChainSite
    frontier_url: str
    sink_url: str
    stack: AsyncExitStack
    workers: list[Running] = field(default_factory=list)
    _frontier: Client | None = None

    @property
    def environment(self) -> dict[str, str]:
        return {
            "CHAIN_THINKS": str(self.plan.thinks),
            "TROTLINE_FRONTIER": self.frontier_url,
            "TROTLINE_SINK": self.sink_url,
            "TROTLINE_ALLOW_PRIVATE": "yes",
        }

    async def begin(self) -> None:
        (self.folder / "chains.py").write_text(SPIDER)
        # Step by step, not chain by chain: in the order of seeds the chains are mixed.
        seeds = [
            {"url": self.site.url(chain, step), "chain": f"c{chain}"}
            for step in range(self.plan.seeded)
            for chain in range(self.plan.chains)
        ]
        (self.folder / "seeds.jsonl").write_text("".join(json.dumps(seed) + "\n" for seed in seeds))
        ended = await call(self.folder, "start", "chains.py", "--detach", env=self.environment)
        assert ended.code == 0, ended

    async def worker(self, *words: str) -> Running:
        command = ["work", "chains.py", "--until-finished", "--quiet", *words]
        running = await start(self.folder, *command, env=self.environment)
        self.workers.append(running)
        return running

    async def frontier(self) -> Client:
        if self._frontier is None:
            self._frontier = await newest(self.frontier_url)
            self.stack.push_async_callback(self._frontier.close)
        return self._frontier

    async def rows(self) -> list[str]:
        url, _, schema = self.sink_url.partition("?schema=")
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(f"SET search_path TO {schema or 'public'}")
            return [row["url"] for row in await connection.fetch("SELECT url FROM records")]
        finally:
            await connection.close()


@dataclass
class Result:
    plan: Plan
    account: Account
    site: ChainSite
    progress: Progress
    rows: list[str]

    @property
    def trouble(self) -> str:
        """What is wrong; empty if nothing is."""
        wanted = {self.site.url(chain, step) for chain in range(self.plan.chains) for step in range(self.plan.steps)}
        progress = self.progress
        faults = {
            "overtaken": len(self.site.overtaken),
            "before their turn": len(self.site.early),
            "lost": len(wanted - set(self.rows)),
            "unexpected": len(set(self.rows) - wanted),
            "duplicated": len(self.rows) - len(set(self.rows)),
            "left": progress.waiting + progress.leased,
            "dead": progress.dead,
            "not done once": progress.done - len(wanted),
            "not finished": int(progress.finished_at is None),
        }
        return ", ".join(f"{name} {count}" for name, count in faults.items() if count)

    def __str__(self) -> str:
        fetches = sum(map(len, self.site.log.values()))
        pages = self.plan.chains * self.plan.steps
        lines = [
            f"{self.plan.chains} chains of {self.plan.steps} steps, {self.plan.workers} workers,"
            f" {self.account.kills} kills: {self.account.seconds:.0f} s, {pages / self.account.seconds:.0f} steps/s",
            f"{fetches} fetches, {sum(self.site.failed.values())} of them answered 503; {len(self.rows)} rows;"
            f" overtaken {len(self.site.overtaken)}, before their turn {len(self.site.early)}",
        ]
        return "\n".join([*lines, *([f"WRONG: {self.trouble} {self.site.overtaken[:5]}"] if self.trouble else [])])


@asynccontextmanager
async def chain_job(plan: Plan, folder: Path, frontier: str, sink: str) -> AsyncIterator[ChainJob]:
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(ChainSite(plan))
        job = ChainJob(folder, plan, site, frontier, sink, stack)
        try:
            await job.begin()
            yield job
        finally:
            for worker in job.workers:
                if worker.process.returncode is None:
                    worker.signal_all(signal.SIGKILL)
                    await worker.process.wait()


async def soak(plan: Plan, opened: Servers, folder: Path) -> Result:
    async with chain_job(plan, folder, *opened.places()) as job:
        fleet = Fleet(plan, job)  # type: ignore[arg-type]
        started = time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(plan.patience), asyncio.TaskGroup() as group:
                striking = group.create_task(fleet.strike())
                await asyncio.gather(*(group.create_task(fleet.keep(place)) for place in range(plan.workers)))
                striking.cancel()
        fleet.account.seconds = time.monotonic() - started
        progress = await (await job.frontier()).progress()
        return Result(plan, fleet.account, job.site, progress, await job.rows())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.chain_soak", description=__doc__)
    for name, usual in vars(Plan()).items():
        parser.add_argument(f"--{name}", type=type(usual), default=usual, help=f"[default: {usual}]")
    # A polite end, whoever asks for it: the servers must not outlive us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    plan = Plan(**vars(parser.parse_args()))
    with servers() as opened, TemporaryDirectory(prefix="trotline-chains-") as folder:
        result = asyncio.run(soak(plan, opened, Path(folder)))
    print(result)
    return 1 if result.trouble else 0


if __name__ == "__main__":
    sys.exit(main())
