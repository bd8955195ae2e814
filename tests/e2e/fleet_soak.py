"""Random `kill -9` of a fleet's workers on a real Redis and PostgreSQL, until the job is finished: what was lost?

    python -m tests.e2e.fleet_soak --kills 2000 --pages 20000

Workers (a supervisor and its children each) are killed at random moments: a child, a supervisor, or both at once; each
dead supervisor is replaced by a new one. The web server's log tells which pages were fetched, how often and when; the
database tells which rows there are. Lost and duplicated rows must be 0. A page that was fetched again was in the hands
of somebody who was killed: the time between the two fetches is what the kill cost.
"""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import asyncpg
from bench.hosts import ManyHosts, addresses, build
from tests.e2e.running import Running, call, start

from trotline.testing.postgres_server import postgres
from trotline.testing.redis_server import redis

SPIDER = """
import asyncio
import os

from trotline import Page, Spider

port, names = os.environ["SOAK_PORT"], os.environ["SOAK_HOSTS"].split(",")
soak = Spider("soak", pace=os.environ["SOAK_PACE"], robots=False, retries=50)


@soak.page(key="url", seeds=[f"http://{name}:{port}/0.html" for name in names])
async def page(page: Page):
    # Somebody must be at something when the kill comes.
    await asyncio.sleep(0.3)
    yield {"url": page.url, "title": page.css("h1::text").get()}
    yield page.follow("a")
"""


@dataclass
class Plan:
    """How much is asked of the fleet."""

    pages: int = 20_000
    kills: int = 2000
    hosts: int = 100
    workers: int = 6
    pace: str = "1/s"
    seed: int = 1
    patience: float = 3600.0


@dataclass
class Account:
    """What became of everything."""

    kills: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    pages: int = 0
    lost: int = 0
    unexpected: int = 0
    duplicated: int = 0
    dead: int = 0
    fetches: int = 0
    again: list[float] = field(default_factory=list)
    """Seconds between two fetches of one page."""
    fastest: float = 0.0
    """The most pages that one host was asked for within a second."""
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        return not (self.lost or self.unexpected or self.duplicated or self.dead)

    @property
    def again_p99(self) -> float:
        return sorted(self.again)[int(len(self.again) * 0.99)] if self.again else 0.0

    def __str__(self) -> str:
        kills = ", ".join(f"{count} x {who}" for who, count in sorted(self.kills.items()))
        return (
            f"{sum(self.kills.values())} kills ({kills}) in {self.seconds:.0f} s\n"
            f"{self.pages} pages: lost {self.lost}, unexpected {self.unexpected}, duplicated {self.duplicated}, "
            f"dead {self.dead}\n"
            f"fetched again: {len(self.again)} ({len(self.again) / max(1, self.fetches):.2%} of the fetches), "
            f"after {self.again_p99:.1f} s at the 99th percentile, {max(self.again, default=0):.1f} s at most\n"
            f"most starts of one host within a second: {self.fastest:.0f}"
        )


class Fleet:
    """Workers that are replaced when they die, and somebody who sees to it that they do."""

    def __init__(self, plan: Plan, folder: Path, places: Sequence[str], environment: dict[str, str]) -> None:
        self.plan, self.folder, self.places, self.environment = plan, folder, places, environment
        self.chance = Random(plan.seed)
        self.account = Account()
        self.workers: dict[int, Running] = {}
        self.over = False

    async def keep(self, place: int) -> None:
        """A worker in this place, and another when it is gone, until the job is finished."""
        while not self.over:
            words = ["work", "soak.py", *self.places, "--until-finished", "--allow-private", "--slots", "8"]
            running = await start(self.folder, *words, env=self.environment)
            self.workers[place] = running
            out, err = await running.process.communicate()
            code = running.process.returncode
            if code == 0:
                self.over = True
            elif code != -signal.SIGKILL and b"worker processes died" not in err:
                # A supervisor whose children die too often gives up, and whatever runs it as a service starts another.
                raise AssertionError(f"a worker ended with {code}: {out[-2000:].decode()} {err[-2000:].decode()}")

    async def kill(self) -> None:
        """Somebody dies every now and then, until there were enough kills or the job is finished."""
        while not self.over and sum(self.account.kills.values()) < self.plan.kills:
            await asyncio.sleep(self.chance.uniform(0.05, 0.6))
            victims = [each for each in self.workers.values() if each.process.returncode is None and each.children()]
            if not victims:
                continue
            victim = self.chance.choice(victims)
            who = self.chance.choices(("child", "supervisor", "both"), (8, 1, 1))[0]
            if who == "both":
                victim.signal_all(signal.SIGKILL)
            else:
                pid = victim.process.pid if who == "supervisor" else self.chance.choice(victim.children())
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            self.account.kills[who] += 1


