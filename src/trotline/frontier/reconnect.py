"""Retries a call while the frontier's server is unreachable."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from trotline.errors import FrontierUnreachable
from trotline.model.time import Seconds

EVERY: Seconds = 1.0

T = TypeVar("T")


async def until_reachable(
    call: Callable[[], Awaitable[T]],
    report: Callable[[str], None],
    *,
    within: Seconds = float("inf"),
    give_up: Callable[[], bool] = lambda: False,
    pause: Callable[[Seconds], Awaitable[object]] = asyncio.sleep,
) -> T:
    """The result of `call`, which must be idempotent.

    `report` gets the error, and "" when the server is back. After `within`, or if `give_up` returns True, it is raised.
    """
    clock = asyncio.get_running_loop().time
    until: Seconds | None = None
    while True:
        try:
            answer = await call()
        except FrontierUnreachable as error:
            until = clock() + within if until is None else until
            if clock() >= until or give_up():
                raise
            report(error.what)
            await pause(EVERY)
        else:
            if until is not None:
                report("")
            return answer
