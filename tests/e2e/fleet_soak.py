"""Random `kill -9` of a fleet's workers on a real Redis and PostgreSQL, until the job is finished: what was lost?

    python -m tests.e2e.fleet_soak --kills 2000 --pages 20000

Workers are killed whatever they do: a child, a supervisor, or both at once. Another takes a dead one's place.
The database tells which rows there are, the web server's log which pages were fetched and how often, the frontier when
the others could have what the dead had held. Lost and duplicated rows must be 0.
"""

import asyncio
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.e2e.fleet import Servers, servers
from tests.e2e.fleet_crawl import Books, Terms, crawl
from tests.e2e.fleet_kills import KillPlan, Kills, Kind, plan_of_arguments, strike


@dataclass(kw_only=True)
class Plan(KillPlan):
    """How much is asked of the fleet. On two cores it takes about 40 minutes."""

    pages: int = 20_000
    kills: int = 2000
    hosts: int = 100
    workers: int = 12
    slots: int = 8
    pace: str = "6/m"
    """Of each host. What a worker fetches within a tenth of a second or so is fetched again when it dies."""
    at: str = "0.4-1.4"
    patience: float = 7200.0

    @property
    def terms(self) -> Terms:
        return Terms(hosts=self.hosts, pages=self.pages // self.hosts, pace=self.pace, thinks=self.thinks)


@dataclass
class Account:
    """What became of everything."""

    killed: Kills
    books: Books

    @property
    def again(self) -> list[float]:
        """Seconds between two fetches of one page."""
        return [later - earlier for moments in self.books.fetched.values() for earlier, later in pairwise(moments)]

    @property
    def share_again(self) -> float:
        """Of all fetches, those of pages that had been fetched before."""
        return len(self.again) / max(1, sum(len(moments) for moments in self.books.fetched.values()))

    @property
    def busiest(self) -> int:
        """The most pages that one host was asked for within a second."""
        starts: dict[str, list[float]] = defaultdict(list)
        for address, moments in self.books.fetched.items():
            starts[address.split("/")[0]] += moments
        return max((most_within(sorted(each), 1.0) for each in starts.values()), default=0)

    def __str__(self) -> str:
        books, killed, faults = self.books, self.killed, self.books.faults
        lines = [f"{'killed':<12}{'kills':>7}{'held':>7}{'back after p50':>16}{'p99':>8}{'most':>8}"]
        whole = Kind(killed.kills, sum(kind.held for kind in killed.kinds.values()), killed.back)
        for name, kind in (*sorted(killed.kinds.items()), ("all", whole)):
            figures = f"{part(kind.back, 0.5):>14.2f} s{part(kind.back, 0.99):>6.1f} s{part(kind.back, 1):>6.1f} s"
            lines.append(f"{name:<12}{kind.kills:>7}{kind.held:>7}{figures}")
        lines += [
            f"{killed.kills} kills in {killed.seconds:.0f} s, {len(books.wanted)} pages: lost {faults['lost']}, "
            f"unexpected {faults['unexpected']}, duplicated {faults['duplicated']}, dead {books.progress.dead}",
            f"fetched again: {len(self.again)} ({self.share_again:.2%} of the fetches), after "
            f"{part(self.again, 0.99):.1f} s at the 99th percentile, {part(self.again, 1):.1f} s at most; "
            f"too late to count: {books.refused}",
            f"most starts of one host within a second: {self.busiest}",
        ]
        return "\n".join([*lines, *([f"WRONG: {books.trouble}"] if books.trouble else [])])


async def soak(plan: Plan, opened: Servers, folder: Path) -> Account:
    async with crawl(folder, *opened.places(), plan.terms) as job:
        killed = await strike(plan, job)
        return Account(killed, await job.books())


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
    plan = plan_of_arguments(Plan(), "tests.e2e.fleet_soak", __doc__)
    with servers() as opened, TemporaryDirectory(prefix="trotline-soak-") as folder:
        account = asyncio.run(soak(plan, opened, Path(folder)))
    print(account)
    return 1 if account.books.trouble else 0


if __name__ == "__main__":
    sys.exit(main())
