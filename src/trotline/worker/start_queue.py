"""Leases that wait for their moment."""

import asyncio
import heapq
from collections import deque
from math import inf

from trotline.model.lease import Lease
from trotline.model.time import Seconds

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
        late = self._under_way(leases, now)
        for lease in leases:
            latest = now + lease.start_in + lease.slack - late[lease.asked_at]
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

    def take(self, lane: str) -> list[Lease]:
        """Those of a lane that did not start; they never will here."""
        taken = [lease for _, _, lease, _ in self._heap if lease.task.lane == lane]
        if taken:
            self._heap = [entry for entry in self._heap if entry[2].task.lane != lane]
            heapq.heapify(self._heap)
            self._wind()
        for _ in range(self._ready.qsize()):
            entry = self._ready.get_nowait()
            if entry[0].task.lane == lane:
                taken.append(entry[0])
            else:
                self._ready.put_nowait(entry)
        return taken

    def _under_way(self, leases: list[Lease], now: Seconds) -> dict[Seconds, Seconds]:
        """How long the replies took, by when they were asked for. A process that was frozen finds replies that are long
        out of date: its moments have passed. The frontier's clock and ours need not agree: the quickest of the replies
        before these is what one takes, and none took longer than since it was asked for."""
        replies = {lease.asked_at: lease for lease in leases}
        quickest = min(self._offsets, default=-inf)
        for asked_at, lease in replies.items():
            # A reply that took longer than the slack is no measure for others.
            self._offsets.append(min(now, asked_at + lease.slack) - lease.leased_at)
        return {
            asked_at: max(0.0, min(now - lease.leased_at - quickest, now - asked_at))
            for asked_at, lease in replies.items()
        }

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
