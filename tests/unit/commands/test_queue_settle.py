"""Settlements of several users in one call."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from trotline.commands.queue_settle import SettleBatches
from trotline.errors import FrontierUnreachable
from trotline.model.lease import Lease, Settled, Settlement
from trotline.model.outcome import Done
from trotline.model.task import Task


class Calls:
    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.bad: set[int] = set()
        self.down = False

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        self.sizes.append(len(settlements))
        await asyncio.sleep(0)
        if self.down:
            raise FrontierUnreachable("down")
        if self.bad & {one.lease.token for one in settlements}:
            raise ValueError("cannot be kept")
        return [Settled.STALE if one.lease.token == 7 else Settled.OK for one in settlements]


def settlement(token: int) -> Settlement:
    return Settlement(Lease(Task(url="u", route="r"), token, 0.0, 0.0, 0.0, 0.0), Done())


@pytest.fixture
def calls() -> Calls:
    return Calls()


async def gathered(calls: Any, count: int) -> list[Any]:
    batches = SettleBatches("w", calls)
    return await asyncio.gather(*(batches.settle(settlement(n)) for n in range(count)), return_exceptions=True)


async def test_what_comes_together_goes_in_one_call_and_each_gets_its_own_answer(calls: Calls) -> None:
    answers = await gathered(calls, 10)
    assert calls.sizes == [10]
    assert answers == [Settled.OK] * 7 + [Settled.STALE] + [Settled.OK] * 2


async def test_a_call_has_a_limited_size(calls: Calls) -> None:
    assert len(await gathered(calls, 250)) == 250
    assert calls.sizes == [100, 100, 50]


async def test_one_that_cannot_be_kept_fails_alone(calls: Calls) -> None:
    calls.bad = {3}
    answers = await gathered(calls, 6)
    assert isinstance(answers[3], ValueError)
    assert [answer for answer in answers if answer is Settled.OK] == [Settled.OK] * 5


async def test_an_outage_is_an_error_for_all_and_is_tried_once(calls: Calls) -> None:
    calls.down = True
    answers = await gathered(calls, 4)
    assert [type(answer) for answer in answers] == [FrontierUnreachable] * 4
    assert calls.sizes == [4]


async def test_a_user_that_is_cancelled_takes_no_answer_from_the_others(calls: Calls) -> None:
    batches = SettleBatches("w", calls)  # type: ignore[arg-type]
    tasks = [asyncio.create_task(batches.settle(settlement(n))) for n in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert answers[0] is answers[2] is Settled.OK
    assert isinstance(answers[1], asyncio.CancelledError)
