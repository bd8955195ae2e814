"""What an archive costs, and how fast it is parsed again, on the product site.

    python -m bench.archive [--pages 2000] [--rounds 7] [--s3]

Crawls with and without `--archive` take turns, and the figure is the median of the ratios of neighbours, so that a
noisy moment hits both sides of it. CPU is that of all processes of the command, without its start (a crawl of one page).
The re-parse is a dry run into nothing, with one process.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
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
TROTLINE = str(Path(sys.executable).with_name("trotline"))
SPIDER = str(HERE / "trotline_product.py")


def crawl(pages: int, words: Sequence[str], environment: Mapping[str, str]) -> Usage:
    folder = WORK / "archive"
    shutil.rmtree(folder, ignore_errors=True)
    with Server(site.build(WORK / "sites", pages), folder / "nginx") as server:
        seed = {"BENCH_SEED": f"{server.base}{site.path(0)}"}
        places = ["--frontier", f"sqlite:{folder / 'frontier.db'}", "--sink", f"sqlite:{folder / 'rows.db'}"]
        command = [TROTLINE, "run", SPIDER, *places, "--slots", "64", "--allow-private", "--quiet", *words]
        usage = measure(command, folder / "run", {**seed, **environment})
    if usage.exit_code:
        raise SystemExit(f"exit {usage.exit_code}: see {folder / 'run' / 'stderr'}")
    return usage


def reparse(words: Sequence[str], environment: Mapping[str, str]) -> Usage:
    folder = WORK / "archive"
    command = [TROTLINE, "reparse", SPIDER, "--sink", f"sqlite:{folder / 'none.db'}", "--dry-run", "--processes", "1"]
    usage = measure([*command, *words], folder / "reparse", {"BENCH_SEED": "http://127.0.0.1/", **environment})
    if usage.exit_code not in (0, NOTHING):
        raise SystemExit(f"exit {usage.exit_code}: see {folder / 'reparse' / 'stderr'}")
    return usage


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--s3", action="store_true", help="to a real S3 server instead of a folder")
    asked = parser.parse_args()
    with ExitStack() as stack:
        archive, environment = f"file:{WORK / 'archive' / 'pages'}", {}
        if asked.s3:
            from trotline.testing.seaweedfs_server import seaweedfs

            server = stack.enter_context(seaweedfs())
            archive, environment = server.url("bench"), server.environment
        words = ["--archive", archive]
        ways = {"without": [], "with": words}
        costs: dict[str, list[float]] = {"without": [], "with": []}
        starts = {name: min(crawl(1, given, environment).cpu for _ in range(2)) for name, given in ways.items()}
        for _ in range(asked.rounds):
            for name, given in ways.items():
                usage = crawl(asked.pages, given, environment)
                costs[name].append((usage.cpu - starts[name]) / asked.pages * 1000)
                print(f"{name:8} {costs[name][-1]:.3f} CPU ms/page, {asked.pages / usage.wall:.0f} pages/s")
        number = asked.pages * (asked.rounds if asked.s3 else 1)
        nothing = reparse([*words, "--until", "2000-01-01"], environment).cpu
        parse = (reparse(words, environment).cpu - nothing) / number * 1000
    pairs = sorted(after / before for before, after in zip(costs["without"], costs["with"], strict=True))
    ratio = median(pairs)
    before, after = median(costs["without"]), median(costs["with"])
    print(f"archive: {before:.3f} -> {after:.3f} CPU ms/page")
    print(f"archive: x {ratio:.2f} (goal {GOAL}), pairs from {pairs[0]:.2f} to {pairs[-1]:.2f}")
    print(f"re-parse: {parse:.3f} CPU ms/page, {1000 / parse:.0f} pages/s and core (goal {SPEED:.0f})")
    return 0 if ratio <= GOAL and 1000 / parse >= SPEED else 1


if __name__ == "__main__":
    sys.exit(main())
