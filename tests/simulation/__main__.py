"""Run many seeds, or replay one: `python -m tests.simulation --seeds 20000`, `--replay 4711`.

`--coordinators` does it with two coordinators and a schedule instead of a crawl.
"""

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.coordinators import CoordinatorVerdict, simulate_coordinators
from tests.simulation.crawl import Verdict, simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500, help="how many seeds (default: 500)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--replay", type=int, help="run this one seed and show how it ended")
    parser.add_argument("--coordinators", action="store_true", help="two coordinators and a schedule")
    asked = parser.parse_args()
    run: Callable[[int], Verdict | CoordinatorVerdict] = simulate_coordinators if asked.coordinators else simulate
    again = "python -m tests.simulation" + (" --coordinators" if asked.coordinators else "")
    if asked.replay is not None:
        return _replay(run(asked.replay))
    failed = kills = 0
    seeds = range(asked.first, asked.first + asked.seeds)
    with ProcessPoolExecutor() as pool:
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


def _replay(verdict: Verdict | CoordinatorVerdict) -> int:
    print(verdict.progress if isinstance(verdict, Verdict) else verdict)
    print("\n".join(verdict.broken()) or "all invariants hold")
    return 1 if verdict.broken() else 0


if __name__ == "__main__":
    sys.exit(main())
