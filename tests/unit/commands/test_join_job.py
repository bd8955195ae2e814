"""Which jobs a worker that waits hears of: those it may join, and one that ended before it could."""

from pathlib import Path

import pytest

from trotline.commands.join_job import Search
from trotline.config.backends import open_frontier, open_jobs
from trotline.model.job import Job, LaneRules, State


@pytest.fixture
def place(tmp_path: Path) -> str:
    (tmp_path / "shop.py").write_text("")
    return f"sqlite:{tmp_path}/frontier.db"


def search(place: str) -> Search:
    return Search(place, str(Path(place.removeprefix("sqlite:")).with_name("shop.py")), "shop", upgrade=True)


async def started(place: str) -> Job:
    jobs = await open_jobs(place)
    job = await jobs.start("shop", LaneRules())
    await jobs.close()
    return job


async def ended(place: str, job: Job, *, cancelled: bool) -> None:
    opened = await open_frontier(place, job)
    if cancelled:
        await opened.console.steer(State.CANCELLED)
    else:
        await opened.frontier.seal()
        await opened.frontier.announce_finish()
    await opened.close()


async def test_a_new_job_that_was_cancelled_between_two_looks_is_missed(place: str):
    looking = search(place)
    assert (await looking.look()).missed is None

    job = await started(place)
    await ended(place, job, cancelled=True)

    missed = (await looking.look()).missed
    assert missed is not None
    assert missed.id == job.id


async def test_jobs_that_were_cancelled_before_the_first_look_are_not_missed(place: str):
    await ended(place, await started(place), cancelled=True)
    await ended(place, await started(place), cancelled=False)
    looking = search(place)

    assert (await looking.look()).missed is None
    looking.look_back()
    assert (await looking.look()).missed is None
