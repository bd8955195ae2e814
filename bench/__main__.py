"""`python -m bench`: measure Trotline and its peers, print tables; the figures go to bench/.work/results.json."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import report, scenarios
from bench.compare import compare
from bench.contenders import (
    BARE,
    CELERY,
    CONTENDERS,
    CRAWLEE,
    FLEET,
    FLEET_OF_TWO,
    SCRAPY_LEAN,
    SCRAPY_PLAIN,
    SCRAPY_REDIS,
    SCRAPY_TUNED,
    SNIPPET,
    TROTLINE,
    WORK,
    Contender,
    prepare,
)
from bench.guards import guards as run_guards
from bench.guards import told as told_guards
from bench.hosts import hosts as run_hosts
from bench.plot import bars
from bench.poison import Manner
from bench.poison import poison as run_poison
from bench.tarpit import tarpit as run_tarpit

Figures = dict[str, Any]
SCENARIOS = ("peers", "sizes", "latency", "children", "memory", "startup", "hosts", "guards", "poison", "tarpit")
QUICK = ("peers", "sizes", "latency", "hosts", "startup")
RESULTS = WORK / "results.json"
PICTURE = WORK / "peers.svg"
LOCAL = [TROTLINE, BARE, SCRAPY_TUNED, SCRAPY_LEAN, SCRAPY_PLAIN, CRAWLEE]
USUAL = [*LOCAL, FLEET, FLEET_OF_TWO, SCRAPY_REDIS, CELERY, SNIPPET]
SLOW = (SCRAPY_PLAIN, CRAWLEE, SCRAPY_REDIS, SNIPPET)


def main() -> int:
    options = arguments()
    # Where it is set, every process that is measured would compile its modules anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    WORK.mkdir(exist_ok=True)
    with (WORK / "lock").open("w") as lock:
        alone(lock.fileno())
        return run(options)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="2,000 pages, one round, ten minutes or so (the default)")
    size.add_argument(
        "--full", action="store_true", help="everything: 5,000 pages, three rounds, 100,000 pages for memory"
    )
    parser.add_argument("--only", choices=SCENARIOS, action="append", help="only this scenario; may be repeated")
    parser.add_argument("--contenders", help=f"comma-separated, for peers and latency: {', '.join(CONTENDERS)}")
    parser.add_argument("--pages", type=int, help="pages per crawl in place of the usual number")
    parser.add_argument("--rounds", type=int, help="rounds in place of the usual number")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="an earlier results.json: peers then and now")
    return parser.parse_args()


def alone(lock: int) -> None:
    """What the last one started may take a moment to end."""
    until = time.monotonic() + 60
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise SystemExit(
                    "another benchmark is running in this checkout: two at once would measure each other"
                ) from None
            time.sleep(0.1)
        else:
            return


def run(options: argparse.Namespace) -> int:
    names = options.contenders.split(",") if options.contenders else None
    contenders = [CONTENDERS[name] for name in names] if names else USUAL
    contenders = prepare(contenders)
    facts = machine()
    print(describe(facts))
    whole = True
    for name in options.only or (SCENARIOS if options.full else QUICK):
        print(f"\n{name}", flush=True)
        figures = PLANS[name](options, contenders)
        whole = whole and bool(figures) and not figures.get("failed")
        if figures:
            print("\n" + PRINTERS[name](figures), flush=True)
            keep(name, {**figures, "machine": {**facts, "load_after": os.getloadavg()[0]}})
        if name == "peers" and figures:
            PICTURE.write_text(bars(figures))
            if options.compare:
                print("\n" + compare(options.compare, figures), flush=True)
    print(f"\nload at the end {os.getloadavg()[0]:.1f}; figures in {RESULTS}")
    return 0 if whole else 1


def keep(name: str, figures: Figures) -> None:
    """One scenario's figures, beside the latest ones of the others."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps({**known, name: figures}, indent=1))


