"""A queue of leases that wait for their reserved start time."""

import asyncio
import heapq
from collections import deque
from math import inf

from trotline.model.lease import Lease
from trotline.model.time import Seconds

_REPLIES = 64
"""The quickest of this many replies is the baseline of the delay; older ones are dropped, as the frontier's clock may
have been set."""
_FAR = 8
"""Replies in a row that took longer than the slack: the frontier is far away, and that is its usual delay."""
_FAR_DELAY = 2.0
"""The longest usual delay of a frontier that is far away. Without it, a process that is suspended again and again would
take the time of its suspensions for the usual delay."""


class StartQueue:
    """Gives leases to slots at their start time. A waiting lease blocks no slot."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._heap: list[tuple[Seconds, int, Lease, Seconds]] = []
        self._ready: asyncio.Queue[tuple[Lease, Seconds]] = asyncio.Queue()
        self._timer: asyncio.TimerHandle | None = None
        self._count = 0
        self._offsets: deque[Seconds] = deque(maxlen=_REPLIES)
        self._slow = 0

    def add(self, leases: list[Lease]) -> None:
        """Leases that arrived just now: start times count from here; the delay of the reply reduces their slack."""
        now = self._loop.time()
        late = self._delays(leases, now)
        for lease in leases:
            latest = now + lease.start_in + lease.slack - late[lease.asked_at]
            if lease.start_in <= 0:
                self._ready.put_nowait((lease, latest))
            else:
                self._count += 1
                heapq.heappush(self._heap, (now + lease.start_in, self._count, lease, latest))
        self._wind()

    async def next(self) -> tuple[Lease, Seconds]:
        """The next lease that may start, and the latest time at which it may."""
        return await self._ready.get()

    def __len__(self) -> int:
        return len(self._heap) + self._ready.qsize()

    def clear(self) -> list[Lease]:
        """Remove and return all leases that did not start."""
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
        """Remove and return the leases of a lane that did not start."""
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

    def _delays(self, leases: list[Lease], now: Seconds) -> dict[Seconds, Seconds]:
        """Request time -> how long the reply took. A process that was suspended finds outdated replies, whose start
        times have passed. The frontier's clock and ours may differ: delays are relative to the quickest earlier reply,
        and at most the time since the request."""
        replies = {lease.asked_at: lease for lease in leases}
        quickest = min(self._offsets, default=-inf)
        for asked_at, lease in replies.items():
            # A slow reply is no baseline: with it, the next slow one would seem to be in time.
            self._slow = self._slow + 1 if now - asked_at > lease.slack else 0
            if self._slow in range(1, _FAR):
                continue
            # Measured from the slack, a frontier whose every reply takes 0.6 s would never let a visit start.
            longest = _FAR_DELAY if self._slow else lease.slack
            self._offsets.append(min(now, asked_at + longest) - lease.leased_at)
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
