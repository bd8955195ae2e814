"""Sites with limits, and a fleet that asks them, on virtual time: nothing but the rules of the pace is at work."""

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from trotline.model.lease import LaneFeedback
from trotline.model.pace import Pace
from trotline.model.verdict import Kind
from trotline.ports.frontier import HORIZON
from trotline.rules import adaptive_pace, pace

BEGIN = 1_750_000_000.0


@dataclass
class TokenBucket:
    """Admits `rate` requests a second and `burst` at once; says 429 to the rest, and when to come back."""

    rate: float
    burst: float
    retry_after: float
    tokens: float = field(init=False)
    at: float = BEGIN
    quiet_until: float = 0.0
    early: list[float] = field(default_factory=list)
    """Requests that came before the Retry-After of an earlier answer had passed."""
    told: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = self.burst

    def answer(self, now: float) -> LaneFeedback:
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate)
        self.at = now
        if now < self.quiet_until:
            self.early.append(now)
        if self.tokens >= 1:
            self.tokens -= 1
            return LaneFeedback(Kind.OK, 0.05)
        if now >= self.quiet_until:
            self.told.append(now)
        self.quiet_until = now + self.retry_after
        return LaneFeedback(Kind.THROTTLED, 0.05, self.retry_after)


@dataclass
class Window:
    """Admits so many requests in each window of time; 429 until the window ends."""

    most: int
    seconds: float
    served: int = 0
    window: int = -1

    def answer(self, now: float) -> LaneFeedback:
        window = int(now // self.seconds)
        if window != self.window:
            self.window, self.served = window, 0
        if self.served < self.most:
            self.served += 1
            return LaneFeedback(Kind.OK, 0.05)
        return LaneFeedback(Kind.THROTTLED, 0.05, (window + 1) * self.seconds - now)


@dataclass
class Banning:
    """403 for a while after more than `most` requests within `window` seconds."""

    most: int
    window: float
    ban: float
    recent: deque[float] = field(default_factory=deque)
    banned_until: float = 0.0
    bans: list[float] = field(default_factory=list)

    def answer(self, now: float) -> LaneFeedback:
        if now < self.banned_until:
            return LaneFeedback(Kind.BLOCKED, 0.05)
        while self.recent and self.recent[0] <= now - self.window:
            self.recent.popleft()
        self.recent.append(now)
        if len(self.recent) > self.most:
            self.banned_until = now + self.ban
            self.bans.append(now)
            self.recent.clear()
            return LaneFeedback(Kind.BLOCKED, 0.05)
        return LaneFeedback(Kind.OK, 0.05)


class Closed:
    """429 and nothing else."""

    def answer(self, now: float) -> LaneFeedback:
        return LaneFeedback(Kind.THROTTLED, 0.05)


class Site(Protocol):
    def answer(self, now: float) -> LaneFeedback: ...


class Fleet:
    """So many processes with so many slots, and more to do than they can. A process that is told "too fast" gives back
    what it has not begun; the others learn of it when they ask for more."""

    def __init__(self, site: Site, asked: Pace, *, processes: int = 4, slots: int = 16, latency: float = 0.05) -> None:
        self.site = site
        self.lane = pace.open_lane(pace.bounds_of(asked), BEGIN)
        self.slots, self.latency = slots, latency
        self.good: list[float] = []
        self.asked: list[float] = []
        self._busy = [0] * processes
        self._quiet = [0.0] * processes
        """Until then a process begins nothing: it was told to be quiet."""
        self._chance = random.Random(7)
        self._numbers = itertools.count()
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        for process in range(processes):
            self._at(BEGIN + process / 100, partial(self._look, process))

    def run(self, end: float) -> None:
        """Until that second; again, and it goes on from there."""
        while self._events and self._events[0][0] <= BEGIN + end:
            now, _, step = heapq.heappop(self._events)
            step(now)

    def rate(self, begin: float, end: float) -> float:
        """Good answers a second, from one second of the run to another."""
        return sum(begin <= moment - BEGIN < end for moment in self.good) / (end - begin)

    def _at(self, moment: float, step: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._numbers), step))

    def _look(self, process: int, now: float) -> None:
        running = sum(self._busy)
        starts, self.lane = pace.reserve(self.lane, now, self.slots - self._busy[process], running, HORIZON)
        self._busy[process] += len(starts)
        for start in starts:
            self._at(start, partial(self._start, process))
        free = pace.free_at(self.lane, now, sum(self._busy), HORIZON)
        self._at(min(max(free, now + 0.01), now + 0.05), partial(self._look, process))

    def _start(self, process: int, now: float) -> None:
        if now < self._quiet[process]:
            self._busy[process] -= 1
            return
        self.asked.append(now)
        news = self.site.answer(now)
        self._at(now + self.latency * self._chance.uniform(0.5, 1.5), partial(self._end, process, news))

    def _end(self, process: int, news: LaneFeedback, now: float) -> None:
        self._busy[process] -= 1
        if news.kind is Kind.OK:
            self.good.append(now)
        if news.kind is Kind.THROTTLED:
            self._quiet[process] = now + min(news.rest, HORIZON)
        self.lane = adaptive_pace.learn(self.lane, news, now, self._chance.random())
