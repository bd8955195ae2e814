"""Tasks on their way into a frontier that may be away for a while."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from trotline.config import backends
from trotline.coordinator.seed_feed import HIGH_WATER, RECHECK, SeedFeed
from trotline.errors import FrontierUnreachable
from trotline.model.job import Progress
from trotline.model.lease import Admission
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob

__all__ = ["HIGH_WATER", "open_feed"]

PATIENCE: Seconds = 60.0
"""A server that is away this long is not coming back by itself."""

T = TypeVar("T")


def open_feed(
    opened: OpenJob,
    url: str,
    high_water: int,
    say: Callable[[str], None],
    *,
    is_leader: Callable[[], bool] = lambda: True,
) -> SeedFeed:
    """Waits above the high water; `say` hears why it waits, and nothing when it goes on."""
    return SeedFeed(_Patient(opened, url, say), LoopClock(), high_water, is_leader=is_leader, report=say)


class LoopClock:
    """The event loop's time."""

    def now(self) -> Seconds:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: Seconds) -> None:
        await asyncio.sleep(seconds)


class _Patient:
    """A frontier whose server is asked again when it is away."""

    def __init__(self, opened: OpenJob, url: str, say: Callable[[str], None]) -> None:
        self._opened = opened
        self._say = say
        # A file that cannot be written stays so until somebody does something about it.
        self._patience = 0.0 if backends.is_local(url) else PATIENCE

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        # Putting the same tasks again is harmless, whatever became of the first try.
        return await self._patiently(lambda: self._opened.frontier.put(tasks))

    async def progress(self) -> Progress:
        return await self._patiently(self._opened.console.progress)

    async def _patiently(self, deed: Callable[[], Awaitable[T]]) -> T:
        until: Seconds | None = None
        while True:
            try:
                done = await deed()
            except FrontierUnreachable as error:
                now = asyncio.get_running_loop().time()
                until = until or now + self._patience
                if now >= until:
                    raise
                self._say(f"the frontier is away, and asked again: {error.what}")
                await asyncio.sleep(RECHECK)
            else:
                if until is not None:
                    self._say("")
                return done
