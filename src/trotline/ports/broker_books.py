"""The books of a brokered frontier: a frontier of another backend, whose new tasks wait on shelves of a broker.

The books decide everything: what is new, what waits, what runs next. Of a task on a shelf they keep only that it is
there, one entry for a parcel of tasks; its body is at the broker.
"""

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

import msgspec

from trotline.model.job import Job
from trotline.model.task import Task
from trotline.ports.backend import OpenJob
from trotline.ports.console import Console
from trotline.ports.frontier import Frontier


class Parcel(msgspec.Struct, frozen=True):
    """Tasks that are published, delivered and moved together."""

    id: str
    """Never used again, also after a failover of the books."""
    shelf: str
    tasks: tuple[Task, ...]


class ShelfView(NamedTuple):
    shelf: str
    parcels: int
    """That were published, and not moved to the queues yet."""
    open: bool
    """There is room for more of them in the queues."""


class Shelves(NamedTuple):
    ready: int
    """Tasks in the queues of the books."""
    unpublished: int
    """Parcels that are still to be published."""
    stale: int
    """Those of them whose publisher seems to have died."""
    shelves: tuple[ShelfView, ...] = ()
    """Sooner bands first."""


class Unshelved(Enum):
    MOVED = "moved"
    """Its tasks are in the queues now."""
    KNOWN = "known"
    """It was moved before: a second delivery."""
    DAMAGED = "damaged"
    """It has not the tasks that were put into it."""


class Books(Protocol):
    """S1   a task that is answered "new" is in exactly one place: unpublished, on a shelf, or in a queue; it is counted
         as waiting from the moment of its admission
    S2   a parcel is moved to the queues once, however often it is delivered
    S3   what was not confirmed as published within CLAIM is handed out for publishing again
    S4   a publisher that has died, before or after it published, loses nothing
    """

    async def shelves(self) -> Shelves: ...

    async def unpublished(self, limit: int, published: Sequence[Parcel] = ()) -> list[Parcel]:
        """The bodies of `published` are not needed any more. Up to `limit` parcels to publish: for CLAIM they are this
        caller's."""
        ...

    def share_new(self) -> None:
        """From now on, new parcels are any client's to publish. Otherwise they are at first for the client that made
        them, which need not read them back; but if it lets them wait, another may need their tasks sooner."""
        ...

    async def unshelve(self, parcels: Sequence[Parcel]) -> list[Unshelved]:
        """Delivered parcels move to the queues."""
        ...

    async def shelved(self, lane: str | None = None) -> int:
        """Tasks that are unpublished or on a shelf."""
        ...


CLAIM = 10.0
"""Seconds within which a publisher must confirm a parcel."""


class OpenBooks(NamedTuple):
    """A job whose new tasks are shelved."""

    job: Job
    frontier: Frontier
    console: Console
    books: Books
    set_supply: Callable[[Callable[[int], Awaitable[bool]]], None]
    """Takes a function that the frontier calls each time before it looks for tasks to lease, with the number of tasks
    that are wanted: it moves tasks from the shelves to the queues. True: it is not done yet, as the broker is slow; a
    lease that finds nothing calls it again."""

    def opened(self) -> OpenJob:
        return OpenJob(self.job, self.frontier, self.console)
