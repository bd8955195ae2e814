"""Small jobs on a real Redis whose workers and seeders die at every await: is the end told once, and never early?

    python -m tests.e2e.fleet_endings --runs 200

Workers are the frontier's clients and nothing else, so that there can be hundreds of jobs; a death is a cancellation in
the middle of whatever is under way, and the end of the connections. Whoever finds nothing to do turns the server's
clock forward by a second: the dead are found, and now and then somebody who only was slow is taken for dead.
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from tests.contract.redis_servers import RedisBench

from trotline.model.lease import Lease, Settled, Settlement
from trotline.model.outcome import Done, Retry
from trotline.model.task import Task
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.bench import task

PATIENCE = 60.0
DEATHS = 8
"""In one job. A task that saw ten of them is buried, as it should be."""


@dataclass
class Ending:
    """How one job ended."""

    seed: int
    pages: int = 0
    deaths: int = 0
    stale: int = 0
    """Settles that were refused: others had the task by then."""
    told: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def trouble(self) -> str:
        faults = [*self.wrong, *([f"told {self.told} times"] if self.told != 1 else [])]
        return f"seed {self.seed}: {', '.join(faults)}" if faults else ""


class Game:
    """One job, from its first task to the word that it is finished."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.ending = Ending(seed)
        self.bench = RedisBench()
        self.links = self._links()
        self.pages = reachable(self.links)
        self.ending.pages = len(self.pages)
        self.counted: Counter[str] = Counter()
        """How often the frontier took a page for done."""
        self.over = asyncio.Event()
        self.telling = False
        """Somebody is about to say that it is over."""
        self.names = 0

    def _links(self) -> dict[int, list[int]]:
        count = self.chance.randint(1, 40)
        return {page: [self.chance.randrange(count) for _ in range(self.chance.randint(0, 4))] for page in range(count)}

    def task(self, page: int) -> Task:
        return task(f"https://shop{page % 3}.example/{page}", lane=f"shop{page % 3}.example")

    async def play(self) -> Ending:
        await self.bench.open()
        try:
            async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
                group.create_task(self._keep(self._seed))
                for _ in range(self.chance.randint(1, 4)):
                    group.create_task(self._keep(self._work))
            await self._look_back()
        except TimeoutError:
            self.ending.wrong.append("it never ended")
        finally:
            await self.bench.close()
        return self.ending

    async def _keep(self, deed: Callable[[Client], Awaitable[None]]) -> None:
        """Do it; when death comes in between, another begins from the start."""
        while not self.over.is_set():
            client = await self.bench.again()
            doing = asyncio.ensure_future(deed(client))
            if self.ending.deaths < DEATHS:
                await asyncio.wait([doing], timeout=self.chance.expovariate(100))
                # The last step is not torn apart: who dies with the word on his lips has said it.
                if not doing.done() and not self.telling:
                    doing.cancel()
                    self.ending.deaths += 1
            with suppress(asyncio.CancelledError):
                await doing
            await self.bench.crash(client)
            if not doing.cancelled():
                return

    async def _seed(self, client: Client) -> None:
        pages = sorted(self.links)[:3]
        for page in pages:
            await client.put([self.task(page)])
        await client.seal()

    async def _work(self, client: Client) -> None:
        self.names += 1
        name = f"w{self.names}"
        while not self.over.is_set():
            leases = await client.lease(name, self.chance.randint(1, 4))
            if not leases:
                if await client.finished():
                    return await self._tell(client)
                self.bench.jump(1.0)
            elif self.chance.random() < 0.1:
                # So slow that others may take it for dead.
                await asyncio.sleep(0.05)
            while leases:
                some = self.chance.randint(1, len(leases))
                await self._settle(client, name, leases[:some])
                leases = leases[some:]

    async def _settle(self, client: Client, name: str, leases: Sequence[Lease]) -> None:
        settlements = [self._settlement(lease) for lease in leases]
        for lease, settlement, answer in zip(leases, settlements, await client.settle(name, settlements), strict=True):
            if answer is Settled.STALE:
                self.ending.stale += 1
            elif isinstance(settlement.outcome, Done):
                self.counted[lease.task.url] += 1

    def _settlement(self, lease: Lease) -> Settlement:
        if self.chance.random() < 0.1:
            return Settlement(lease, Retry(wait=0.0, why="broken"))
        page = int(lease.task.url.rpartition("/")[2])
        return Settlement(lease, Done(), tuple(self.task(link) for link in self.links[page]))

    async def _tell(self, client: Client) -> None:
        self.telling = True
        if await client.announce_finish():
            self.ending.told += 1
            await self._check(client)
            self.over.set()

    async def _check(self, client: Client) -> None:
        """The books at the moment of the word."""
        progress = await client.progress()
        if (progress.done, progress.waiting, progress.leased, progress.dead) != (len(self.pages), 0, 0, 0):
            self.ending.wrong.append(f"told when {progress.done} of {len(self.pages)} were done")

    async def _look_back(self) -> None:
        """Nobody is told again, whoever asks."""
        client = await self.bench.again()
        if not await client.finished():
            self.ending.wrong.append("finished no more")
        await self._tell(client)
        # A reply that was lost with its worker is not counted here, so it may be less than once.
        twice = [url for url, count in self.counted.items() if count > 1]
        if twice:
            self.ending.wrong.append(f"done twice: {twice}")


def reachable(links: dict[int, list[int]]) -> set[int]:
    found: set[int] = set()
    ahead = sorted(links)[:3]
    while ahead:
        page = ahead.pop()
        if page not in found:
            found.add(page)
            ahead += links[page]
    return found


async def play(seed: int) -> Ending:
    return await Game(seed).play()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.fleet_endings", description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    plan = parser.parse_args()
    began = time.monotonic()
    endings = [asyncio.run(play(seed)) for seed in range(plan.first, plan.first + plan.runs)]
    troubles = [ending.trouble for ending in endings if ending.trouble]
    print("\n".join(troubles))
    pages, deaths, stale = (sum(getattr(each, name) for each in endings) for name in ("pages", "deaths", "stale"))
    print(
        f"{len(endings)} jobs, {pages} pages, {deaths} deaths, {stale} settles refused, "
        f"{time.monotonic() - began:.0f} s: {len(troubles)} wrong"
    )
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
