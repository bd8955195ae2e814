"""Time and waiting, handed in so that a whole fleet can run on a virtual clock."""

from typing import Protocol

from trotline.model.time import Seconds


class Clock(Protocol):
    def now(self) -> Seconds:
        """Monotonic seconds; only differences mean anything."""
        ...

    async def sleep(self, seconds: Seconds) -> None: ...
