"""Accounts on a fleet whose workers are killed and paused: briefly here, for long by `tests.e2e.account_soak`."""

from pathlib import Path

import pytest
from tests.e2e.account_soak import PAUSED, Plan, soak
from tests.e2e.fleet import servers

PROFILE = Plan(pages=300, accounts=6, workers=3, kills=12, slots=4, session_pages=25, at="0.3-0.9", patience=170.0)


@pytest.mark.timeout(200)
async def test_an_account_is_used_by_one_at_a_time_and_no_page_is_stored_logged_out(tmp_path: Path) -> None:
    with servers() as opened:
        result = await soak(PROFILE, opened, tmp_path)

    print(result)
    assert not result.trouble, (result, result.site.overlaps)
    assert result.killed.kinds[PAUSED].kills > 0, result
    assert sum(result.site.logins.values()) > PROFILE.accounts, "sessions end, and are renewed"
