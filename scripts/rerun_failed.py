"""Run pytest, and what failed once more without the others: what passes then is flaky.

    python -m scripts.rerun_failed [arguments of pytest]

Machines are shared and noisy, and the end-to-end tests start real processes by the dozen. What fails alone, fails.
Flaky tests are printed at the end with how often they were, and appended to FILE, which CI keeps.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

FILE = Path("dist/flaky-tests.txt")
"""One line per time that a test was flaky: when, and its name."""
AGAIN = ("-q", "--last-failed", "--last-failed-no-failures", "none")
_LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
_TESTS_FAILED = 1
"""Pytest's exit code. With any other, tests were not run at all: there is nothing to run again."""


def main(arguments: Sequence[str]) -> int:
    """Pytest's exit code: of the first run, or of the second if there was one."""
    code = _pytest(arguments)
    if code != _TESTS_FAILED:
        return code
    before = _failed()
    if not all(name.partition("::")[0].endswith(".py") for name in before):
        # Processes of xdist that collected different tests: none was run.
        return code
    code = _pytest(AGAIN)
    if flaky := sorted(before - _failed()):
        counts = remember(flaky, FILE, datetime.now(UTC))
        print("\n".join(told(flaky, counts)))
    return code


def remember(flaky: Sequence[str], file: Path, now: datetime) -> Counter[str]:
    """Append them to the file; how often each test stands there now."""
    file.parent.mkdir(exist_ok=True)
    with file.open("a") as out:
        out.writelines(f"{now:%Y-%m-%dT%H:%M:%SZ} {name}\n" for name in flaky)
    return Counter(line.partition(" ")[2] for line in file.read_text().splitlines())


def told(flaky: Sequence[str], counts: Counter[str]) -> list[str]:
    head = f"flaky: {len(flaky)} failed beside other tests and passed alone, see {FILE}"
    return [head, *(f"  {name} ({counts[name]} so far)" for name in flaky)]


def _pytest(arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments]).returncode  # noqa: S603 - our own arguments


def _failed() -> set[str]:
    return set(json.loads(_LAST_FAILED.read_text())) if _LAST_FAILED.exists() else set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
