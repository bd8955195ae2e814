"""The end of a job is told once, and never early: jobs with deaths, until some were only taken for dead."""

from tests.e2e.fleet_endings import Ending, play

AT_LEAST, AT_MOST = 20, 200


async def test_the_end_of_a_job_is_told_once_and_never_early():
    endings: list[Ending] = []
    while len(endings) < AT_LEAST or (len(endings) < AT_MOST and not any(ending.stale for ending in endings)):
        endings.append(await play(len(endings)))

    print(f"{len(endings)} jobs, {sum(ending.deaths for ending in endings)} deaths")
    assert not [ending.trouble for ending in endings if ending.trouble]
    assert sum(ending.deaths for ending in endings) > len(endings)
    assert sum(ending.stale for ending in endings) > 0, "some were only taken for dead"
