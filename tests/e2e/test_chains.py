"""The steps of chains over a fleet whose workers are killed: briefly here, for long by `tests.e2e.chain_soak`."""

from pathlib import Path

import pytest
from tests.e2e.chain_soak import Plan, soak
from tests.e2e.fleet import servers

PROFILE = Plan(chains=36, steps=8, workers=3, kills=10, slots=4, thinks=0.25, trouble=40, at="0.2-0.5", patience=170.0)
"""The steps take twice as long as the kills, or the job may end before the last of them."""


@pytest.mark.timeout(200)
async def test_every_step_is_visited_in_its_order_and_stored_once_whoever_is_killed(tmp_path: Path) -> None:
    with servers() as opened:
        result = await soak(PROFILE, opened, tmp_path)

    print(result)
    assert not result.trouble, result
    assert result.killed.kills == PROFILE.kills, result
    assert result.site.failed, "some steps were retried"
    assert sum(map(len, result.site.log.values())) > PROFILE.chains * PROFILE.steps + sum(
        result.site.failed.values()
    ), "some were in the hands of those who were killed"
