"""Leases that wait for their moment."""

import asyncio
import heapq
from collections import deque

from trotline.model.lease import Lease
from trotline.model.moments import Seconds

_REPLIES = 64
"""Replies of which the quickest is the measure; not all of them, or a frontier whose clock was set would look late."""


class Starts:
    """Hands leases to slots when their moment has come. A lease that waits blocks no slot."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._heap: list[tuple[Seconds, int, Lease, Seconds]] = []
        self._ready: asyncio.Queue[tuple[Lease, Seconds]] = asyncio.Queue()
        self._timer: asyncio.TimerHandle | None = None
        self._count = 0
        self._offsets: deque[Seconds] = deque(maxlen=_REPLIES)

    def add(self, leases: list[Lease]) -> None:
        """Leases that arrived just now: moments count from here; how long they were under way goes off their slack."""
        now = self._loop.time()
        asked_at, late = None, 0.0
        for lease in leases:
            if lease.asked_at != asked_at:
                asked_at, late = lease.asked_at, self._under_way(lease, now)
            latest = now + lease.start_in + lease.slack - late
            if lease.start_in <= 0:
                self._ready.put_nowait((lease, latest))
            else:
                self._count += 1
                heapq.heappush(self._heap, (now + lease.start_in, self._count, lease, latest))
        self._wind()

    async def next(self) -> tuple[Lease, Seconds]:
        """The next lease that may start, and the latest moment at which it may."""
        return await self._ready.get()

    def __len__(self) -> int:
        return len(self._heap) + self._ready.qsize()

    def clear(self) -> list[Lease]:
        """Those that did not start; they never will here."""
        waiting = [lease for _, _, lease, _ in sorted(self._heap)]
        self._heap.clear()
        ready = []
        while not self._ready.empty():
            ready.append(self._ready.get_nowait()[0])
        if self._timer:
            self._timer.cancel()
            self._timer = None
        return ready + waiting

    def _under_way(self, lease: Lease, now: Seconds) -> Seconds:
        """How long the reply took. A process that was frozen finds replies that are long out of date: its moments have
        passed. The frontier's clock and ours need not agree: the quickest of the last replies is what one takes."""
        if lease.asked_at is None:
            return 0.0
        quickest = min(self._offsets, default=lease.asked_at - lease.leased_at)
        self._offsets.append(now - lease.leased_at)
        return max(0.0, min(now - lease.leased_at - quickest, now - lease.asked_at))

    def _wind(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._heap:
            self._timer = self._loop.call_at(self._heap[0][0], self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._heap and self._heap[0][0] <= now:
            _, _, lease, latest = heapq.heappop(self._heap)
            self._ready.put_nowait((lease, latest))
        self._wind()
