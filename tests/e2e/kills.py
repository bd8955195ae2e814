"""`kill -9` at every step of the path, of every process, and then the same command again: what was lost?

    python -m tests.e2e.kills --rounds 50

Each round is a crawl of its own in processes of its own. The accounting is that of Jepsen's queue checker: every row
that the shop has was attempted; a row that is missing at the end is lost, one that the shop does not have is
unexpected, one that is there twice is duplicated. All three must be 0, however often pages were fetched again.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from tests.e2e.running import KILLER, Running, books_of, rows_of, start

from trotline.testing.shop import DemoShop

PRODUCTS = 36
PER_PAGE = 12
CHILD, FORKED, SUPERVISOR, EVERYTHING = "child", "forked", "supervisor", "everything"
"""A forked child comes from the fork server, which is there once others have died."""
ANY_MOMENT = "any moment"
AND_AGAIN = "and again"
"""At any moment, and the next run again, and the one after that."""

STEPS: dict[str, tuple[tuple[str, ...], int]] = {
    "leased": ((CHILD, SUPERVISOR, EVERYTHING), 6),
    "fetched": ((CHILD, FORKED, SUPERVISOR, EVERYTHING), 40),
    "parsed": ((CHILD, SUPERVISOR, EVERYTHING), 40),
    "before store": ((CHILD, SUPERVISOR, EVERYTHING), 4),
    "after store": ((CHILD, FORKED, SUPERVISOR, EVERYTHING), 4),
    "before settle": ((CHILD, SUPERVISOR, EVERYTHING), 4),
    "inside settle": ((CHILD, SUPERVISOR, EVERYTHING), 4),
    "after settle": ((CHILD, SUPERVISOR, EVERYTHING), 4),
    "seeding": ((SUPERVISOR, EVERYTHING), 4),
    "sealed": ((SUPERVISOR, EVERYTHING), 1),
    "watching": ((SUPERVISOR, EVERYTHING), 3),
    "finishing": ((SUPERVISOR, EVERYTHING), 1),
    ANY_MOMENT: ((CHILD, SUPERVISOR, EVERYTHING), 40),
    AND_AGAIN: ((SUPERVISOR, EVERYTHING), 12),
}
"""Step -> who can be killed there, and how often a crawl surely passes it (killer/sitecustomize.py has the places)."""

SPIDER = """
import os

from trotline import LATER, SOON, Page, Spider

SHOP = os.environ["DEMO_SHOP"]
shop = Spider("shop", pace="200/s")


@shop.page(seeds=[f"{SHOP}/catalog"])
def catalog(page: Page):
    for number in range(1, int(page.css(".pager a::text").getall()[-1]) + 1):
        yield listing.task(f"{page.url}?page={number}", priority=LATER)


@shop.page
def listing(page: Page):
    for link in page.links(".card a"):
        yield {"card": link}
        yield product.task(link, priority=SOON)


@shop.page(key="sku", seeds=[SHOP + path for path in os.environ.get("SEEDED", "").split()])
def product(page: Page):
    yield {name: page.css(place).get() for name, place in {
        "sku": "[itemprop=sku]::text", "title": "h1::text", "price": ".price::text"}.items()}
