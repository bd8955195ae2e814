"""Operators steer lanes that are busy."""

from collections.abc import Sequence
from typing import Any

import pytest

from trotline.commands.job_control import Verb, steer
from trotline.errors import SettingsError
from trotline.model.job import Job, LaneRules, LaneView, Progress, State


class Console:
    """Its list misses every lane, as that of a lane whose last waiting task is leased while the list is made."""

    def __init__(self, *lanes: str) -> None:
        self._lanes = lanes
        self.steered: list[tuple[State, str | None]] = []

    async def lanes(self, limit: int = 20) -> list[LaneView]:
        return []

    async def lane_views(self, names: Sequence[str]) -> list[LaneView]:
        return [LaneView(lane=name, waiting=0, leased=1, interval=0.0) for name in names if name in self._lanes]

    async def progress(self) -> Progress:
        return Progress(waiting=0, leased=1, done=0, dead=0, started_at=0.0, now=1.0)

    async def steer(self, state: State, lane: str | None = None) -> int:
        self.steered.append((state, lane))
        return 0


JOB = Job(id="shop-1", spider="shop", started_at=0.0, rules=LaneRules())


@pytest.mark.parametrize("verb", [Verb.PAUSE, Verb.DRAIN, Verb.CANCEL])
async def test_a_lane_whose_tasks_are_all_leased_is_there(verb: Verb) -> None:
    console: Any = Console("shop.example")
    await steer(console, JOB, verb, "shop.example")
    assert [lane for _, lane in console.steered] == ["shop.example"]


async def test_a_lane_that_is_not_there_is_refused() -> None:
    console: Any = Console("shop.example")
    with pytest.raises(SettingsError, match="no task in a lane"):
        await steer(console, JOB, Verb.PAUSE, "shop.exmaple")
    assert console.steered == []
