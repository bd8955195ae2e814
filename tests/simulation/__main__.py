"""Run many seeds, or replay one: `python -m tests.simulation --seeds 20000`, `--replay 4711`.

`--shards` does it over a job in several shards on a real Valkey, `--proxies` through a pool of proxies,
`--coordinators` with two coordinators and a schedule instead of a crawl.
"""

import argparse
import logging
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.coordinators import CoordinatorVerdict, simulate_coordinators
from tests.simulation.crawl import Verdict, simulate
from tests.simulation.fleet import simulate_fleet
from tests.simulation.proxied import simulate_proxies


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500, help="how many seeds (default: 500)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--replay", type=int, help="run this one seed and show how it ended")
    world = parser.add_mutually_exclusive_group()
    world.add_argument("--shards", action="store_true", help="a job in several shards, on a real server")
    world.add_argument("--proxies", action="store_true", help="a crawl through a pool of proxies that sites ban")
    world.add_argument("--coordinators", action="store_true", help="two coordinators and a schedule")
    asked = parser.parse_args()
    run, again = _world(asked)
    if asked.replay is not None:
        return _replay(run(asked.replay))
    failed = kills = 0
    seeds = range(asked.first, asked.first + asked.seeds)
    with ProcessPoolExecutor(initializer=_quiet) as pool:
        for number, verdict in enumerate(pool.map(run, seeds, chunksize=20), start=1):
            kills += verdict.kills
            if broken := verdict.broken():
                failed += 1
                print(f"seed {verdict.seed}: {'; '.join(broken)}")
                print(f"  replay: {again} --replay {verdict.seed}")
            if number % 1000 == 0:
                print(f"{number} seeds, {kills} kills, {failed} failing", file=sys.stderr)
    print(f"{asked.seeds} seeds, {kills} kills, {failed} failing")
    return 1 if failed else 0


def _world(asked: argparse.Namespace) -> tuple[Callable[[int], Verdict | CoordinatorVerdict], str]:
    """What is simulated, and the command that does it."""
    command = "python -m tests.simulation"
    if asked.shards:
        return simulate_fleet, f"{command} --shards"
    if asked.proxies:
        return simulate_proxies, f"{command} --proxies"
    if asked.coordinators:
        return simulate_coordinators, f"{command} --coordinators"
    return simulate, command


def _quiet() -> None:
    """What goes wrong is the point here, and need not be said."""
    logging.disable()


def _replay(verdict: Verdict | CoordinatorVerdict) -> int:
    print(verdict.progress if isinstance(verdict, Verdict) else verdict)
    print("\n".join(verdict.broken()) or "all invariants hold")
    return 1 if verdict.broken() else 0


if __name__ == "__main__":
    sys.exit(main())
