"""`trotline jobs --forget`: by name or by age, and never what is at work unless it is asked for twice."""

import asyncio
import json
import sqlite3
from pathlib import Path

from tests.unit.cli.conftest import FRONTIER, Call
from trotline.config.backends import open_frontier, open_jobs
from trotline.model.job import State
from trotline.testing.frontier_contract import client


async def end(name: str) -> None:
    """Cancel the job, and let its worker go."""
    jobs = await open_jobs(FRONTIER)
    [found] = [each for each in await jobs.all() if each.id == name]
    await jobs.close()
    frontier = client(await open_frontier(FRONTIER, found))
    await frontier.steer(State.CANCELLED)
    await frontier.leave("w")
    await frontier.close()


def test_a_job_that_has_not_ended_is_forgotten_only_by_force(call: Call, job: str) -> None:
    code, _, said = call("jobs", "--forget", job)
    assert code != 0
    assert "has not ended: 1 of its tasks" in said
    assert "--force" in said
    assert job in call("jobs")[1]

    code, said, _ = call("jobs", "--forget", job, "--force")
    assert (code, said) == (0, f"{job} is forgotten; its records are where they were stored\n")
    assert job not in call("jobs")[1]


def test_a_limit_that_would_not_limit_what_is_forgotten_is_refused(call: Call, job: str) -> None:
    asyncio.run(end(job))
    code, _, said = call("jobs", "--forget", "--older-than", "0s", "--limit", "1")
    assert (code, "--limit has no effect on --forget" in said) == (2, True)
    assert job in call("jobs")[1]


def test_a_cancelled_job_is_forgotten_by_name(call: Call, job: str) -> None:
    asyncio.run(end(job))
    code, said, _ = call("jobs", "--forget", job, "--json")
    assert (code, json.loads(said)) == (0, {"event": "forgotten", "job": job, "spider": "shop"})


def test_jobs_are_forgotten_by_age(call: Call, job: str) -> None:
    asyncio.run(end(job))
    assert job not in call("jobs", "--older-than", "1d")[1]
    assert "no such job" in call("jobs", "--forget", "--older-than", "1d")[1]
    assert job in call("jobs", "--older-than", "0s")[1]
    assert call("jobs", "--forget", "--older-than", "0s")[0] == 0
    assert job not in call("jobs")[1]


def test_all_jobs_are_not_forgotten_by_a_missing_word(call: Call, job: str) -> None:
    for words, said in (
        (["--forget"], "would forget every job"),
        (["--forget", "shop-99"], "no job 'shop-99'"),
        (["--forget", "--older-than", "soon"], "--older-than"),
        (["--forget", "--older-than", "90"], "90 of what?"),
        (["--force"], "belongs to --forget"),
    ):
        code, _, told = call("jobs", *words)
        assert code != 0
        assert said in told
    assert job in call("jobs")[1]


def test_whoever_starts_a_job_clears_old_ones_away(call: Call, job: str) -> None:
    asyncio.run(end(job))
    with sqlite3.connect(FRONTIER.removeprefix("sqlite:")) as db:
        db.execute("UPDATE job SET state_at = state_at - 15 * 86400")
    Path("shop.py").write_text(
        "from trotline import Spider\n"
        "shop = Spider('shop')\n"
        "@shop.page(seeds=['https://shop.example/'])\n"
        "def listing(page):\n"
        "    yield {}\n"
    )
    code, _, said = call("start", "shop.py", "--detach")
    assert code == 0
    assert f"old jobs are forgotten: {job}" in said
    assert job not in call("jobs")[1]
    assert "shop-2" in call("jobs")[1]
