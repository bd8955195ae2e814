"""Workers of a fleet are killed at random while they work: briefly here, for long by the command of the same name."""

from pathlib import Path

import pytest
from tests.e2e.fleet import Servers
from tests.e2e.fleet_kills import KINDS
from tests.e2e.fleet_soak import Plan, part, soak

PROFILE = Plan(pages=600, hosts=50, kills=16, workers=3, pace="1/s", thinks=0.3, at="0.2-0.6", patience=170.0)
"""Slow pages, so that there is much in the hands of those who die. The job takes twice as long as the kills."""


@pytest.mark.timeout(200)
async def test_kill_9_of_workers_that_are_at_work_loses_nothing_and_doubles_nothing(both: Servers, tmp_path: Path):
    account = await soak(PROFILE, both, tmp_path)

    print(account)
    assert not account.books.trouble, account
    assert account.killed.kills == PROFILE.kills, account
    assert set(account.killed.kinds) == set(KINDS), "each kind of death was there"
    assert sum(kind.held for kind in account.killed.kinds.values()) >= PROFILE.kills, "they were at work"
    assert account.again, "somebody had something in hand"
    assert part(account.killed.back, 0.99) <= 20, account
    assert account.busiest <= 3, "the pace holds through deaths: one a second, and what a late log line adds"
