"""Seeds on their way into a frontier, no faster than they are wanted."""

from collections.abc import Callable, Sequence
from typing import Protocol

from trotline.errors import TermOver
from trotline.model.job import Progress
from trotline.model.lease import Admission
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.ports.clock import Clock
from trotline.ports.frontier import HIGH_WATER

GO_ON = 0.75
"""Below this share of the high water feeding goes on."""
LOOK_AGAIN: Seconds = 1.0


class Fed(Protocol):
    """What a feed needs of a job's frontier."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]: ...

    async def progress(self) -> Progress: ...


class Feed:
    """Puts batches. Above the high water it waits until a quarter of it is gone."""

    def __init__(
        self,
        frontier: Fed,
        clock: Clock,
        high_water: int = HIGH_WATER,
        *,
        leads: Callable[[], bool] = lambda: True,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._frontier = frontier
        self._clock = clock
        self._high_water = high_water
        self._leads = leads
        self._say = say
        self._room = 0
        """How many may be put before the books are looked at again."""
        self._looked_at = float("-inf")

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        """TermOver if we do not lead any more: somebody else feeds the job."""
        # Links that pages lead to come in meanwhile, and other feeders: what was seen a while ago is no room any more.
        if self._room < len(tasks) or self._clock.now() - self._looked_at >= LOOK_AGAIN:
            await self._wait_for_room(len(tasks))
        if not self._leads():
            raise TermOver("seeding is somebody else's now")
        answers = await self._frontier.put(tasks)
        self._room -= len(tasks)
        return answers

    async def _wait_for_room(self, wanted: int) -> None:
        """The books are looked at once a second at most while there is much room, and before each batch while there is
        little: a busy crew may find as many links in that second as we would put."""
        waiting = (await self._frontier.progress()).waiting
        if waiting and waiting + wanted > self._high_water:
            below = int(self._high_water * GO_ON)
            self._say(f"{waiting:,} tasks wait already; feeding goes on below {below:,}")
            while waiting >= below and self._leads():
                await self._clock.sleep(LOOK_AGAIN)
                waiting = (await self._frontier.progress()).waiting
            self._say("")
        left = self._high_water - waiting
        # Half of it may be put unseen: the other half is for what comes from elsewhere.
        self._room = left // 2 if left >= 2 * wanted else wanted
        self._looked_at = self._clock.now()
