"""Tasks that other programs write, for a reader that passes them through the gate."""

from collections.abc import Mapping
from typing import Protocol

from trotline.model.inbox import InboxBatch, InboxStatus, ParkedEntry
from trotline.model.time import Seconds

TAKEN_FOR: Seconds = 30.0
"""A batch whose reader is silent for this long goes back to the inbox."""
AT_ONCE = 100
"""Entries of a batch."""


class Inbox(Protocol):
    """I1 an entry that was written waits, is in a batch, or is parked, until `done` removes its batch: never lost, and
         at least once handed to a reader
    I2 a batch is held by one reader; when that is silent for TAKEN_FOR, its entries wait again
    I3 `done` and `give_back` of a batch that went back change nothing
    I4 an entry that is too large for a task is parked unread, and holds up no other; nor does anything that a server
         delivers beside it, whatever its producer chose
    I5 every verb raises FrontierUnreachable while the server is unreachable, and may be repeated
    """

    @property
    def name(self) -> str: ...

    @property
    def idle(self) -> Seconds | None:
        """A job that reads this inbox may end when it was empty for so long; None: it stays open for more."""
        ...

    @property
    def trusted(self) -> bool:
        """Its producers may set all fields of a task."""
        ...

    async def take(self) -> InboxBatch | None:
        """The oldest entries, up to AT_ONCE; None if none waits. Also returns batches of dead readers. Without
        entries, if all were too large: then there is nothing to hold."""
        ...

    async def keep(self, batch: InboxBatch) -> bool:
        """Hold the batch for another TAKEN_FOR; False if it went back."""
        ...

    async def done(self, batch: InboxBatch, parked: Mapping[int, str]) -> bool:
        """All entries are with the frontier, except those that are parked now: place in the batch -> reason. False if
        the batch went back."""
        ...

    async def give_back(self, batch: InboxBatch) -> None:
        """They wait again, in their old order."""
        ...

    async def status(self) -> InboxStatus: ...

    async def parked(self, limit: int = 100) -> list[ParkedEntry]:
        """The oldest first."""
        ...

    async def requeue(self) -> int:
        """What is parked waits again; how many entries that were."""
        ...

    async def close(self) -> None: ...
