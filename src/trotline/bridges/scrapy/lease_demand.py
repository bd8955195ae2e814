"""When a Scrapy process asks the frontier for leases, and when it sends results: seldom, and many at a time. A call
costs the server far more than a task of it (docs/decisions/147, 174)."""

from collections.abc import Callable

from trotline.model.time import Seconds

AHEAD: Seconds = 0.1
"""Leases are fetched for the requests of this time in advance."""
BUSY: Seconds = 0.01
"""A process whose thread hears of things later than this is short of CPU, and not of requests."""
GATHER: Seconds = 0.1
"""How long results wait for more of them, while enough requests are under way;"""
GATHER_BUSY: Seconds = 0.5
"""and in a process that is short of CPU."""
HAD_NO_MORE: Seconds = 0.5
"""A frontier that had fewer leases than it was asked for is not asked again before this, while enough requests are
under way, unless results are sent to it: its hosts are at their limits, and results make room."""
ANSWERED_WITHIN: Seconds = 0.02
"""The usual time of a call to a frontier that has requests."""


class LeaseDemand:
    """Counts what is under way. `popped` and `settled` are written by Scrapy's thread, the rest by the client's."""

    def __init__(self, slots: int, lag: Callable[[], Seconds]) -> None:
        """`slots`: downloads at a time; `lag`: how long Scrapy's thread takes to hear of something."""
        self.popped = 0
        """Leases that Scrapy's thread took."""
        self.settled = 0
        self._slots = slots
        self._lag = lag
        self._peak = self._usual = 0
        """The most requests that were under way at once: so far, and in the last interval."""
        self._rate = 0.0
        self._before = 0
        self._asked_at = self._answered_at = float("-inf")
        self._had_no_more = False

    @property
    def under_way(self) -> int:
        """Leases that Scrapy's thread has taken and not settled."""
        found = self.popped - self.settled
        self._peak = max(self._peak, found)
        return found

    @property
    def is_busy(self) -> bool:
        """Scrapy's thread has more to do than it can: what waits here keeps no slot of it idle."""
        return self._lag() > BUSY

    @property
    def gather_for(self) -> Seconds:
        return GATHER_BUSY if self.is_busy else GATHER

    def measure(self, interval: Seconds) -> None:
        """Called every `interval`."""
        self._rate = (self.popped - self._before) / interval
        self._before = self.popped
        self._usual, self._peak = max(self._peak, self.under_way), 0

    def room(self, downloads: int, here: int) -> int:
        """How many leases there is a use for. `here`: those that have arrived and are not taken."""
        ahead = min(self._slots // 2, int(self._rate * AHEAD))
        return self._slots + ahead - downloads - here

    def wants_more(self, room: int, here: int, now: Seconds) -> bool:
        if room <= 0 or self.starves(here):
            return room > 0
        pause = HAD_NO_MORE if self._had_no_more else GATHER
        return not self.is_busy and room >= self._slots // 2 and now >= self._answered_at + pause

    def has_to_send(self, here: int, now: Seconds) -> bool:
        """Not while the answer to the last call for leases is on its way: what finishes meanwhile is few."""
        return self.starves(here) and now >= self._asked_at + ANSWERED_WITHIN

    def starves(self, here: int) -> bool:
        """Fewer requests are under way than there could be."""
        return self.under_way + here <= self._usual // (4 if self.is_busy else 2)

    def asked(self, now: Seconds) -> None:
        self._asked_at = now

    def answered(self, asked_for: int, got: int, now: Seconds) -> None:
        self._answered_at = now
        self._had_no_more = got < asked_for

    def sent(self) -> None:
        """Results, which make room at their hosts."""
        self._had_no_more = False
