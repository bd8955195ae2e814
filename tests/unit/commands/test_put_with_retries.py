"""Seeds on their way to a frontier that is away."""

from collections.abc import Sequence
from typing import Any

import pytest

from trotline.commands.put_with_retries import open_feed
from trotline.errors import FrontierUnreachable
from trotline.model.job import Job, Progress
from trotline.model.lease import Admission
from trotline.model.task import Task
from trotline.ports.backend import OpenJob


class Flaky:
    """A frontier that is away for its first calls."""

    def __init__(self, away: int) -> None:
        self.away = away
        self.given: list[Task] = []

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        if self.away:
            self.away -= 1
            raise FrontierUnreachable("gone")
        self.given += tasks
        return [Admission.NEW] * len(tasks)

    async def progress(self) -> Progress:
        return Progress(waiting=0, leased=0, done=0, dead=0)


def opened(both: Any) -> OpenJob:
    """What a feed needs of a job."""
    return OpenJob(Job(id="shop-1", spider="shop", started_at=0.0), both, both)


TASK = Task(url="https://shop.example/", route="page", fingerprint=1)


async def test_a_server_that_is_away_is_asked_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trotline.frontier.reconnect.EVERY", 0.0)
    frontier, said = Flaky(2), []
    feed = open_feed(opened(frontier), "redis://queue", 100, said.append)
    assert await feed.put([TASK]) == [Admission.NEW]
    assert frontier.given == [TASK]
    assert [bool(text) for text in said] == [True, True, False], "the trouble, and that it is over"


async def test_a_file_that_cannot_be_written_is_said_at_once():
    feed = open_feed(opened(Flaky(1)), "sqlite:f.db", 100, lambda _: None)
    with pytest.raises(FrontierUnreachable):
        await feed.put([TASK])
