"""Writes docs/reference/guarantees.md: what each frontier guarantees, from the contract suite.

    python -m scripts.guarantees          run the suite on all frontiers; write the page if everything passes
    python -m scripts.guarantees --keep   write it without a run: after changes of texts only

A cell is the number of tests of a promise that a frontier passes. tests/docs checks that the page has the tests, gaps
and marks of the suites as they are now; that they pass is checked by the suites themselves.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "guarantees.md"
_PROMISE = re.compile(r"test_([a-z]\d+)_")
_SAID = re.compile(r"^    ([A-Z]\d+) {1,3}(.+(?:\n {9}\S.*)*)", re.MULTILINE)

HEAD = """# What each frontier guarantees

Written by `python -m scripts.guarantees` from the [contract suite](frontier-contract.md), not by hand. A cell is the
number of tests of the promise that the frontier passes; in brackets the number of a limit or gap, listed below;
"-": not given.
"""


def suites() -> dict[str, type]:
    """The frontiers under contract, by the name that people know."""
    from tests.contract.test_frontier_postgres import TestPostgresWheel
    from tests.contract.test_frontier_rabbitmq import BooksOnPostgres as RabbitOnPostgres
    from tests.contract.test_frontier_rabbitmq import TestRabbitMQ
    from tests.contract.test_frontier_redis import TestRedis, TestShards
    from tests.contract.test_frontier_sqlite import TestSqliteFile, TestSqliteMemory
    from tests.contract.test_frontier_sqs import BooksOnPostgres as SqsOnPostgres
    from tests.contract.test_frontier_sqs import TestSQS

    return {
        "SQLite, file": TestSqliteFile,
        "SQLite, memory": TestSqliteMemory,
        "Redis or Valkey": TestRedis,
        "Redis Cluster": TestShards,
        "PostgreSQL": TestPostgresWheel,
        "RabbitMQ with books on Redis": TestRabbitMQ,
        "RabbitMQ with books on PostgreSQL": RabbitOnPostgres,
        "SQS with books on Redis": TestSQS,
        "SQS with books on PostgreSQL": SqsOnPostgres,
    }


def promises() -> dict[str, str]:
    """Number -> what is promised, from the docstrings of the ports; the first sentence."""
    from trotline.ports.console import Console
    from trotline.ports.frontier import Frontier
    from trotline.ports.proxy_pools import ProxyPools

    found: dict[str, str] = {}
    for port in (Frontier, Console, ProxyPools):
        for name, text in _SAID.findall(port.__doc__ or ""):
            found[name.lower()] = _first_sentence(" ".join(text.split()))
    return found


def _first_sentence(text: str) -> str:
    """Up to the first end that is not inside of brackets."""
    ends = (one.start() for one in re.finditer(r"[;:.](?:\s|$)", text))
    return text[: next((end for end in ends if text[:end].count("(") == text[:end].count(")")), len(text))]


def _tests(suite: type) -> Iterator[tuple[str, str]]:
    for name in dir(suite):
        if (found := _PROMISE.match(name)) is not None:
            yield found[1], name


def _covers(gap: str, test: str) -> bool:
    name = test.removeprefix("test_")
    return name == gap or name.startswith(f"{gap}_")


def page() -> str:
    told, found = promises(), suites()
    used = {promise for suite in found.values() for promise, _ in _tests(suite)}
    order = sorted(used, key=lambda name: ("fcnra".find(name[0]), int(name[1:])))
    notes: dict[str, str] = {}
    lines = [HEAD, f"| | {' | '.join(found)} |", f"|---|{'---|' * len(found)}"]
    for promise in order:
        cells = [_cell(suite, name, promise, notes) for name, suite in found.items()]
        lines.append(f"| {promise.upper()} {told.get(promise, '')} | {' | '.join(cells)} |")
    lines += ["", "## Limits and gaps", "", "| | frontier | |", "|---|---|---|"]
    lines += [f"| {letter} | {text} |" for text, letter in notes.items()]
    return "\n".join(lines) + "\n"


def _cell(suite: type, frontier: str, promise: str, notes: dict[str, str]) -> str:
    tests = [name for found, name in _tests(suite) if found == promise]
    left_out = {name: why for name in tests for gap, why in suite.gaps.items() if _covers(gap, name)}  # type: ignore[attr-defined]
    whys = [*dict.fromkeys(left_out.values())]
    if promise in suite.marks:  # type: ignore[attr-defined]
        whys.append(suite.marks[promise])  # type: ignore[attr-defined]
    letters = [notes.setdefault(f"{frontier} | {promise.upper()}: {why}", _letter(len(notes))) for why in whys]
    shown = str(len(tests) - len(left_out)) if len(left_out) < len(tests) else "-"
    return f"{shown} {' '.join(letters)}".strip()


def _letter(number: int) -> str:
    return f"({number + 1})"


def main() -> int:
    if "--keep" not in sys.argv:
        files = [
            f"tests/contract/test_frontier_{name}.py" for name in ("sqlite", "redis", "postgres", "rabbitmq", "sqs")
        ]
        done = subprocess.run(  # noqa: S603  Our own arguments, no shell.
            [sys.executable, "-m", "pytest", "-q", "-n", "2", *files],
            cwd=ROOT,
            env={**os.environ, "SOAK": "1"},
        )
        if done.returncode:
            print("not written: some tests fail")
            return 1
    PAGE.write_text(page())
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
