"""Backpressure for seeding: puts seeds into a frontier, and pauses while too many tasks wait."""

from collections.abc import Callable, Sequence
from typing import Protocol

from trotline.errors import TermOver
from trotline.model.job import Progress
from trotline.model.lease import Admission
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.ports.clock import Clock
from trotline.ports.frontier import HIGH_WATER

RESUME_AT = 0.75
"""Below this share of the high water seeding resumes."""
RECHECK: Seconds = 1.0


class SeedTarget(Protocol):
    """What a feed needs from a job's frontier."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]: ...

    async def progress(self) -> Progress: ...


class SeedFeed:
    """Puts batches; above the high water it waits until a quarter of it has drained."""

    def __init__(
        self,
        frontier: SeedTarget,
        clock: Clock,
        high_water: int = HIGH_WATER,
        *,
        is_leader: Callable[[], bool] = lambda: True,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._frontier = frontier
        self._clock = clock
        self._high_water = high_water
        self._is_leader = is_leader
        self._report = report
        self._room = 0
        """How many may be put before the counts are read again."""
        self._read_at = float("-inf")

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        """Raises TermOver if another coordinator leads and seeds the job now."""
        # Workers add links meanwhile, and so do other feeds: an old count says nothing about the room left.
        if self._room < len(tasks) or self._clock.now() - self._read_at >= RECHECK:
            await self._wait_for_room(len(tasks))
        if not self._is_leader():
            raise TermOver("another coordinator seeds this job now")
        answers = await self._frontier.put(tasks)
        self._room -= len(tasks)
        return answers

    async def _wait_for_room(self, wanted: int) -> None:
        """Counts are read once a second while there is much room, and before each batch while there is little: busy
        workers may find as many links in that second as we would put."""
        waiting = (await self._frontier.progress()).waiting
        if waiting and waiting + wanted > self._high_water:
            below = int(self._high_water * RESUME_AT)
            self._report(f"{waiting:,} tasks are waiting; seeding resumes below {below:,}")
            while waiting >= below and self._is_leader():
                await self._clock.sleep(RECHECK)
                waiting = (await self._frontier.progress()).waiting
            self._report("")
        left = self._high_water - waiting
        # Half of it may be put before the next count: the other half is for tasks from elsewhere.
        self._room = left // 2 if left >= 2 * wanted else wanted
        self._read_at = self._clock.now()
