"""The one way to wait for a frontier's server that is away."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from trotline.errors import FrontierUnreachable
from trotline.model.time import Seconds

EVERY: Seconds = 1.0

T = TypeVar("T")


async def until_reachable(
    call: Callable[[], Awaitable[T]],
    away: Callable[[str], None],
    *,
    within: Seconds = float("inf"),
    give_up: Callable[[], bool] = lambda: False,
    pause: Callable[[Seconds], Awaitable[object]] = asyncio.sleep,
) -> T:
    """The call's answer; the call is repeated while the server cannot be reached, so a repeat must be harmless.

    `away` gets the error, and "" when the server is back. After `within`, or when `give_up` says so, it is raised.
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
            away(error.what)
            await pause(EVERY)
        else:
            if until is not None:
                away("")
            return answer
