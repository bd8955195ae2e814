"""Random `kill -9` of a fleet's workers on a real Redis and PostgreSQL, until the job is finished: what was lost?

    python -m tests.e2e.fleet_soak --kills 2000 --pages 20000

Workers are killed whatever they do: a child, a supervisor, or both at once. Another takes a dead one's place.
The database tells which rows there are, the web server's log which pages were fetched and how often, the frontier when
the others could have what the dead had held. Lost and duplicated rows must be 0.
"""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.e2e.fleet import Servers, servers
from tests.e2e.fleet_crawl import Books, Crawl, Terms, crawl
from tests.e2e.running import Running

from trotline.errors import FrontierError

CHILD, SUPERVISOR, BOTH = "child", "supervisor", "both"
KINDS = {CHILD: 7, SUPERVISOR: 2, BOTH: 1}
"""Who is killed, and how often of ten."""
GAVE_UP = b"worker processes died"
"""A supervisor whose children die too often ends; whatever runs it as a service starts another."""


@dataclass
class Plan:
    """How much is asked of the fleet."""

    pages: int = 20_000
    kills: int = 2000
    hosts: int = 100
    workers: int = 12
    slots: int = 8
    pace: str = "6/m"
    """Of each host. What a worker fetches within a tenth of a second or so is fetched again when it dies."""
    thinks: float = 0.05
    at: str = "0.4-1.4"
    """Seconds from one kill to the next, the least and the most."""
    seed: int = 1
    patience: float = 7200.0
    """Seconds; on two cores it takes about 40 minutes."""

    @property
    def pauses(self) -> tuple[float, float]:
        least, _, most = self.at.partition("-")
        return float(least), float(most or least)

    @property
    def terms(self) -> Terms:
        return Terms(hosts=self.hosts, pages=self.pages // self.hosts, pace=self.pace, thinks=self.thinks)


@dataclass
class Kind:
    """What kills of one kind did."""

    kills: int = 0
    held: int = 0
    """Tasks that were in the hands of the killed."""
    back: list[float] = field(default_factory=list)
    """Seconds until these could be leased again, one per kill."""


@dataclass
class Account:
    """What became of everything."""

    kinds: dict[str, Kind] = field(default_factory=lambda: defaultdict(Kind))
    books: Books | None = None
    seconds: float = 0.0

    @property
    def kills(self) -> int:
        return sum(kind.kills for kind in self.kinds.values())

    @property
    def found(self) -> Books:
        assert self.books is not None, "it is not over"
        return self.books

    @property
    def again(self) -> list[float]:
        """Seconds between two fetches of one page."""
        return [later - earlier for moments in self.found.fetched.values() for earlier, later in pairwise(moments)]

    @property
    def back(self) -> list[float]:
        """Seconds until others could have what the killed had held, one per kill."""
        return [each for kind in self.kinds.values() for each in kind.back]

    @property
    def share_again(self) -> float:
        """Of all fetches, those of pages that had been fetched before."""
        return len(self.again) / max(1, sum(len(moments) for moments in self.found.fetched.values()))

    @property
    def busiest(self) -> int:
        """The most pages that one host was asked for within a second."""
        starts: dict[str, list[float]] = defaultdict(list)
        for address, moments in self.found.fetched.items():
            starts[address.split("/")[0]] += moments
        return max((most_within(sorted(each), 1.0) for each in starts.values()), default=0)

    def __str__(self) -> str:
        books = self.found
        lines = [f"{'killed':<12}{'kills':>7}{'held':>7}{'back after p50':>16}{'p99':>8}{'most':>8}"]
        whole = Kind(self.kills, sum(kind.held for kind in self.kinds.values()), self.back)
        for name, kind in (*sorted(self.kinds.items()), ("all", whole)):
            figures = f"{part(kind.back, 0.5):>14.2f} s{part(kind.back, 0.99):>6.1f} s{part(kind.back, 1):>6.1f} s"
            lines.append(f"{name:<12}{kind.kills:>7}{kind.held:>7}{figures}")
        lines += [
            f"{self.kills} kills in {self.seconds:.0f} s, {len(books.wanted)} pages: lost {books.lost}, "
            f"unexpected {books.unexpected}, duplicated {books.duplicated}, dead {books.progress.dead}",
            f"fetched again: {len(self.again)} ({self.share_again:.2%} of the fetches), after "
            f"{part(self.again, 0.99):.1f} s at the 99th percentile, {part(self.again, 1):.1f} s at most; "
            f"too late to count: {books.refused}",
            f"most starts of one host within a second: {self.busiest}",
        ]
        return "\n".join([*lines, *([f"WRONG: {books.trouble}"] if books.trouble else [])])


class Fleet:
    """Workers that are replaced when they die, and somebody who sees to it that they do."""

    def __init__(self, plan: Plan, job: Crawl) -> None:
        self.plan, self.job = plan, job
        self.chance = Random(plan.seed)
        self.account = Account()
        self.places: dict[int, Running] = {}
        self.over = False
        self._killed: dict[str, tuple[Kind, float]] = {}
        """Names of the dead, and since when they are. Who held nothing is nobody's to wait for."""

    async def keep(self, place: int) -> None:
        """A worker in this place, and another when it is gone, until the job is finished."""
        while not self.over:
            running = await self.job.worker("--slots", str(self.plan.slots))
            self.places[place] = running
            out, err = await running.process.communicate()
            self.job.workers.remove(running)
            code = running.process.returncode
            if code == 0:
                self.over = True
            elif code != -signal.SIGKILL and GAVE_UP not in err:
                raise AssertionError(f"a worker ended with {code}: {out[-2000:].decode()} {err[-2000:].decode()}")

    async def strike(self) -> None:
        """Somebody dies every now and then, until there were enough kills or the job is finished."""
        frontier = await self.job.frontier()
        next_at = 0.0
        while not self.over:
            await asyncio.sleep(0.05)
            try:
                crew = {view.name: view.leased for view in await frontier.workers()}
            except FrontierError:
                continue
            self._note_returns(crew)
            if time.monotonic() >= next_at and self.account.kills < self.plan.kills:
                self._kill_one(crew)
                next_at = time.monotonic() + self.chance.uniform(*self.plan.pauses)

    def _kill_one(self, crew: dict[str, int]) -> None:
        by_pid = {worker.process.pid: worker for worker in self.places.values() if worker.process.returncode is None}
        # Anybody: if it were always one who holds something, nobody would live to do the last pages.
        alive = [name for name in crew if name not in self._killed and supervisor_of(name) in by_pid]
        if not alive:
            return
        name = self.chance.choice(alive)
        victim = by_pid[supervisor_of(name)]
        who = self.chance.choices(list(KINDS), list(KINDS.values()))[0]
        with suppress(ProcessLookupError):
            if who == BOTH:
                victim.signal_all(signal.SIGKILL)
            elif who == SUPERVISOR:
                os.kill(victim.process.pid, signal.SIGKILL)
            elif children := at_work(victim):
                os.kill(self.chance.choice(children), signal.SIGKILL)
            else:
                return
            kind = self.account.kinds[who]
            kind.kills += 1
            kind.held += crew[name]
            self._killed[name] = (kind if crew[name] else Kind(), time.monotonic())

    def _note_returns(self, crew: dict[str, int]) -> None:
        """Who is not in the frontier's list any more has nothing left there either."""
        for name in [name for name in self._killed if name not in crew]:
            kind, since = self._killed.pop(name)
            kind.back.append(time.monotonic() - since)


def supervisor_of(name: str) -> int:
    """Workers are named HOST-PROCESS-PLACE-NUMBER."""
    return int(name.split("-")[-3])


def at_work(worker: Running) -> list[int]:
    """Its children, without the process that only bears others."""
    found = []
    for pid in worker.children():
        with suppress(OSError, IndexError):
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            fork_server = b"fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes() and parent == worker.process.pid
            if not fork_server:
                found.append(pid)
    return found


async def soak(plan: Plan, opened: Servers, folder: Path) -> Account:
    async with crawl(folder, *opened.places(), plan.terms) as job:
        fleet = Fleet(plan, job)
        started = time.monotonic()
        # A job that is not finished by then is in the books, too.
        with suppress(TimeoutError):
            async with asyncio.timeout(plan.patience), asyncio.TaskGroup() as group:
                striking = group.create_task(fleet.strike())
                keeping = [group.create_task(fleet.keep(place)) for place in range(plan.workers)]
                await asyncio.gather(*keeping)
                striking.cancel()
        fleet.account.seconds = time.monotonic() - started
        fleet.account.books = await job.books()
    return fleet.account


def most_within(moments: list[float], window: float) -> int:
    """The largest number of moments that lie within one window."""
    most = first = 0
    for last, moment in enumerate(moments):
        while moment - moments[first] >= window:
            first += 1
        most = max(most, last - first + 1)
    return most


def part(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.fleet_soak", description=__doc__)
    for name, usual in vars(Plan()).items():
        parser.add_argument(f"--{name}", type=type(usual), default=usual, help=f"[default: {usual}]")
    # A polite end, whoever asks for it: the servers must not outlive us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    plan = Plan(**vars(parser.parse_args()))
    with servers() as opened, TemporaryDirectory(prefix="trotline-soak-") as folder:
        account = asyncio.run(soak(plan, opened, Path(folder)))
    print(account)
    return 1 if account.found.trouble else 0


if __name__ == "__main__":
    sys.exit(main())
