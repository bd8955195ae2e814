"""Async handlers, step by step."""

import asyncio

import pytest

from trotline.worker import async_handlers
from trotline.worker.async_handlers import Deadline, each_step


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


# The time limit


async def limited(handler, after: float = 0.01) -> tuple[str, Deadline]:
    """How a handler under a deadline ended: its result, or the name of what it raised."""
    marks = Marks()
    with Deadline(after) as deadline:
        try:
            told = await each_step(handler, marks.begin, marks.end, lambda: deadline.ignored)
        except asyncio.CancelledError:
            told = "cancelled"
    assert not marks.inside
    return told, deadline


async def test_a_handler_that_waits_for_ever_is_cancelled():
    told, deadline = await limited(asyncio.Event().wait())

    assert (told, deadline.passed) == ("cancelled", True)
    await asyncio.sleep(0)  # the task itself is not cancelled


async def test_a_handler_that_ends_in_time_notices_nothing():
    told, deadline = await limited(asyncio.sleep(0, "done"), after=60)

    assert (told, deadline.passed, deadline.cancels) == ("done", False, 0)


async def test_a_handler_that_ignores_every_cancellation_is_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(async_handlers, "AGAIN", 0.001)
    caught = 0

    async def stubborn() -> None:
        nonlocal caught
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                caught += 1

    told, deadline = await limited(stubborn())

    assert (told, deadline.passed) == ("cancelled", True)
    assert caught == async_handlers.CANCELS


async def test_a_stop_from_outside_is_not_taken_for_the_deadline():
    deadline = Deadline(60)

    async def slot() -> None:
        with deadline:
            await asyncio.Event().wait()

    task = asyncio.create_task(slot())
    await asyncio.sleep(0)
    deadline._cancel()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (deadline.cancels, deadline.passed) == (1, False)
