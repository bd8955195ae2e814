"""`trotline jobs` and `status` look at several jobs together: what takes seconds for one must not add up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from trotline.cli import status
from trotline.cli.job_argument import Target
from trotline.errors import FrontierError, FrontierUnreachable
from trotline.model.job import Job, Progress

TARGETS = [Target("sqlite:x.db", Job(id=f"shop-{number}", spider="shop", started_at=0.0)) for number in range(30)]


class SlowConsole:
    """Answers when eight views wait for it; the last ones at once."""

    def __init__(self, waiting: list[int], enough: asyncio.Condition) -> None:
        self._waiting, self._enough = waiting, enough

    async def progress(self) -> Progress:
        async with self._enough:
            self._waiting[0] += 1
            self._enough.notify_all()
            await self._enough.wait_for(lambda: self._waiting[0] >= 8)
        return Progress(waiting=0, leased=0, done=1, dead=0, finished_at=1.0)

    async def read_notes(self, names: list[str]) -> list[None]:
        return [None for _ in names]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, enough = [0], asyncio.Condition()

    @asynccontextmanager
    async def console_of(target: Target) -> AsyncIterator[SlowConsole]:
        if target.job.id == "shop-3":
            raise FrontierError("damaged")
        if target.job.id == "gone-1":
            raise FrontierUnreachable("connection refused")
        yield SlowConsole(waiting, enough)

    monkeypatch.setattr(status, "console_of", console_of)


async def test_jobs_are_looked_at_together_and_shown_in_their_order(slow: None) -> None:
    async with asyncio.timeout(5):
        looks, damaged = await status.look_at_all(TARGETS)
    assert [target.job.id for target in damaged] == ["shop-3"]
    expected = [target.job.id for target in TARGETS if target.job.id != "shop-3"]
    assert [look.target.job.id for look in looks] == expected


async def test_a_frontier_that_is_unreachable_is_still_an_error(slow: None) -> None:
    gone = Target("redis://x", Job(id="gone-1", spider="gone", started_at=0.0))
    with pytest.raises(FrontierUnreachable):
        await status.look_at_all([*TARGETS, gone])
