"""What a pool costs a crawl: CPU per page through 20 proxies, and through one fixed proxy, taking turns.

    python -m bench.proxy_cost [--pages 2000] [--proxies 20] [--rounds 5]

The same pages, frontier and sink, as many visits at the same time as there are proxies, no limits in the way.
Connections are those that the proxies accepted: each is a tunnel that later visits use again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from bench.__main__ import alone, describe, machine
from bench.ban_world import world
from bench.contenders import HERE, WORK
from bench.measure import measure
from bench.proxy_fleets import empty_folder, write_pools
from bench.report import table
from trotline.testing.ban_site import BanRules

FREE = BanRules(rate=1e6, burst=1e6)
PACE = "1000/s"
GOAL = 1.05
RESULTS = WORK / "proxy_cost.json"
FIXED, POOL = "one proxy", "a pool"


@dataclass(frozen=True)
class Run:
    cpu: float
    """Seconds."""
    wall: float
    connections: int
    """To the proxies."""


def crawl(kind: str, pages: int, proxies: int) -> Run:
    folder = empty_folder(f"proxy-cost-{kind.replace(' ', '-')}")
    with world(folder / "world", FREE, proxies if kind == POOL else 1) as opened:
        if kind == POOL:
            words = ["--proxies", str(write_pools(folder, "datacenter", opened.proxies))]
        else:
            words = ["--proxy", opened.proxies[0]]
        environment = {
            "BENCH_SITE": opened.site,
            "BENCH_PAGES": str(pages),
            "BENCH_POOL": "bench" if kind == POOL else "",
            "BENCH_PACE": PACE,
        }
        usage = measure([*_command(folder, proxies), *words], folder, environment)
        connections = opened.connections()
    stored = _stored(folder / "rows.db")
    if usage.exit_code or stored != pages:
        raise SystemExit(f"{kind}: exit {usage.exit_code}, {stored} of {pages} pages: see {folder / 'stderr'}")
    return Run(usage.cpu, usage.wall, connections)


def _command(folder: Path, slots: int) -> list[str]:
    program = str(Path(sys.executable).with_name("trotline"))
    places = ["--frontier", f"sqlite:{folder / 'frontier.db'}", "--sink", f"sqlite:{folder / 'rows.db'}"]
    return [
        program, "run", str(HERE / "trotline_proxied.py"), *places, "--slots", str(slots), "--allow-private", "--quiet",
    ]  # fmt: skip


def _stored(path: Path) -> int:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        [(count,)] = database.execute("SELECT count(*) FROM records")
    return int(count)


def compared(pages: int, proxies: int, rounds: int) -> dict[str, list[Run]]:
    """Round after round, the other one first each time. One page first, for the cost of the start."""
    found: dict[str, list[Run]] = {}
    for number in range(rounds):
        kinds = (FIXED, POOL) if number % 2 == 0 else (POOL, FIXED)
        for kind in kinds:
            found.setdefault(f"{kind}, start", []).append(crawl(kind, 1, proxies))
            found.setdefault(kind, []).append(crawl(kind, pages, proxies))
    return found


def per_page(found: dict[str, list[Run]], kind: str, pages: int) -> list[float]:
    """CPU milliseconds of a page, round by round, without the start."""
    start = median(run.cpu for run in found[f"{kind}, start"])
    return [(run.cpu - start) * 1000 / (pages - 1) for run in found[kind]]


def table_of(found: dict[str, list[Run]], pages: int, proxies: int) -> str:
    fixed, pool = per_page(found, FIXED, pages), per_page(found, POOL, pages)
    ratios = sorted(one / other for one, other in zip(pool, fixed, strict=True))
    header = ["", "CPU ms/page", "rounds", "pages/s", "connections to proxies"]
    body = [
        [
            f"{name}" if name == FIXED else f"{name} of {proxies}",
            f"{median(costs):.2f}",
            f"{min(costs):.2f} to {max(costs):.2f}",
            f"{pages / median(run.wall for run in found[name]):.0f}",
            f"{median(run.connections for run in found[name]):.0f}",
        ]
        for name, costs in ((FIXED, fixed), (POOL, pool))
    ]
    verdict = "met" if median(ratios) <= GOAL else "missed"
    return (
        f"{table(header, body)}\n\npool / one proxy: {median(ratios):.2f}, median of {len(ratios)} rounds "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f}); goal <= {GOAL}: {verdict}\n"
        f"least of the rounds: {min(pool) / min(fixed):.2f} (others' load makes a page dearer, never cheaper)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.proxy_cost", description=__doc__)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--proxies", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    WORK.mkdir(exist_ok=True)
    with (WORK / "lock").open("w") as lock:
        alone(lock.fileno())
        facts = machine()
        print(describe(facts), flush=True)
        found = compared(options.pages, options.proxies, options.rounds)
    kept = {name: [asdict(run) for run in runs] for name, runs in found.items()}
    RESULTS.write_text(json.dumps({"machine": facts, "pages": options.pages, "runs": kept}, indent=1))
    print(table_of(found, options.pages, options.proxies))
    print(f"load at the end {os.getloadavg()[0]:.1f}; figures in {RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
