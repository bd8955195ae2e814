"""What it costs the server to remember a URL: bytes from used_memory, CPU from INFO, and what a Bloom filter misses.

    python -m bench.redis_seen [--urls N] [--build debian|wheel]

Without numbers it measures the sizes that the promises name. The memory stands alone: no tasks, no lanes. A Bloom
filter is filled to what it was laid out for, or to four times as much; then as many other URLs are asked for, 2,000,000
at most: all of those that it knows are mistakes.
"""

import argparse
import asyncio
from dataclasses import dataclass

from trotline.model.duplicate_filter import Memory
from trotline.testing.redis_seen import BATCH, fingerprints, recall
from trotline.testing.redis_server import BUILDS, redis

SIZES = (100_000, 1_000_000)
_ASKED = 2_000_000


@dataclass(frozen=True)
class Case:
    name: str
    memory: Memory
    grown: int = 1


@dataclass(frozen=True)
class Cost:
    bytes: float
    learn: float
    """Microseconds of the server's CPU for a URL that is new; the next for one that is asked for."""
    ask: float
    missed: int
    wrong: float
    """Share of unknown URLs that it takes for known, at the end."""


def cases(urls: int) -> list[Case]:
    return [
        Case("exact", Memory()),
        Case("Bloom 0.1 %", Memory(kind="bloom", expected=urls)),
        Case("Bloom 0.1 %, 4 times as many as expected", Memory(kind="bloom", expected=urls // 4), 4),
        Case("Bloom 0.01 %", Memory(kind="bloom", expected=urls, error=0.0001)),
        Case("exact, shared by a site", Memory(scope="site")),
        Case("Bloom 0.1 %, shared by a site", Memory(kind="bloom", expected=urls, scope="site")),
    ]


def measure(url: str, case: Case, urls: int) -> Cost:
    memory = asyncio.run(recall(url, case.memory))
    warm = asyncio.run(recall(url, case.memory, "warm"))
    # What the server needs to run scripts at all is no part of the memory.
    for some in fingerprints(20 * BATCH, seed=3):
        warm.learn(some)
    warm.close()
    memory.learn([])

    def cpu() -> float:
        told = memory.redis.info("cpu")
        return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])

    def used() -> int:
        memory.redis.execute_command("MEMORY", "PURGE")
        return int(memory.redis.info("memory")["used_memory"])

    empty, started = used(), cpu()
    taken = sum(memory.learn(some) for some in fingerprints(urls))
    learning, full = cpu() - started, used()
    asked = min(urls, _ASKED)
    started = cpu()
    wrong = sum(memory.known(some) for some in fingerprints(asked, seed=2))
    asking = cpu() - started
    memory.close()
    return Cost((full - empty) / urls, learning / urls * 1e6, asking / asked * 1e6, urls - taken, wrong / asked)


HEADING = "| memory | URLs | bytes per URL | us to learn | us to ask | missed | wrong at the end |"


def line(case: Case, urls: int, cost: Cost) -> str:
    return (
        f"| {case.name} | {urls:,} | {cost.bytes:.2f} | {cost.learn:.1f} | {cost.ask:.1f} | {cost.missed:,} "
        f"| {cost.wrong * 100:.4f} % |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="What it costs the server to remember a URL.")
    parser.add_argument("--urls", type=int)
    parser.add_argument("--build", choices=BUILDS, action="append")
    given = parser.parse_args()
    for build in given.build or BUILDS:
        print(f"\n{build}\n\n{HEADING}\n|---|---|---|---|---|---|---|")
        for urls in (given.urls,) if given.urls else SIZES:
            for case in cases(urls):
                # Its log of slow calls would be counted, too.
                with redis(build, {"appendonly": "no", "slowlog-max-len": "0"}) as server:
                    print(line(case, urls, measure(server.url, case, urls)), flush=True)


if __name__ == "__main__":
    main()
