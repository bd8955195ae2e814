"""Async handlers, step by step."""

import asyncio

import pytest

from trotline.worker.steps import each_step


class Marks:
    """Counts steps, and knows whether one is under way."""

    def __init__(self) -> None:
        self.steps = 0
        self.inside = False

    def begin(self) -> None:
        assert not self.inside
        self.inside = True
        self.steps += 1

    def end(self) -> None:
        assert self.inside
        self.inside = False


async def test_each_step_is_marked_and_no_wait_is():
    marks = Marks()
    seen: list[bool] = []

    async def handler() -> str:
        seen.append(marks.inside)
        await asyncio.sleep(0)
        seen.append(marks.inside)
        await asyncio.sleep(0.001)
        return "done"

    async def neighbour() -> None:
        for _ in range(5):
            assert not marks.inside
            await asyncio.sleep(0)

    told, _ = await asyncio.gather(_run(handler(), marks), neighbour())

    assert told == "done"
    assert seen == [True, True]
    assert marks.steps == 3
    assert not marks.inside


async def test_what_a_handler_raises_comes_through():
    marks = Marks()

    async def handler() -> None:
        await asyncio.sleep(0)
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await _run(handler(), marks)
    assert not marks.inside


async def test_a_cancelled_handler_may_tidy_up_and_then_ends():
    marks = Marks()
    tidied = asyncio.Event()

    async def handler() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tidied.set()

    running = asyncio.create_task(_run(handler(), marks))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert tidied.is_set()
    assert not marks.inside


async def test_a_handler_that_outlives_a_timeout_of_its_own_goes_on():
    marks = Marks()

    async def handler() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            await asyncio.sleep(0)
            return "too slow"
        return "never"

    assert await _run(handler(), marks) == "too slow"


async def test_one_that_is_closed_closes_its_handler():
    marks = Marks()
    closed: list[str] = []

    async def handler() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append("handler")

    waiting = _run(handler(), marks)
    waiting.send(None)
    waiting.close()
    assert closed == ["handler"]


async def _run(coroutine, marks: Marks):
    return await each_step(coroutine, marks.begin, marks.end)
