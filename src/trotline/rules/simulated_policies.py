"""How requests are spread over proxies: policies of other tools, for `rules/proxy_simulation.py`.

They have what these tools have: each process knows only its own requests and bans. A request that was given a proxy
waits for that proxy's turn, in its slot.
"""

import random
from typing import Protocol

from trotline.model.time import Moment, Seconds
from trotline.rules.simulated_site import Answered

REANIMATE: Seconds = 5.0
"""Interval at which a process looks for proxies whose backoff is over."""
BACKOFF: Seconds = 300.0
LONGEST_BACKOFF: Seconds = 3600.0


class Chosen(Protocol):
    """A policy, as the simulation asks it."""

    @property
    def reported_after(self) -> Seconds:
        """From the end of a request to `learn`."""
        ...

    def choose(self, worker: int, now: Moment) -> tuple[int, Moment]:
        """A proxy and its start; proxy -1: none, ask again at that moment."""
        ...

    def learn(self, worker: int, proxy: int, answer: Answered, now: Moment) -> None: ...


class _PerProcess:
    reported_after: Seconds = 0.0

    def __init__(self, workers: int, proxies: int, interval: Seconds) -> None:
        self._interval = interval
        self._next: list[list[Moment]] = [[0.0] * proxies for _ in range(workers)]
        """By worker and proxy: the next start that keeps the interval, in this process."""

    def _started(self, worker: int, proxy: int, now: Moment) -> tuple[int, Moment]:
        next_starts = self._next[worker]
        start = max(now, next_starts[proxy])
        next_starts[proxy] = start + self._interval
        return proxy, start


class RoundRobin(_PerProcess):
    """One proxy after the other, banned or not."""

    def __init__(self, workers: int, proxies: int, interval: Seconds) -> None:
        super().__init__(workers, proxies, interval)
        self._proxies = proxies
        self._place = [worker * proxies // workers for worker in range(workers)]

    def choose(self, worker: int, now: Moment) -> tuple[int, Moment]:
        proxy = self._place[worker]
        self._place[worker] = (proxy + 1) % self._proxies
        return self._started(worker, proxy, now)

    def learn(self, worker: int, proxy: int, answer: Answered, now: Moment) -> None:
        """It learns nothing."""


class ProcessQuarantine(_PerProcess):
    """As scrapy-rotating-proxies 0.6.2: a random proxy; after any status but 200 it rests for uniform(0, 300 s * 2^n),
    at most an hour; when all rest, all are freed."""

    def __init__(self, workers: int, proxies: int, interval: Seconds, chance: random.Random) -> None:
        super().__init__(workers, proxies, interval)
        self._chance = chance
        self._alive = [list(range(proxies)) for _ in range(workers)]
        self._back: list[dict[int, Moment]] = [{} for _ in range(workers)]
        """By worker: those that rest, and until when."""
        self._failed = [[0] * proxies for _ in range(workers)]
        self._looked: list[Moment] = [0.0] * workers

    def choose(self, worker: int, now: Moment) -> tuple[int, Moment]:
        alive, back = self._alive[worker], self._back[worker]
        if back and now >= self._looked[worker] + REANIMATE:
            self._looked[worker] = now
            for proxy in [proxy for proxy, until in back.items() if until <= now]:
                del back[proxy]
                alive.append(proxy)
        if not alive:
            alive.extend(back)
            back.clear()
        return self._started(worker, alive[int(self._chance.random() * len(alive))], now)

    def learn(self, worker: int, proxy: int, answer: Answered, now: Moment) -> None:
        alive, back, failed = self._alive[worker], self._back[worker], self._failed[worker]
        if answer in (Answered.GOOD, Answered.CAPTIVE):
            failed[proxy] = 0
            if back.pop(proxy, None) is not None:
                alive.append(proxy)
            return
        if proxy not in back:
            alive.remove(proxy)
        back[proxy] = now + self._chance.random() * min(LONGEST_BACKOFF, BACKOFF * 2.0 ** min(failed[proxy], 10))
        failed[proxy] += 1
