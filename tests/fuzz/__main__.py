"""The long run: `python -m tests.fuzz --minutes 30`. Rounds of fresh inputs until the time is over or something fails.

With --guided (and the package atheris installed) one property is fed inputs that reach new code, until it is stopped:
`python -m tests.fuzz --guided test_urls:test_what_is_read_is_settled`.
"""

import argparse
import importlib
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from tests.suites.test_robots import difference_in, real_files

HERE = Path(__file__).parent
EXAMPLES = 3_000
"""Inputs for each property in one round."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default: 30)")
    parser.add_argument("--seed", type=int, help="replay the round with this seed, once")
    parser.add_argument("--guided", metavar="FILE:TEST", help="one property, guided by coverage; needs atheris")
    asked, rest = parser.parse_known_args()
    if asked.guided:
        return _guided(asked.guided, rest)
    if asked.seed is not None:
        return _round(asked.seed)
    until = time.monotonic() + asked.minutes * 60
    if failed := _every_real_robots_file():
        return failed
    rounds = 0
    while time.monotonic() < until:
        seed = random.SystemRandom().randrange(1 << 32)
        if _round(seed):
            print(f"replay: python -m tests.fuzz --seed {seed}")
            return 1
        rounds += 1
        print(f"{rounds} rounds of {EXAMPLES} inputs for each property, nothing found", flush=True)
    return 0


def _round(seed: int) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--timeout=3600", f"--hypothesis-seed={seed}", HERE]
    environment = {**os.environ, "TROTLINE_FUZZ_EXAMPLES": str(EXAMPLES)}
    return subprocess.run(command, env=environment, check=False).returncode


def _every_real_robots_file() -> int:
    differing = [f"{site}: {what}" for site, text in real_files(1) if (what := difference_in(site, text))]
    print("\n".join(differing) or "all real robots.txt files agree", flush=True)
    return 1 if differing else 0


def _guided(name: str, rest: list[str]) -> int:
    try:
        import atheris  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        print("Guided fuzzing needs the package atheris. Try: pip install atheris")
        return 2
    file, _, test = name.partition(":")
    with atheris.instrument_imports():
        target = getattr(importlib.import_module(f"tests.fuzz.{file}"), test)
    atheris.Setup([sys.argv[0], *rest], target.hypothesis.fuzz_one_input)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