@asynccontextmanager
async def servers() -> AsyncIterator[tuple[str, str]]:
    """The URLs of a Redis that survives `kill -9` and of a PostgreSQL."""
    async with AsyncExitStack() as stack:
        yield stack.enter_context(redis()).url, stack.enter_context(postgres()).url


async def soak(plan: Plan) -> Account:
    per_host = plan.pages // plan.hosts
    with TemporaryDirectory(prefix="trotline-soak-") as name:
        folder = Path(name)
        (folder / "soak.py").write_text(SPIDER)
        root = build(folder / "site", per_host)
        names = addresses(plan.hosts)
        ManyHosts.hosts = names
        async with servers() as (frontier, sink):
            with ManyHosts(root, folder / "server") as site:
                environment = {
                    "SOAK_PORT": str(site.port),
                    "SOAK_HOSTS": ",".join(names),
                    "SOAK_PACE": plan.pace,
                    "TROTLINE_FRONTIER": frontier,
                    "TROTLINE_SINK": sink,
                }
                fleet = Fleet(plan, folder, [], environment)
                started = time.monotonic()
                ended = await call(folder, "start", "soak.py", "--detach", "--allow-private", env=environment)
                assert ended.code == 0, ended.err
                async with asyncio.timeout(plan.patience):
                    keeping = [asyncio.create_task(fleet.keep(place)) for place in range(plan.workers)]
                    killing = asyncio.create_task(fleet.kill())
                    await asyncio.gather(*keeping)
                    killing.cancel()
                fleet.account.seconds = time.monotonic() - started
            await compare(fleet.account, site, sink, per_host, names)
    return fleet.account


async def compare(account: Account, site: ManyHosts, sink: str, per_host: int, names: list[str]) -> None:
    wanted = {f"http://{name}:{site.port}/{number}.html" for name in names for number in range(per_host)}
    connection = await asyncpg.connect(sink)
    try:
        rows = [row["url"] for row in await connection.fetch("SELECT url FROM records")]
    finally:
        await connection.close()
    account.pages = len(wanted)
    account.lost = len(wanted - set(rows))
    account.unexpected = len(set(rows) - wanted)
    account.duplicated = len(rows) - len(set(rows))
    fetched: dict[str, list[float]] = defaultdict(list)
    starts: dict[str, list[float]] = defaultdict(list)
    for line in site.log.read_text().splitlines():
        end, took, _status, address = line.split(" ", 3)
        host = address.split("/")[0]
        fetched[address].append(float(end) - float(took))
        starts[host].append(float(end) - float(took))
        account.fetches += 1
    for moments in fetched.values():
        moments.sort()
        account.again += [later - earlier for earlier, later in pairwise(moments)]
    account.fastest = max((most_within(sorted(each), 1.0) for each in starts.values()), default=0)


def most_within(moments: list[float], window: float) -> int:
    """The largest number of moments that lie within one window."""
    most = first = 0
    for last, moment in enumerate(moments):
        while moment - moments[first] >= window:
            first += 1
        most = max(most, last - first + 1)
    return most


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.fleet_soak", description=__doc__)
    for name, usual in vars(Plan()).items():
        parser.add_argument(f"--{name}", type=type(usual), default=usual, help=f"[default: {usual}]")
    # A polite end, whoever asks for it: the servers must not outlive us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    account = asyncio.run(soak(Plan(**vars(parser.parse_args()))))
    print(account)
    return 0 if account.clean else 1


if __name__ == "__main__":
    sys.exit(main())
