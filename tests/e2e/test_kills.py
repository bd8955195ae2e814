"""`kill -9` at every step, then the same command again: nothing lost, nothing stored twice.

Briefly; `python -m tests.e2e.kills --rounds 50` is the long version: a line per step, the sum of
all, and exit code 1 if anything is wrong.
"""

import asyncio
import os
import signal
from pathlib import Path
from random import Random

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.kills import AND_AGAIN, ANY_MOMENT, CHILD, EVERYTHING, FORKED, STEPS, SUPERVISOR, Case, cases, play
from tests.e2e.running import call, rows_of, start

SINKS = ("rows.db", "rows.jsonl")
TARGETS = 2
"""Of each case; the long version has all of them. Another case has the others: see the last test."""
# They take turns; with SOAK=1, both where rows are on their way.
CASES = [(step, SINKS[place % 2]) for place, step in enumerate(STEPS)]
if os.environ.get("SOAK"):
    CASES += [(step, SINKS[1 - place % 2]) for place, step in enumerate(STEPS) if step.endswith("store")]


@pytest.mark.parametrize(("step", "sink"), CASES)
async def test_kill_9_loses_nothing_and_doubles_nothing(step: str, sink: str, tmp_path: Path) -> None:
    chosen = cases(step, Random(f"{step} {sink}"), sink, TARGETS)
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


async def test_all_that_was_in_flight_goes_on_at_once_after_everything_was_killed(tmp_path: Path) -> None:
    """Death is not the site's fault: what the dead held is no retry, for which a lane would have to save up."""
    async with HeldSite(pages=0, held=tuple(f"{number}" for number in range(24))) as site:
        (tmp_path / "site.py").write_text(site.spider(more="concurrency=24"))
        running = await start(tmp_path, "run", "site.py", "--allow-private", "--slots", "24", "--quiet")
        for number in range(24):
            await site.arrived(f"{number}")
        running.signal_all(signal.SIGKILL)
        await running.end()
        site.release()
        ended = await call(tmp_path, "run", "site.py", "--allow-private", "--json")

        assert ended.code == 0, ended
        assert {row["name"] for row in rows_of(tmp_path / "site.db")} == site.names


def test_every_process_is_killed_before_and_after_rows_are_stored_or_settled() -> None:
    chosen = [case for step, sink in CASES for case in cases(step, Random(f"{step} {sink}"), sink, TARGETS)]
    assert {case.target for case in chosen} == {CHILD, FORKED, SUPERVISOR, EVERYTHING}
    for word in ("store", "settle"):
        assert {CHILD, SUPERVISOR, EVERYTHING} <= {case.target for case in chosen if word in case.step}
    assert {case.step for case in chosen} == set(STEPS)
