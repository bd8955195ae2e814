"""Tasks on their way into a frontier, in batches, and no faster than they are wanted."""

import asyncio
from collections.abc import Callable, Sequence

from trotline.app.places import is_file
from trotline.app.wiring import AnyFrontier
from trotline.errors import FrontierUnreachable
from trotline.model.lease import Admission
from trotline.model.moments import Seconds
from trotline.model.task import Task

HIGH_WATER = 1_000_000
"""Waiting tasks above which nobody feeds more: a frontier in memory is finite."""
LOOK_AGAIN: Seconds = 1.0
PATIENCE: Seconds = 60.0
"""A server that is away this long is not coming back by itself."""


class Feed:
    """Puts batches. Above the high water it waits; a server that is away is asked again."""

    def __init__(
        self,
        frontier: AnyFrontier,
        url: str,
        high_water: int | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._frontier = frontier
        self._high_water = high_water
        self._say = say
        self._room = 0
        """How many may be put before the books are looked at again."""
        # A file that cannot be written stays so until somebody does something about it.
        self._patience = 0.0 if is_file(url) else PATIENCE

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        until: Seconds | None = None
        while True:
            try:
                await self._wait_for_room(len(tasks))
                # Putting the same tasks again is harmless, whatever became of the first try.
                answers = await self._frontier.put(tasks)
                self._room -= len(tasks)
                return answers
            except FrontierUnreachable as error:
                until = until or _now() + self._patience
                if _now() >= until:
                    raise
                self._say(f"the frontier is away, and asked again: {error.what}")
                await asyncio.sleep(LOOK_AGAIN)

    async def _wait_for_room(self, wanted: int) -> None:
        """The books are looked at once for many batches, not before each."""
        while self._high_water is not None and self._room < wanted:
            waiting = (await self._frontier.progress()).waiting
            self._room = self._high_water - waiting
            if self._room >= wanted or waiting == 0:
                break
            self._say(f"{waiting:,} tasks wait already: feeding goes on below {self._high_water:,}")
            await asyncio.sleep(LOOK_AGAIN)
        self._say("")


def _now() -> Seconds:
    return asyncio.get_running_loop().time()
