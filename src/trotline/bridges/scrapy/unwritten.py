"""Pages whose items are in the buffer of a feed that cannot be written, as when the disk is full.

They stay leased until it can: to bury them would store their items twice, as the buffer is written later. Meanwhile no
new requests are begun. If the process ends first, its leases return, and the pages are visited again.
"""

import logging
import time
from collections.abc import Callable

from trotline.bridges.scrapy.held_back import FEED, HeldBack
from trotline.bridges.scrapy.visits import Visit
from trotline.frontier.outage_log import OutageLog
from trotline.model.time import Seconds

log = logging.getLogger("trotline.scrapy")

AGAIN: Seconds = 1.0
"""Interval of the tries."""
AFTER_LOSS: Seconds = 10.0
"""The first pause after an item that is in no buffer: a flush of nothing would seem to work."""


class Unwritten:
    """Used in Scrapy's thread only."""

    def __init__(self, held: HeldBack, flush: Callable[[], str], settle: Callable[[Visit], None]) -> None:
        """`flush`: returns why the items cannot be written; `settle`: called when they are."""
        self._held = held
        self._flush = flush
        self._settle = settle
        self._visits: list[Visit] = []
        self._outage = OutageLog(log, "feed.unwritable")
        self._next: Seconds = 0.0

    def add(self, visit: Visit) -> None:
        """It has finished, and its items are in buffers. BrokenPipeError: they can never be written."""
        if self._held.feed:
            self._visits.append(visit)
        elif why := self._flush():
            self._visits.append(visit)
            self._wait(why, AGAIN)
        else:
            self._settle(visit)

    def lost(self, why: str) -> None:
        """An item could not be written, and is in no buffer: its page is buried, and others wait."""
        self._wait(why, AFTER_LOSS)

    def again(self) -> None:
        """Called often."""
        if not self._held.feed or time.monotonic() < self._next:
            return
        try:
            why = self._flush()
        except BrokenPipeError as error:
            why = str(error)
        if why:
            self._wait(why, AGAIN)
            return
        self._held.report(FEED, "")
        self._outage.report("")
        waiting, self._visits = self._visits, []
        for visit in waiting:
            self._settle(visit)

    def close(self) -> None:
        """The last try."""
        self._next = 0.0
        self.again()
        if self._visits:
            log.error(
                "scrapy.feed_unwritten %d pages whose items could not be written (%s) are not settled, and will be "
                "visited again: make room, and look for items that are in the file twice",
                len(self._visits), self._held.feed,
            )  # fmt: skip

    def _wait(self, why: str, pause: Seconds) -> None:
        text = f"feed cannot be written: {why}"
        self._held.report(FEED, text)
        self._outage.report(f"{why}; its pages wait unsettled, and no new ones begin until it can be written")
        self._next = time.monotonic() + pause
