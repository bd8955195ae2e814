"""What an archive costs, and how fast it is parsed again, on the product site.

    python -m bench.archive [--pages 2000] [--rounds 7] [--coding gzip|identity|both] [--s3]

The site sends its pages gzip-coded (they are archived as they came), and plain (they are packed). Crawls with and
without `--archive` take turns, and the figure is the median of the ratios of neighbours, so that a noisy moment hits
both sides of it. CPU is that of all processes of the command, without its start (a crawl of one page). The re-parse is
a dry run into nothing, with one process.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import site
from bench.contenders import HERE, WORK
from bench.measure import Usage, measure
from bench.nginx import Server

GOAL = 1.15
"""An archive may cost so many times the CPU of a page."""
SPEED = 1500.0
"""Pages per second and core of a re-parse."""
NOTHING = 4
"""Exit code: no page fits."""
GZIP = "gzip"
CODINGS = (GZIP, "identity")
WAYS = {False: "without", True: "with"}
TROTLINE = str(Path(sys.executable).with_name("trotline"))
SPIDER = str(HERE / "trotline_product.py")


@dataclass(frozen=True)
class Bench:
    """Crawls of pages with one coding."""

    coding: str
    pages: int
    archive: str
    environment: Mapping[str, str]

    @property
    def folder(self) -> Path:
        return WORK / "archive" / self.coding

    def crawl(self, *, pages: int, archives: bool) -> Usage:
        folder = self.folder
        shutil.rmtree(folder, ignore_errors=True)
        root = site.build(WORK / "sites", pages)
        with Server(root, folder / "nginx", packs=self.coding == GZIP) as server:
            seed = {"BENCH_SEED": f"{server.base}{site.path(0)}"}
            places = ["--frontier", f"sqlite:{folder / 'frontier.db'}", "--sink", f"sqlite:{folder / 'rows.db'}"]
            words = ["--archive", self.archive] if archives else []
            command = [TROTLINE, "run", SPIDER, *places, "--slots", "64", "--allow-private", "--quiet", *words]
            usage = measure(command, folder / "run", {**seed, **self.environment})
        if usage.exit_code:
            raise SystemExit(f"exit {usage.exit_code}: see {folder / 'run' / 'stderr'}")
        return usage

    def reparse(self, *words: str) -> float:
        """CPU seconds."""
        places = ["--archive", self.archive, "--sink", f"sqlite:{self.folder / 'none.db'}"]
        command = [TROTLINE, "reparse", SPIDER, *places, "--dry-run", "--processes", "1", *words]
        usage = measure(command, self.folder / "reparse", {"BENCH_SEED": "http://127.0.0.1/", **self.environment})
        if usage.exit_code not in (0, NOTHING):
            raise SystemExit(f"exit {usage.exit_code}: see {self.folder / 'reparse' / 'stderr'}")
        return usage.cpu


class Costs:
    """CPU milliseconds per page, without and with an archive."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._of: dict[bool, list[float]] = {False: [], True: []}
        self._starts = {way: min(bench.crawl(pages=1, archives=way).cpu for _ in range(2)) for way in WAYS}

    def measure(self) -> None:
        for way, name in WAYS.items():
            usage = self.bench.crawl(pages=self.bench.pages, archives=way)
            cost = (usage.cpu - self._starts[way]) / self.bench.pages * 1000
            self._of[way].append(cost)
            speed = self.bench.pages / usage.wall
            print(f"{self.bench.coding:8} {name:8} {cost:.3f} CPU ms/page, {speed:.0f} pages/s", flush=True)

    def report(self, archived: int) -> bool:
        """Are the goals met? `archived`: pages that are in the archive."""
        pairs = sorted(after / before for before, after in zip(self._of[False], self._of[True], strict=True))
        ratio, before, after = median(pairs), median(self._of[False]), median(self._of[True])
        nothing = self.bench.reparse("--until", "2000-01-01")
        parse = (self.bench.reparse() - nothing) / archived * 1000
        speed, name = 1000 / parse, f"{self.bench.coding:8} "
        print(f"{name}archive: {before:.3f} -> {after:.3f} CPU ms/page")
        print(f"{name}archive: x {ratio:.2f} (goal {GOAL}), pairs from {pairs[0]:.2f} to {pairs[-1]:.2f}")
        print(f"{name}re-parse: {parse:.3f} CPU ms/page, {speed:.0f} pages/s and core (goal {SPEED:.0f})")
        return ratio <= GOAL and speed >= SPEED


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--s3", action="store_true", help="to a real S3 server instead of a folder")
    parser.add_argument("--coding", choices=[*CODINGS, "both"], default="both", help="how the site sends its pages")
    asked = parser.parse_args()
    codings = CODINGS if asked.coding == "both" else (asked.coding,)
    with ExitStack() as stack:
        archives = {coding: f"file:{WORK / 'archive' / coding / 'pages'}" for coding in codings}
        environment: Mapping[str, str] = {}
        if asked.s3:
            from trotline.testing.seaweedfs_server import seaweedfs

            server = stack.enter_context(seaweedfs())
            archives, environment = {coding: server.url(f"bench-{coding}") for coding in codings}, server.environment
        found = [Costs(Bench(coding, asked.pages, archives[coding], environment)) for coding in codings]
        for _ in range(asked.rounds):
            for costs in found:
                costs.measure()
        # A folder has the pages of the last crawl, as each one removes those before.
        archived = asked.pages * (asked.rounds if asked.s3 else 1)
        met = [costs.report(archived) for costs in found]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
