"""`trotline resume --lane` ends a rest, and says what happened."""

import asyncio
from pathlib import Path

import pytest

from trotline.cli.main import call
from trotline.config import backends
from trotline.model.job import LaneRules
from trotline.model.lease import LaneFeedback, Settlement
from trotline.model.outcome import Bury
from trotline.model.task import Task
from trotline.model.verdict import Kind
from trotline.rules.urls import fingerprint

LANE = "shop.example"


def _task(number: int) -> Task:
    url = f"https://{LANE}/{number}"
    return Task(url=url, route="page", lane=LANE, fingerprint=fingerprint("page", url))


async def _rest(frontier: str) -> None:
    """A job whose only lane rests for half an hour."""
    jobs = await backends.open_jobs(frontier)
    job = await jobs.start("shop", LaneRules(), "")
    await jobs.close()
    opened = await backends.open_frontier(frontier, job)
    await opened.frontier.put([_task(number) for number in range(5)])
    [lease] = await opened.frontier.lease("w", 1)
    feedback = LaneFeedback(Kind.THROTTLED, rest=1800)
    await opened.frontier.settle("w", [Settlement(lease, Bury("throttled"), news=feedback)])
    await opened.close()


def test_resume_ends_a_rest_and_the_end_of_a_pause_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    frontier = f"sqlite:{tmp_path}/frontier.db"
    asyncio.run(_rest(frontier))

    def said(verb: str) -> str:
        assert call([verb, "shop", "--lane", LANE, "--frontier", frontier]) == 0
        return capsys.readouterr().out

    said("pause")
    again = said("resume")
    assert "resumed; it rests (" in again
    assert "left, rate limited: Retry-After 1800 s). To end that: trotline resume" in again
    assert "is over: one probe goes out now" in said("resume")
    assert said("resume") == f"shop-1, lane {LANE}: resumed\n"
