"""Pages a minute through proxies that a site limits and bans by address: workers that share a pool, and a peer whose
processes know nothing of each other.

    python -m bench.proxy_table --quick     one small size and a short window: a minute
    python -m bench.proxy_table             three sizes: 3 workers with 10 proxies, 10 with 50, 20 with 100
    python -m bench.proxy_table --size 1 --window 1200 --fleets scrapy-rotating

The site allows each address 60 requests a minute (40 in the second size) with bursts of 5, answers 429 above that, and
bans the address for 10 minutes after five 429s. It answers in 300 ms, 150 more or less. Site and proxies are processes
of their own on loopback addresses; the site's log is what is counted. `whole run` begins with the first request.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import signal
import sys
import time
from typing import Any

from bench.__main__ import alone, describe, machine
from bench.ban_world import SiteLog, world
from bench.contenders import WORK, installed
from bench.proxy_fleets import FLEETS, Crew, Fleet, Size, empty_folder
from bench.report import table
from bench.services import POSTGRES, REDIS, Services, serving
from trotline.testing.ban_site import BanRules

Figures = dict[str, Any]
SIZES = (
    Size(3, 10, "datacenter", per_minute=60, pace=58, claimed=500),
    Size(10, 50, "residential", per_minute=40, pace=38.5, claimed=1500),
    Size(20, 100, "residential", per_minute=60, pace=58, claimed=5000),
)
QUICK = Size(2, 6, "datacenter", per_minute=60, pace=58, claimed=300)
RESULTS = WORK / "proxy_table.json"
FULL_UP, FULL_WINDOW, QUICK_UP, QUICK_WINDOW = 45.0, 90.0, 3.0, 6.0
PER_PROCESS = 50
"""Proxies of one process."""
LIMITS = {"burst": 5.0, "ban_after": 5, "ban_for": 600.0, "latency": 0.3, "jitter": 0.15}


def measured(fleet: Fleet, size: Size, warm_up: float, window: float, services: Services) -> Figures:
    """One fleet on one site. The window begins so long after the first request."""
    folder = empty_folder(f"proxied-{fleet.name}")
    services.begin()
    rules = BanRules(rate=size.per_minute / 60, **LIMITS)
    pages = int(size.ceiling / 60 * (warm_up + window + 60) * 1.2)
    with world(folder / "world", rules, size.proxies, processes=-(-size.proxies // PER_PROCESS)) as opened:
        crew = fleet.start(size, opened, pages, folder, services)
        try:
            time.sleep(warm_up)
            start, cpu, redis_cpu = time.monotonic(), crew.cpu(), services.redis_cpu()
            time.sleep(window)
            end, cpu, redis_cpu = time.monotonic(), crew.cpu() - cpu, services.redis_cpu() - redis_cpu
            ended = crew.ended()
        finally:
            crew.stop()
        log = opened.log()
    return {**figures(log, start, end), **costs(log, crew, start, end, cpu, redis_cpu), "ended_early": ended}


def figures(log: SiteLog, start: float, end: float) -> Figures:
    first = log.requests[0][0] if log.requests else start
    statuses, all_statuses = log.statuses(start, end), log.statuses(first, end)
    return {
        "seconds": end - start,
        "per_minute": log.good(start, end) * 60 / (end - start),
        "whole_seconds": end - first,
        "whole_per_minute": log.good(first, end) * 60 / (end - first),
        "refused": statuses[429] + statuses[403],
        "whole_refused": all_statuses[429] + all_statuses[403],
        "bans": log.bans,
    }


def costs(log: SiteLog, crew: Crew, start: float, end: float, cpu: float, redis_cpu: float) -> Figures:
    good = log.good(start, end)
    return {
        "processes": len(crew.running),
        "cpu_s_per_page": cpu / good if good else None,
        "redis_ms_per_page": redis_cpu * 1000 / good if good and redis_cpu else None,
        "cores": cpu / (end - start),
        "load": os.getloadavg()[0],
    }


def row(size: Size, title: str, found: Figures) -> list[str]:
    cpu = found["cpu_s_per_page"]
    return [
        size.name,
        title,
        f"{found['per_minute']:,.0f}",
        f"{found['per_minute'] / size.ceiling:.0%} of {size.ceiling:,.0f}",
        f"{found['whole_per_minute']:,.0f}",
        str(found["bans"]),
        f"{found['refused']} ({found['whole_refused']})",
        f"{cpu * 1000:.1f}" if cpu else "",
        f"{found['cores']:.2f}",
        f"{found['load']:.1f}",
        f"{size.claimed:,}",
    ]


HEADER = [
    "size",
    "fleet",
    "good pages/min",
    "of the ceiling",
    "whole run",
    "bans",
    "refused (whole run)",
    "CPU ms/page",
    "cores",
    "load",
    "the table says",
]


def printed(sizes: list[Size], results: Figures) -> str:
    titles = {fleet.name: fleet.title for fleet in FLEETS}
    body = [row(size, titles[name], found) for size in sizes for name, found in results[size.name].items()]
    return table(HEADER, body)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.proxy_table", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small size, short")
    parser.add_argument("--size", type=int, choices=(1, 2, 3), action="append", help="only this row; may be repeated")
    parser.add_argument("--fleets", help=f"comma-separated: {', '.join(fleet.name for fleet in FLEETS)}")
    parser.add_argument("--window", type=float, help="seconds that are measured")
    parser.add_argument("--warm-up", type=float, help="seconds before them")
    return parser.parse_args()


def chosen_fleets(names: str | None) -> list[Fleet]:
    known = {fleet.name: fleet for fleet in FLEETS}
    wanted = names.split(",") if names else list(known)
    if unknown := [name for name in wanted if name not in known]:
        raise SystemExit(f"no such fleet: {', '.join(unknown)}; there are {', '.join(known)}")
    found = [known[name] for name in wanted]
    return [fleet for fleet in found if fleet.requirements is None or installed(fleet.requirements)]


def main() -> int:
    options = arguments()
    # So that a stopped benchmark stops its fleet.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Where it is set, every process that is measured would compile its modules anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    WORK.mkdir(exist_ok=True)
    with (WORK / "lock").open("w") as lock:
        alone(lock.fileno())
        return run(options)


def run(options: argparse.Namespace) -> int:
    sizes = [QUICK] if options.quick else [SIZES[number - 1] for number in options.size or (1, 2, 3)]
    warm_up = options.warm_up or (QUICK_UP if options.quick else FULL_UP)
    window = options.window or (QUICK_WINDOW if options.quick else FULL_WINDOW)
    fleets, facts = chosen_fleets(options.fleets), machine()
    print(describe(facts), flush=True)
    results: Figures = {size.name: {} for size in sizes}
    with serving({REDIS, POSTGRES}) as services:
        for size in sizes:
            for fleet in fleets:
                found = measured(fleet, size, warm_up, window, services)
                results[size.name][fleet.name] = found
                keep(size, fleet.name, {**found, "machine": facts})
                print(f"  {size.name}: {fleet.name}: {found['per_minute']:.0f} pages/min", flush=True)
    print("\n" + printed(sizes, results), flush=True)
    print(f"\nload at the end {os.getloadavg()[0]:.1f}; figures in {RESULTS}")
    broken = [name for found in results.values() for name, each in found.items() if any(each["ended_early"])]
    if broken:
        print(f"processes of {', '.join(broken)} failed: see their output in {WORK / 'runs'}")
    return 1 if broken else 0


def keep(size: Size, fleet: str, found: Figures) -> None:
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known.setdefault(size.name, {"size": dataclasses.asdict(size)})[fleet] = found
    RESULTS.write_text(json.dumps(known, indent=1))


if __name__ == "__main__":
    sys.exit(main())
