"""Runs async handlers with a timeout, and marks the page while one of their steps runs."""

import asyncio
import contextlib
import types
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar

from trotline.model.time import Seconds
from trotline.spider.handler_failed import HandlerFailed

T = TypeVar("T")

AGAIN: Seconds = 1.0
"""Interval between cancellations of a handler that ignores them."""
CANCELS = 5
"""Cancellations that a handler may ignore before it is closed."""


class Deadline:
    """Cancels the current task after a timeout. Sync handlers need none: the parse budget ends them."""

    def __init__(self, after: Seconds) -> None:
        self._after = after
        self.cancels = 0

    @property
    def ignored(self) -> bool:
        """Did the handler catch every cancellation so far?"""
        return self.cancels > CANCELS

    @property
    def passed(self) -> bool:
        """Was the task ended by this timeout, and not by a cancellation from outside?"""
        return self.cancels > 0 and not self._task.cancelling()

    def __enter__(self) -> "Deadline":
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - handlers run in a slot's task
        self._task = task
        self._timer = asyncio.get_running_loop().call_later(self._after, self._cancel)
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        for _cancel in range(self.cancels):
            self._task.uncancel()

    def _cancel(self) -> None:
        self.cancels += 1
        self._timer = asyncio.get_running_loop().call_later(AGAIN, self._cancel)
        self._task.cancel()


def _nothing() -> None:
    pass


async def in_time(
    reading: Coroutine[Any, Any, T],
    limit: Seconds,
    begin: Callable[[], None] = _nothing,
    end: Callable[[], None] = _nothing,
) -> T:
    """Await an async handler for at most `limit`; without a limit it could hold its slot for ever, as the heartbeat
    keeps its lease."""
    try:
        with Deadline(limit) as deadline:
            return await each_step(reading, begin, end, lambda: deadline.ignored)
    except asyncio.CancelledError:
        if not deadline.passed:
            raise
        raise HandlerFailed(f"took longer than {limit:g} s (Limits.handler; raise it if the page needs more)") from None


@types.coroutine
def each_step(
    coroutine: Coroutine[Any, Any, T],
    begin: Callable[[], None],
    end: Callable[[], None],
    closes: Callable[[], bool] = lambda: False,
) -> Generator[Any, Any, T]:
    """Await `coroutine` with `begin` before and `end` after each of its steps.

    Other pages are parsed while it awaits, so the marker must name it only during its own steps, in which it may block
    the loop, crash or exhaust the memory. `closes` is called when an exception is thrown in: if it returns True, the
    coroutine is closed.
    """
    step: Callable[[], Any] = partial(coroutine.send, None)
    while True:
        begin()
        try:
            waits_for = step()
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            end()
        try:
            answer = yield waits_for
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as error:
            if closes():
                # RuntimeError: it ignores GeneratorExit, too.
                with contextlib.suppress(RuntimeError):
                    coroutine.close()
                raise
            step = partial(coroutine.throw, error)
        else:
            step = partial(coroutine.send, answer)
