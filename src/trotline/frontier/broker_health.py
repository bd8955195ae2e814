"""For operators: a broker that does not answer, and tasks that the books count on shelves whose queues are empty there.

Workers find the same (`broker_pump`, `lost_broker_messages`), but later, and a job may have none: every view of a job
looks for itself.
"""

import asyncio

import msgspec

from trotline.errors import FrontierError
from trotline.frontier.known_broker_outage import KnownBrokerOutage
from trotline.model.time import Seconds
from trotline.ports.broker import Broker
from trotline.ports.broker_books import Books, Shelves
from trotline.rules.broker_shelves import missing, unreachable

EVERY: Seconds = 10.0
"""A view that stays open asks the broker at most so often."""
PATIENCE: Seconds = 3.0
"""A view waits so long for the answer, once for all jobs of the broker; later ones show what it was in the end."""
SURE_AFTER: Seconds = 1.0
"""A message that a worker has just received is not in its queue either, until its tasks are moved."""


class AtBroker(msgspec.Struct, frozen=True):
    """What a look found, in sentences; empty: nothing, or it cannot be said."""

    missing: str = ""
    unreachable: str = ""


class MissingParcels:
    def __init__(self, books: Books, broker: Broker, outage: KnownBrokerOutage | None = None) -> None:
        """`outage`: what views of other jobs found."""
        self._books = books
        self._broker = broker
        self._outage = outage or KnownBrokerOutage()
        self._found = AtBroker()
        self._next_at: Seconds = 0.0
        self._looking: asyncio.Task[AtBroker] | None = None

    async def look(self) -> AtBroker:
        now = asyncio.get_running_loop().time()
        if self._looking is None and now >= self._next_at:
            if silent := self._outage.at(now):
                return AtBroker(unreachable=silent)
            self._looking = asyncio.create_task(self._look())
            # Not cancelled after this time: to close the connection of a server that is only slow makes it slower.
            await asyncio.wait([self._looking], timeout=PATIENCE)
            if not self._looking.done():
                silent = unreachable(f"{self._broker.place} has not answered for {PATIENCE:.0f} s")
                self._outage.found(silent, asyncio.get_running_loop().time() + EVERY)
                self._found = AtBroker(unreachable=silent)
        if self._looking is not None and self._looking.done():
            looked, self._looking = self._looking, None
            self._next_at = asyncio.get_running_loop().time() + EVERY
            self._found = looked.result()
        return self._found

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> AtBroker:
        try:
            books = await self._books.shelves()
        except FrontierError:
            # The view itself says so.
            return AtBroker()
        try:
            return AtBroker(missing=await self._missing(books))
        except FrontierError as error:
            return AtBroker(unreachable=unreachable(error.what))

    async def _missing(self, books: Shelves) -> str:
        before = await self._empty(books)
        if not before:
            return ""
        await asyncio.sleep(SURE_AFTER)
        still = before & await self._empty(await self._books.shelves())
        return missing(await self._books.shelved(), len(still), self._broker.place) if still else ""

    async def _empty(self, books: Shelves) -> set[tuple[str, int]]:
        """Shelves without a message, and how many parcels are counted there. If other tasks are left, one call shows
        whether the broker answers: each takes time, and may cost money."""
        wanted = [(view.shelf, view.parcels) for view in books.shelves if view.parcels > 0]
        if not wanted and not books.unpublished:
            return set()
        if books.ready or books.unpublished:
            await (self._broker.depth([wanted[0][0]]) if wanted else self._broker.rejected())
            return set()
        depths = await self._broker.depth([shelf for shelf, _ in wanted])
        return {(shelf, parcels) for shelf, parcels in wanted if depths[shelf] == 0}
