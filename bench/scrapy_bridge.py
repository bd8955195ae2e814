"""What a page costs a Scrapy process: plain, on the bridge, and with scrapy-redis; and what it costs the Redis server.

    python -m bench.scrapy_bridge --pages 2000 --rounds 3

The same spider each time, in one process, over pages with 80 links (`--links`) of which most are known. CPU time of the
Scrapy process between the opening and the closing of the spider, all threads; CPU time of the Redis server by its own
account, as it is, and without what an idle server takes in the same time (that of the plain run has nothing to do): on
a busy machine a crawl takes longer, and the server's timers run meanwhile. Ratios are what counts: the figures of a
busy machine are not comparable with those of another one.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from trotline.testing.redis_server import DEBIAN, RedisServer, redis

HERE = Path(__file__).parent
SPIDER = HERE / "scrapy_peers" / "tree_spider.py"
SITE = HERE / "scrapy_peers" / "tree_site.py"
PLAIN, BRIDGE, PEER = "plain Scrapy", "Trotline add-on", "scrapy-redis"


class Cost(NamedTuple):
    """Milliseconds of a page."""

    process: float
    """CPU of the Scrapy process,"""
    server: float
    """of the Redis server,"""
    wall: float
    """and the time of the run."""


def words(mode: str, url: str) -> list[str]:
    if mode == BRIDGE:
        return ['ADDONS={"trotline.bridges.scrapy.Addon": 500}', f"TROTLINE={url}"]
    if mode == PEER:
        return [
            "SCHEDULER=scrapy_redis.scheduler.Scheduler",
            "DUPEFILTER_CLASS=scrapy_redis.dupefilter.RFPDupeFilter",
            f"REDIS_URL={url}",
        ]
    return []


@contextmanager
def site(pages: int, links: int) -> Iterator[str]:
    process = subprocess.Popen([sys.executable, str(SITE), str(pages), str(links)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def server_cpu(server: RedisServer) -> float:
    text = server.command("INFO", "cpu").decode()
    lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return float(lines["used_cpu_user"]) + float(lines["used_cpu_sys"])


def measured(mode: str, pages: int, links: int, concurrency: int) -> Cost:
    with redis(DEBIAN) as server, site(pages, links) as url:
        limits = [f"CONCURRENT_REQUESTS={concurrency}", f"CONCURRENT_REQUESTS_PER_DOMAIN={concurrency}"]
        options = [word for one in (*words(mode, server.url), *limits) for word in ("-s", one)]
        before, began = server_cpu(server), time.monotonic()
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "scrapy", "runspider", str(SPIDER), *options],
            env={**os.environ, "SITE": url}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        wall = time.monotonic() - began
        told = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not told:
            raise SystemExit(f"{mode} failed:\n{done.stderr[-3000:]}")
        found = json.loads(told[-1])
        if found["pages"] != pages:
            raise SystemExit(f"{mode} visited {found['pages']} of {pages} pages:\n{done.stderr[-3000:]}")
        return Cost(*(1000 * taken / pages for taken in (found["cpu"], server_cpu(server) - before, wall)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--links", type=int, default=80, help="of a page; that of a shop has about so many")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=16)
    given = parser.parse_args()
    found: dict[str, list[Cost]] = {PLAIN: [], BRIDGE: [], PEER: []}
    for _ in range(given.rounds):
        # In turns: what else the machine does falls on all of them.
        for mode, results in found.items():
            results.append(measured(mode, given.pages, given.links, given.concurrency))
    print(f"{given.pages:,} pages with {given.links} links, median of {given.rounds}")
    show({mode: Cost(*map(median, zip(*results, strict=True))) for mode, results in found.items()})


def show(medians: dict[str, Cost]) -> None:
    plain = medians[PLAIN]
    idle = plain.server / plain.wall
    working = {mode: cost.server - idle * cost.wall for mode, cost in medians.items()}
    print(f"{'':16} {'CPU per page':>13} {'x plain':>8} {'Redis CPU per page':>19} {'without idling':>15}")
    for mode, cost in medians.items():
        print(
            f"{mode:16} {cost.process:10.2f} ms {cost.process / plain.process:7.2f}x "
            f"{cost.server * 1000:16.0f} us {working[mode] * 1000:12.0f} us"
        )
    ratio = medians[PEER].server / medians[BRIDGE].server
    print(f"Redis CPU per page: 1/{ratio:.1f} of scrapy-redis; without idling 1/{working[PEER] / working[BRIDGE]:.1f}")


if __name__ == "__main__":
    main()
