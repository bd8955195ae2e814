"""Parcels that the books count on a shelf, and that the broker does not have any more.

Its queue was deleted or emptied, its disk was lost, or it keeps messages for some days only. Nothing can bring their
tasks back: they stay counted as waiting, and every view of the job names them.
"""

import asyncio
import logging

from trotline.model.time import Seconds
from trotline.ports.broker import Broker
from trotline.ports.broker_books import ShelfView

AFTER: Seconds = 120.0
"""A shelf that delivers nothing for so long is counted. Longer than a client that died can hold a message."""
AGAIN: Seconds = 600.0

_log = logging.getLogger(__name__)


class LostParcels:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._empty: dict[str, tuple[Seconds, int]] = {}
        """Shelf -> when it is counted, if it delivers nothing until then; and its parcels."""

    async def watch(self, view: ShelfView, received: int) -> None:
        """So many messages came from the shelf."""
        now = asyncio.get_running_loop().time()
        at, parcels = self._empty.get(view.shelf, (now + AFTER, view.parcels))
        if received or parcels != view.parcels:
            self._empty.pop(view.shelf, None)
            return
        self._empty[view.shelf] = at, parcels
        if now < at:
            return
        self._empty[view.shelf] = now + AGAIN, parcels
        if (await self._broker.depth([view.shelf]))[view.shelf] == 0:
            _log.error(
                "broker.lost %d parcels of up to 100 tasks are not at %s any more (shelf %s). They stay counted as"
                " waiting, and the job does not finish: start it anew when the rest is done.",
                parcels, self._broker.place, view.shelf,
            )  # fmt: skip
