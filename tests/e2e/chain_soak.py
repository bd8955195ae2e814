"""Chains on a fleet whose workers are killed at random: was every step visited after the one before it was done?

    python -m tests.e2e.chain_soak --chains 1000 --steps 20 --workers 5

The steps of a chain go from host to host. The first half of them are seeds, each of the others is found on the page
before it. Some pages answer 503 at first. The site's log tells in which order steps were asked for: once a step was,
none before it is asked for again, however often a worker dies. The database tells which rows there are.
"""

import asyncio
import json
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from aiohttp import web
from tests.e2e.fleet import Servers, servers
from tests.e2e.fleet_job import FleetJob, faults, named
from tests.e2e.fleet_kills import KillPlan, Kills, plan_of_arguments, strike
from tests.e2e.small_site import serving
from xxhash import xxh3_64_intdigest

from trotline.model.job import Progress

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


@dataclass(kw_only=True)
class Plan(KillPlan):
    """How much is asked of the fleet."""

    chains: int = 1000
    steps: int = 20
    workers: int = 5
    kills: int = 40
    slots: int = 16
    trouble: int = 100
    """One page of so many answers 503 at first."""
    at: str = "0.5-1.5"
    patience: float = 3600.0

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
        application = web.Application()
        application.router.add_get("/{chain}/{step:\\d+}", self._answer)
        self._serving = serving(application, HOSTS)
        self.port = int((await self._serving.__aenter__()).rpartition(":")[2])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._serving.__aexit__(None, None, None)

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
class ChainJob(FleetJob):
    """The chains of a site."""

    plan: Plan
    site: ChainSite

    spider = "chains.py"
    text = SPIDER

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "CHAIN_THINKS": str(self.plan.thinks)}

    async def begin(self) -> None:
        # Step by step, not chain by chain: in the order of seeds the chains are mixed.
        seeds = [
            {"url": self.site.url(chain, step), "chain": f"c{chain}"}
            for step in range(self.plan.seeded)
            for chain in range(self.plan.chains)
        ]
        (self.folder / "seeds.jsonl").write_text("".join(json.dumps(seed) + "\n" for seed in seeds))
        await super().begin()


@dataclass
class Result:
    plan: Plan
    killed: Kills
    site: ChainSite
    progress: Progress
    rows: list[str]

    @property
    def trouble(self) -> str:
        """What is wrong; empty if nothing is."""
        wanted = {self.site.url(chain, step) for chain in range(self.plan.chains) for step in range(self.plan.steps)}
        return named(
            {
                "overtaken": len(self.site.overtaken),
                "before their turn": len(self.site.early),
                **faults(wanted, self.rows, self.progress),
            }
        )

    def __str__(self) -> str:
        fetches = sum(map(len, self.site.log.values()))
        pages = self.plan.chains * self.plan.steps
        lines = [
            f"{self.plan.chains} chains of {self.plan.steps} steps, {self.plan.workers} workers,"
            f" {self.killed.kills} kills: {self.killed.seconds:.0f} s, {pages / self.killed.seconds:.0f} steps/s",
            f"{fetches} fetches, {sum(self.site.failed.values())} of them answered 503; {len(self.rows)} rows;"
            f" overtaken {len(self.site.overtaken)}, before their turn {len(self.site.early)}",
        ]
        return "\n".join([*lines, *([f"WRONG: {self.trouble} {self.site.overtaken[:5]}"] if self.trouble else [])])


async def soak(plan: Plan, opened: Servers, folder: Path) -> Result:
    async with ChainSite(plan) as site, ChainJob(folder, *opened.places(), plan, site).begun() as job:
        killed = await strike(plan, job)
        [rows] = await job.select("SELECT url FROM records")
        return Result(plan, killed, site, await job.progress(), [row["url"] for row in rows])


def main() -> int:
    plan = plan_of_arguments(Plan(), "tests.e2e.chain_soak", __doc__)
    with servers() as opened, TemporaryDirectory(prefix="trotline-chains-") as folder:
        result = asyncio.run(soak(plan, opened, Path(folder)))
    print(result)
    return 1 if result.trouble else 0


if __name__ == "__main__":
    sys.exit(main())
