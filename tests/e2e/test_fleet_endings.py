"""The end of a job is told once, and never early: as many jobs with deaths as fit into a few seconds."""

import time

import pytest
from tests.e2e.fleet_endings import play

pytestmark = pytest.mark.xdist_group("redis")

SECONDS = 10.0
AT_LEAST = 20


async def test_the_end_of_a_job_is_told_once_and_never_early():
    until = time.monotonic() + SECONDS
    endings = []
    while time.monotonic() < until or len(endings) < AT_LEAST:
        endings.append(await play(len(endings)))

    print(f"{len(endings)} jobs, {sum(ending.deaths for ending in endings)} deaths")
    assert not [ending.trouble for ending in endings if ending.trouble]
    assert sum(ending.deaths for ending in endings) > len(endings)
    assert sum(ending.stale for ending in endings) > 0, "some were only taken for dead"
