"""Puts tasks into a frontier, and retries while its server is unreachable."""

import asyncio
from collections.abc import Callable, Sequence

from trotline.config import backends
from trotline.coordinator.seed_backpressure import SeedFeed
from trotline.frontier.reconnect import until_reachable
from trotline.model.job import Progress
from trotline.model.lease import Admission
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.frontier import HIGH_WATER

__all__ = ["HIGH_WATER", "open_feed"]

PATIENCE: Seconds = 60.0
"""How long an unreachable server is retried."""


def open_feed(
    opened: OpenJob,
    url: str,
    high_water: int,
    say: Callable[[str], None],
    *,
    is_leader: Callable[[], bool] = lambda: True,
) -> SeedFeed:
    """Waits above the high water; `say` gets the reason, and "" when it goes on."""
    return SeedFeed(_Patient(opened, url, say), LoopClock(), high_water, is_leader=is_leader, report=say)


class LoopClock:
    def now(self) -> Seconds:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: Seconds) -> None:
        await asyncio.sleep(seconds)


class _Patient:
    """A frontier whose calls are retried while its server is unreachable."""

    def __init__(self, opened: OpenJob, url: str, say: Callable[[str], None]) -> None:
        self._opened = opened
        self._say = say
        # A file that cannot be written stays so until a person acts.
        self._patience = 0.0 if backends.is_local(url) else PATIENCE

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        # Putting the same tasks again is harmless, even if the first try succeeded.
        return await until_reachable(lambda: self._opened.frontier.put(tasks), self._report, within=self._patience)

    async def progress(self) -> Progress:
        return await until_reachable(self._opened.console.progress, self._report, within=self._patience)

    def _report(self, why: str) -> None:
        self._say(why and f"frontier is unreachable, retrying: {why}")