def rounds(options: argparse.Namespace) -> int:
    return options.rounds or (3 if options.full else 1)


def pages(options: argparse.Namespace, quick: int, full: int) -> int:
    return options.pages or (full if options.full else quick)


def peers(options: argparse.Namespace, contenders: list[Contender]) -> Figures:
    return scenarios.peers(contenders, pages(options, 2000, 5000), rounds(options))


def sizes(options: argparse.Namespace, contenders: list[Contender]) -> Figures:
    """Small and large pages, for those that are not slow."""
    fast = [each for each in contenders if each not in SLOW]
    count, turns = pages(options, 1000, 2000), rounds(options)
    kinds = {kind: scenarios.peers(fast, count, turns, kind) for kind in ("small", "large")}
    return {"kinds": kinds, "failed": [name for each in kinds.values() for name in each["failed"]]}


def latency(options: argparse.Namespace, contenders: list[Contender]) -> Figures:
    chosen = contenders if options.full or options.contenders else [TROTLINE, BARE]
    return scenarios.latency(
        pages(options, 2000, 5000), [each for each in chosen if each not in SLOW and not each.services]
    )


def children(options: argparse.Namespace, _contenders: list[Contender]) -> Figures:
    return scenarios.children(pages(options, 5000, 20000), rounds(options))


def memory(options: argparse.Namespace, _contenders: list[Contender]) -> Figures:
    count = pages(options, 100_000, 100_000)
    if figures := scenarios.memory(count):
        scenarios.tidy(count)
    return figures


def startup(options: argparse.Namespace, _contenders: list[Contender]) -> Figures:
    return scenarios.start_up(max(5, rounds(options)))


def hosts(options: argparse.Namespace, _contenders: list[Contender]) -> Figures:
    """A minute of 1,000 hosts at a page a second each, one worker of two children."""
    return run_hosts(1000, options.pages or (60 if options.full else 20), processes=2)


def guards(options: argparse.Namespace, _contenders: list[Contender]) -> Figures:
    return run_guards(pages(options, 2000, 5000), max(3, rounds(options) * 2))


def poison(options: argparse.Namespace, _contenders: list[Contender]) -> Figures:
    """One poison page for 25 good ones, at the default pace of 20 sites."""
    good = pages(options, 500, 5000)
    return run_poison(hosts=20, good=good, bad=good // 25, manner=Manner(processes=8, slots=2))


def tarpit(options: argparse.Namespace, _contenders: list[Contender]) -> Figures:
    """One tar pit among 100 healthy hosts."""
    return run_tarpit(hosts=100, good=pages(options, 2000, 5000), manner=Manner(processes=1, slots=32))


def both_sizes(figures: Figures) -> str:
    return "\n\n".join(report.peers(each) for each in figures["kinds"].values())


PLANS: dict[str, Callable[[argparse.Namespace, list[Contender]], Figures]] = {
    "peers": peers,
    "sizes": sizes,
    "latency": latency,
    "children": children,
    "memory": memory,
    "startup": startup,
    "hosts": hosts,
    "guards": guards,
    "poison": poison,
    "tarpit": tarpit,
}
PRINTERS: dict[str, Callable[[Figures], str]] = {
    "peers": report.peers,
    "sizes": both_sizes,
    "latency": report.latency,
    "children": report.children,
    "memory": report.memory,
    "startup": report.start_up,
    "hosts": report.hosts,
    "guards": told_guards,
    "poison": report.poison,
    "tarpit": report.tarpit,
}


def machine() -> Figures:
    model = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": model[0].partition(":")[2].strip() if model else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "python": platform.python_version(),
        "system": platform.platform(),
        "load_before": os.getloadavg()[0],
    }


def describe(facts: Figures) -> str:
    return (
        f"{facts['cores']} cores of {facts['processor']}, {facts['memory_gb']} GB, Python {facts['python']}, "
        f"load before {facts['load_before']:.1f}"
    )


if __name__ == "__main__":
    sys.exit(main())
