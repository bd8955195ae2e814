"""For operators: tasks that the books count on shelves whose queues at the broker are empty.

Workers find the same (`lost_parcels`), but later, and a job may have none: every view of a job looks for itself.
"""

import asyncio

from trotline.errors import FrontierError
from trotline.model.time import Seconds
from trotline.ports.books import Books
from trotline.ports.broker import Broker
from trotline.rules.shelves import missing

EVERY: Seconds = 10.0
"""A view that stays open asks the broker at most so often."""
SURE_AFTER: Seconds = 1.0
"""A message that a worker has just received is not in its queue either, until its tasks are moved."""


class MissingParcels:
    def __init__(self, books: Books, broker: Broker) -> None:
        self._books = books
        self._broker = broker
        self._found = ""
        self._next_at: Seconds = 0.0

    async def look(self) -> str:
        """What is missing, in a sentence; empty if nothing is, or if it cannot be said now."""
        now = asyncio.get_running_loop().time()
        if now >= self._next_at:
            self._next_at = now + EVERY
            try:
                self._found = await self._missing()
            except FrontierError:
                # An unreachable broker is reported by those who need it: this is only a look.
                self._found = ""
        return self._found

    async def _missing(self) -> str:
        before = await self._empty()
        if not before:
            return ""
        await asyncio.sleep(SURE_AFTER)
        still = before & await self._empty()
        return missing(await self._books.shelved(), len(still), self._broker.place) if still else ""

    async def _empty(self) -> set[tuple[str, int]]:
        """Shelves without a message, and how many parcels are counted there. Only if nothing else is left: to ask the
        broker takes time, and may cost money."""
        look = await self._books.shelves()
        wanted = [(view.shelf, view.parcels) for view in look.shelves if view.parcels > 0]
        if look.ready or look.unpublished or not wanted:
            return set()
        depths = await self._broker.depth([shelf for shelf, _ in wanted])
        return {(shelf, parcels) for shelf, parcels in wanted if depths[shelf] == 0}