"""


@dataclass(frozen=True)
class Case:
    step: str
    target: str
    nth: int
    sink: str

    def __str__(self) -> str:
        return f"kill -9 of {self.target}, {self.step} no. {self.nth}, {self.sink}"


@dataclass
class Account:
    """What became of everything that was attempted."""

    struck: bool = False
    attempted: int = 0
    ok: int = 0
    lost: int = 0
    unexpected: int = 0
    duplicated: int = 0
    refetched: int = 0
    troubles: list[str] = field(default_factory=list)
    """Anything else that is not as it must be."""

    @property
    def clean(self) -> bool:
        return not (self.lost or self.unexpected or self.duplicated or self.troubles)


def cases(step: str, chance: Random, sink: str, most_targets: int | None = None) -> list[Case]:
    """One case for each target of the step, or for some of them, at a random passing of it."""
    targets, most = STEPS[step]
    if most_targets is not None and len(targets) > most_targets:
        targets = tuple(sorted(chance.sample(targets, most_targets)))
    # Three times in one crawl: each time after a little of it.
    return [
        Case(step, target, chance.randint(1, max(1, most // (4 if target == FORKED else 1))), sink)
        for target in targets
    ]


async def play(case: Case, folder: Path, chance: Random, *, plant: bool = False) -> Account:
    """One round: a crawl, a kill, the same command again, and the accounting. `plant`: with a bug in it."""
    (folder / "shop.py").write_text(SPIDER)
    async with DemoShop(PRODUCTS, quotes=0) as shop:
        account = Account()
        orphans = []
        running = await _start(case, shop, folder, doomed=True, plant=plant)
        for _ in range(3 if case.step == AND_AGAIN else 1):
            if case.step in (ANY_MOMENT, AND_AGAIN):
                _light_fuse(shop, case, running, folder, chance)
            code = await running.exit_code()
            if code != -signal.SIGKILL:
                break
            await _look_at_rows_of_the_finished(account, case, folder, shop)
            # At once: orphans may still be at work, and what the killed ones held must be free.
            orphans.append(running)
            running = await _start(case, shop, folder, doomed=False)
        ended = await running.end()
        for orphan in orphans:
            await orphan.end()
        account.struck = (folder / "struck").exists()
        if ended.code != 0:
            account.troubles.append(f"the last run ended with {ended.code}: {ended.out} {ended.err}")
        _compare_rows(account, rows_of(folder / case.sink), shop)
        _compare_visits(account, shop)
        await _compare_books(account, folder)
    return account


async def _start(case: Case, shop: DemoShop, folder: Path, *, doomed: bool, plant: bool = False) -> Running:
    words = ["run", "shop.py", "--allow-private", "--quiet", "--slots", "4", "--out", case.sink]
    environment = _environment(case, shop, folder, doomed=doomed) | ({"E2E_PLANT": "yes"} if plant else {})
    return await start(folder, *words, env=environment)


def _environment(case: Case, shop: DemoShop, folder: Path, *, doomed: bool) -> dict[str, str]:
    found = {"DEMO_SHOP": shop.url, "PYTHONPATH": os.pathsep.join([str(KILLER), os.environ.get("PYTHONPATH", "")])}
    if case.step == "seeding":
        # Several batches of seeds, with a moment between each two.
        found |= {"SEEDED": " ".join(product.path for product in shop.truth), "E2E_BATCH": "8"}
    if doomed:
        return found | {"E2E_DOOM": f"{case.step}:{case.target}:{case.nth}:{folder / 'struck'}"}
    # Whoever waits for the dead to have been silent long enough would now wait for an hour.
    return found | {"E2E_DEAD_AFTER": "3600"}


class _Visits(list[Any]):
    """The list of visits, which can be told to do something at its n-th one."""

    at = 0
    deed: Callable[[], object]

    def append(self, visit: Any) -> None:
        super().append(visit)
        if len(self) == self.at:
            self.deed()


def _light_fuse(shop: DemoShop, case: Case, running: Running, folder: Path, chance: Random) -> None:
    """The kill comes a little after so many visits more: wherever the processes are then."""
    if not isinstance(shop.visits, _Visits):
        shop.visits = _Visits(shop.visits)
    loop, wait = asyncio.get_running_loop(), chance.random() * 0.1
    shop.visits.at = len(shop.visits) + case.nth
    shop.visits.deed = lambda: loop.call_later(wait, _strike, running, case.target, folder)


def _strike(running: Running, target: str, folder: Path) -> None:
    children = running.children()
    if running.process.returncode is not None or not children:
        return
    (folder / "struck").touch()
    if target == EVERYTHING:
        running.signal_all(signal.SIGKILL)
    else:
        os.kill(children[0] if target == CHILD else running.process.pid, signal.SIGKILL)


def _compare_rows(account: Account, rows: Iterable[dict[str, Any]], shop: DemoShop) -> None:
    truth = {(one.sku, one.title, one.price) for one in shop.truth} | {(shop.url + one.path,) for one in shop.truth}
    found = Counter(tuple(row.values()) for row in rows)
    account.attempted = len(truth)
    account.ok = len(truth & found.keys())
    account.lost = len(truth - found.keys())
    account.unexpected = len(found.keys() - truth)
    account.duplicated = found.total() - len(found)


def _pages(shop: DemoShop) -> set[str]:
    listings = {f"/catalog?page={number}" for number in range(1, PRODUCTS // PER_PAGE + 1)}
    return {"/catalog"} | listings | {one.path for one in shop.truth}


def _compare_visits(account: Account, shop: DemoShop) -> None:
    visited = Counter(visit.path for visit in shop.visits if visit.path != "/robots.txt")
    if missing := _pages(shop) - visited.keys():
        account.troubles.append(f"never visited: {sorted(missing)}")
    if strange := visited.keys() - _pages(shop):
        account.troubles.append(f"visited for no reason: {sorted(strange)}")
    account.refetched = visited.total() - len(visited)


async def _look_at_rows_of_the_finished(account: Account, case: Case, folder: Path, shop: DemoShop) -> None:
    """One that was at its very end when it was struck is over, and the same command begins another: what the first
    one lost would come with the second."""
    books = await books_of(folder, "shop")
    if books and books[-1].finished_at is not None:
        so_far = Account()
        _compare_rows(so_far, rows_of(folder / case.sink), shop)
        if so_far.lost:
            account.troubles.append(f"finished without {so_far.lost} rows")


async def _compare_books(account: Account, folder: Path) -> None:
    *earlier, books = await books_of(folder, "shop")
    pages = 1 + PRODUCTS // PER_PAGE + PRODUCTS
    if (books.waiting, books.leased, books.done, books.dead) != (0, 0, pages, 0):
        account.troubles.append(f"the books do not balance: {books}")
    if books.finished_at is None:
        account.troubles.append("the job is not finished")
    if any(one.finished_at is None for one in earlier):
        account.troubles.append("the job was started anew instead of resumed")


# The command


async def _many(step: str, rounds: int, seed: int, at_once: int) -> dict[str, list[tuple[Case, Account]]]:
    limit = asyncio.Semaphore(at_once)

    async def one(case: Case, number: int) -> tuple[Case, Account]:
        async with limit:
            with TemporaryDirectory(prefix="trotline-kills-") as folder:
                return case, await play(case, Path(folder), Random(f"{seed} {number}"))

    playing = []
    for number in range(rounds):
        chance = Random(f"{seed} {step} {number}")
        playing += [one(case, number) for case in cases(step, chance, ("rows.db", "rows.jsonl")[number % 2])]
    played = defaultdict(list)
    for case, account in await asyncio.gather(*playing):
        played[case.target].append((case, account))
    return played


_LINE = "{:<14} {:<11} {:>6} {:>5} {:>9} {:>6} {:>4} {:>10} {:>10} {:>9} {:>8}"
_TITLES = (
    "step", "killed", "rounds", "kills", "attempted", "ok", "lost", "unexpected", "duplicated", "refetched", "troubles",
)  # fmt: skip


def _row(step: str, target: str, accounts: list[Account]) -> str:
    counts = [
        sum(getattr(account, name) for account in accounts)
        for name in ("struck", "attempted", "ok", "lost", "unexpected", "duplicated", "refetched")
    ]
    return _LINE.format(step, target, len(accounts), *counts, sum(len(account.troubles) for account in accounts))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.kills", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50, help="of each step and target (default: 50)")
    parser.add_argument("--seed", type=int, default=1, help="which passings of a step are chosen")
    parser.add_argument("--step", choices=STEPS, help="only this step")
    parser.add_argument("--at-once", type=int, default=4, help="crawls at the same time (default: 4)")
    asked = parser.parse_args()
    print(_LINE.format(*_TITLES))
    everything: list[Account] = []
    for step in [asked.step] if asked.step else STEPS:
        played = asyncio.run(_many(step, asked.rounds, asked.seed, asked.at_once))
        for target, rounds in played.items():
            accounts = [account for _, account in rounds]
            everything += accounts
            print(_row(step, target, accounts), flush=True)
            for case, account in rounds:
                if not account.clean:
                    print(f"    {case}: {account}", flush=True)
    print(_row("all", "", everything))
    return 0 if all(account.clean for account in everything) else 1


if __name__ == "__main__":
    sys.exit(main())
