"""`kill -9` of workers that archive: what is settled is in the archive, and no record is torn.

python -m tests.e2e.archive_kills --kills 100
python -m tests.e2e.archive_kills --kills 100 --s3
"""

import argparse
import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.warc_readers import by_fastwarc, by_warcio

from trotline.config import backends
from trotline.model.archive import ArchiveQuery
from trotline.testing import DemoShop

SPIDER = """
import os
from trotline import Page, Spider
shop = Spider("shop", pace="400/s", concurrency=64, robots=False, retries=3)

@shop.page(seeds=[os.environ["SHOP"] + "/catalog"])
def catalog(page: Page):
    last = int(page.css(".pager a::text").getall()[-1])
    for number in range(1, last + 1):
        yield listing.task(f"{page.url}?page={number}")

@shop.page
def listing(page: Page):
    for link in page.links(".card a"):
        yield product.task(link)

@shop.page(key="sku")
def product(page: Page):
    yield {"sku": page.css("[itemprop=sku]::text").get(), "label": page.keep("label.txt", page.css("h1::text").get())}
"""


class Outcome:
    def __init__(self) -> None:
        self.kills = 0
        self.runs = 0
        self.settled = 0
        self.missing: list[str] = []
        self.damages: list[str] = []
        self.captures = 0
        self.read_by_others = 0

    def __str__(self) -> str:
        return (
            f"{self.kills} kills in {self.runs} runs: {self.settled} settled pages, {len(self.missing)} missing, "
            f"{len(self.damages)} torn or damaged, {self.captures} captures, {self.read_by_others} records read by both"
        )


def kill_workers(folder: Path, archive: str, *, kills: int, products: int, environment: Mapping[str, str]) -> Outcome:
    """Run a spider over and over until so many of its worker processes were killed; then look at everything."""
    outcome, chance = Outcome(), random.Random(kills)
    (folder / "shop.py").write_text(SPIDER)
    with DemoShop.in_thread(products=products) as shop:
        known = {**os.environ, **environment, "SHOP": shop.url}
        command = [sys.executable, "-m", "trotline.cli", "run", "shop.py", "--allow-private", "--processes", "2", "-q"]
        while outcome.kills < kills or not outcome.runs:
            outcome.runs += 1
            run = subprocess.Popen([*command, "--archive", archive], cwd=folder, env=known)
            try:
                outcome.kills += _kill_some(run, chance, kills - outcome.kills)
                assert run.wait(120) in (0, 3), "the run did not finish"
            finally:
                if run.poll() is None:
                    run.kill()
                    run.wait()
    asyncio.run(_look(folder, archive, outcome))
    return outcome


def _kill_some(run: "subprocess.Popen[bytes]", chance: random.Random, most: int) -> int:
    """At random moments, at most five of one run: after eight deaths in 30 s a supervisor gives up."""
    killed = 0
    while run.poll() is None and killed < min(most, 5):
        time.sleep(chance.uniform(0.05, 0.5))
        if workers := _workers(run.pid):
            try:
                os.kill(chance.choice(workers), signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                continue
    return killed


def _workers(pid: int) -> list[int]:
    """Descendants that have a marker of their own: the children that visit pages have a database open."""
    found, queue = [], [pid]
    while queue:
        one = queue.pop()
        try:
            children = [int(word) for word in Path(f"/proc/{one}/task/{one}/children").read_text().split()]
        except FileNotFoundError:
            continue
        queue += children
        found += [child for child in children if _has_database(child)]
    return found


def _has_database(pid: int) -> bool:
    try:
        return any("frontier.db" in str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir())
    except (FileNotFoundError, PermissionError):
        return False


async def _look(folder: Path, archive_url: str, outcome: Outcome) -> None:
    archive = backends.open_archive(archive_url)
    there = {entry.id async for entry in archive.entries(ArchiveQuery())}
    with sqlite3.connect(folder / "shop.db") as rows:
        for url, kept in rows.execute("SELECT url, archive FROM visits WHERE outcome = 'done' AND status > 0"):
            outcome.settled += 1
            if kept not in there:
                outcome.missing.append(f"{url}: {kept}")
        labels = {label for (label,) in rows.execute("SELECT data ->> 'label' FROM records")}
    kept = {entry.url async for entry in archive.entries(ArchiveQuery(url="archive:*"))}
    outcome.missing += sorted(labels - kept)
    found = await archive.check()
    outcome.captures = found.captures
    outcome.damages = [f"{one.file} at {one.offset}: {one.what}" for one in found.damages]
    outcome.read_by_others = await _read_by_others(archive, folder, outcome)


async def _read_by_others(archive: Any, folder: Path, outcome: Outcome) -> int:
    """Every file with warcio and with fastwarc."""
    store, number = archive._store, 0
    for one in [*await store.listed("warc"), *await store.listed("open")]:
        if not one.name.endswith(".warc.gz"):
            continue
        file = folder / "one.warc.gz"
        file.write_bytes(await store.get(one.name))
        read = by_warcio(file)
        if read != by_fastwarc(file):
            outcome.damages.append(f"{one.name}: {read} records by warcio, {by_fastwarc(file)} by fastwarc")
        number += read
    return number


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--products", type=int, default=600)
    parser.add_argument("--s3", action="store_true", help="to a real S3 server instead of a folder")
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="trotline-kills-")))
        archive, environment = f"file:{folder}/pages", {}
        if asked.s3:
            from trotline.testing.seaweedfs_server import seaweedfs

            server = stack.enter_context(seaweedfs())
            archive, environment = server.url("kills"), server.environment
            os.environ.update(environment)
        outcome = kill_workers(folder, archive, kills=asked.kills, products=asked.products, environment=environment)
    print(outcome)
    for line in [*outcome.missing, *outcome.damages][:20]:
        print(f"  {line}")
    return 1 if outcome.missing or outcome.damages else 0


if __name__ == "__main__":
    sys.exit(main())
