"""`kill -9` at every step, then the same command again: nothing lost, nothing stored twice.

Briefly; `python -m tests.e2e.kills --rounds 50` is the long version.
"""

import asyncio
from pathlib import Path
from random import Random

import pytest
from tests.e2e.kills import AND_AGAIN, ANY_MOMENT, CHILD, EVERYTHING, STEPS, Case, cases, play

SINKS = ("rows.db", "rows.jsonl")
# Both sinks where rows are on their way; elsewhere they take turns.
CASES = [(step, SINKS[place % 2]) for place, step in enumerate(STEPS)]
CASES += [(step, SINKS[1 - place % 2]) for place, step in enumerate(STEPS) if step.endswith("store")]


@pytest.mark.parametrize(("step", "sink"), CASES)
async def test_kill_9_loses_nothing_and_doubles_nothing(step: str, sink: str, tmp_path: Path) -> None:
    chosen = cases(step, Random(f"{step} {sink}"), sink)
    folders = [tmp_path / case.target for case in chosen]
    for folder in folders:
        folder.mkdir()

    accounts = await asyncio.gather(
        *(play(case, folder, Random(str(case))) for case, folder in zip(chosen, folders, strict=True))
    )

    for case, account in zip(chosen, accounts, strict=True):
        assert account.clean, f"{case}: {account}"
        assert account.ok == account.attempted
        assert account.struck or step in (ANY_MOMENT, AND_AGAIN), f"{case}: nobody was killed"


@pytest.mark.parametrize("target", [CHILD, EVERYTHING])
async def test_a_worker_that_settles_before_it_stores_is_caught(target: str, tmp_path: Path) -> None:
    account = await play(Case("before store", target, 2, "rows.db"), tmp_path, Random(1), plant=True)

    assert account.struck
    assert account.lost > 0, "the accounting can see a loss"
    assert account.unexpected == account.duplicated == 0
