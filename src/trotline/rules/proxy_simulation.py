"""Policies for proxies against a described site, in virtual time: what would a fleet get, and what would it cost?

The model has one site, endless pages and no other traffic through the proxies. It says which policy is better under
these assumptions, not what a real site does.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from trotline.model.proxy_pool import PoolRules
from trotline.model.time import Moment, Seconds
from trotline.rules.simulated_policies import Chosen, ProcessQuarantine, RoundRobin
from trotline.rules.simulated_ring import SharedRing
from trotline.rules.simulated_site import Answered, SimulatedSite, SiteModel

CONNECT_TIMEOUT: Seconds = 5.0
"""Until a request through a dead proxy fails."""
GIB = 1024**3
OURS = "trotline"


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    site: SiteModel
    proxies: int
    interval: Seconds
    """Between two requests through one proxy, the same for every policy."""
    workers: int
    slots: int = 16
    """Requests of one worker at the same time."""
    minutes: int = 60
    seed: int = 1
    dead: float = 0.0
    """Share of proxies that never answer."""
    captive: float = 0.0
    """Share of proxies that answer with a page of their own."""
    rules: PoolRules = PoolRules()
    """Of our ring."""
    page_bytes: int = 30_000
    refusal_bytes: int = 1_000
    """Of a refusal, and of a captive proxy's page."""
    cost_per_gb: float = 0.0
    cost_per_request: float = 0.0

    @property
    def ceiling(self) -> float:
        """Good pages per minute that the site gives these proxies, if each is used at its limit."""
        alive = self.proxies - round(self.dead * self.proxies) - round(self.captive * self.proxies)
        return alive * min(self.site.limit, 60 / self.interval)


class Minute(msgspec.Struct, kw_only=True):
    """What happened in one simulated minute, by the start of the request."""

    good: int = 0
    throttled: int = 0
    banned: int = 0
    """Requests that banned addresses sent."""
    dead: int = 0
    captive: int = 0
    bans: int = 0
    """Addresses that were banned."""

    @property
    def requests(self) -> int:
        return self.good + self.throttled + self.banned + self.dead + self.captive

    @property
    def refused(self) -> int:
        return self.throttled + self.banned


class Course(msgspec.Struct, kw_only=True):
    """One policy, minute by minute."""

    policy: str
    scenario: Scenario
    minutes: list[Minute]
    starts: int = 0
    """Requests that began; those of all minutes together."""
    in_flight: int = 0
    """Requests under way at the end."""

    def total(self, name: str) -> int:
        return sum(getattr(minute, name) for minute in self.minutes)

    @property
    def good_per_minute(self) -> float:
        return self.total("good") / len(self.minutes)

    def cost(self, minute: Minute) -> float:
        scenario = self.scenario
        octets = minute.good * scenario.page_bytes + (minute.refused + minute.captive) * scenario.refusal_bytes
        return octets / GIB * scenario.cost_per_gb + minute.requests * scenario.cost_per_request

    @property
    def cost_per_thousand(self) -> float | None:
        """Of a thousand good pages; None: there was none."""
        good = self.total("good")
        return 1000 * sum(map(self.cost, self.minutes)) / good if good else None


Maker = Callable[[Scenario, random.Random], Chosen]

POLICIES: Mapping[str, Maker] = {
    OURS: lambda s, chance: SharedRing(s.proxies, s.interval, s.rules, chance),
    "quarantine per process": lambda s, chance: ProcessQuarantine(s.workers, s.proxies, s.interval, chance),
    "same, delay x workers": lambda s, chance: ProcessQuarantine(s.workers, s.proxies, s.interval * s.workers, chance),
    "round robin": lambda s, _: RoundRobin(s.workers, s.proxies, s.interval),
}

PRESETS: Mapping[str, Scenario] = {
    "seed-3x10": Scenario(workers=3, proxies=10, interval=1.0, site=SiteModel(limit=60), cost_per_gb=0.5),
    "seed-10x50": Scenario(workers=10, proxies=50, interval=1.5, site=SiteModel(limit=40), cost_per_gb=5.0),
    "seed-20x100": Scenario(workers=20, proxies=100, interval=1.0, site=SiteModel(limit=60), cost_per_gb=1.0),
}
"""3 workers with 10 datacenter proxies, 10 with 50 residential ones, 20 with 100."""


def simulate(scenario: Scenario, policy: str) -> Course:
    """The same scenario and policy give the same course."""
    return _Run(scenario, policy).course()


_START, _END, _LEARN, _WAKE = range(4)
_FIELDS = ("good", "throttled", "banned", "dead", "captive")


class _Run:
    def __init__(self, scenario: Scenario, policy: str) -> None:
        self._scenario = scenario
        self._name = policy
        self._chance = random.Random(scenario.seed)  # noqa: S311 - a simulation must repeat
        fates = list(range(scenario.proxies))
        self._chance.shuffle(fates)
        dead, captive = round(scenario.dead * scenario.proxies), round(scenario.captive * scenario.proxies)
        self._dead, self._captive = frozenset(fates[:dead]), frozenset(fates[dead : dead + captive])
        self._site = SimulatedSite(scenario.site, scenario.proxies)
        self._policy = POLICIES[policy](scenario, self._chance)
        self._events: list[tuple[Moment, int, int, int, int, Answered]] = []
        """Heap of time, number, kind, worker, proxy, answer."""
        self._number = 0
        self._idle: deque[int] = deque()
        """Workers with a free slot for which no proxy was free, one entry per slot."""
        self._wake_at = float("inf")
        self._counts = [[0] * (len(_FIELDS) + 1) for _ in range(scenario.minutes)]
        self._starts = 0
        self._in_flight = 0

    def course(self) -> Course:
        end = self._scenario.minutes * 60.0
        for slot in range(self._scenario.slots * self._scenario.workers):
            # Workers do not start at the same moment.
            self._push(slot * 0.001, _WAKE, slot % self._scenario.workers)
        while self._events and self._events[0][0] < end:
            now, _, kind, worker, proxy, answer = heapq.heappop(self._events)
            if kind == _START:
                self._start(now, worker, proxy)
            elif kind == _END:
                self._end(now, worker, proxy, answer)
            elif kind == _LEARN:
                self._policy.learn(worker, proxy, answer, now)
                self._serve_idle(now)
            else:
                self._wake(now, worker)
        minutes = [Minute(**dict(zip((*_FIELDS, "bans"), row, strict=True))) for row in self._counts]
        return Course(
            policy=self._name,
            scenario=self._scenario,
            minutes=minutes,
            starts=self._starts,
            in_flight=self._in_flight,
        )

    def _push(self, at: Moment, kind: int, worker: int = -1, proxy: int = -1, answer: Answered = Answered.GOOD) -> None:
        self._number += 1
        heapq.heappush(self._events, (at, self._number, kind, worker, proxy, answer))

    def _next(self, now: Moment, worker: int) -> bool:
        """Give a free slot its next request; False: it waits for a proxy."""
        proxy, at = self._policy.choose(worker, now)
        if proxy < 0:
            self._idle.append(worker)
            if at < self._wake_at:
                self._wake_at = at
                self._push(at, _WAKE)
            return False
        if at <= now:
            self._start(now, worker, proxy)
        else:
            self._push(at, _START, worker, proxy)
        return True

    def _start(self, now: Moment, worker: int, proxy: int) -> None:
        self._starts += 1
        self._in_flight += 1
        site = self._scenario.site
        row = self._counts[int(now // 60)]
        took = site.latency + site.jitter * (2 * self._chance.random() - 1)
        if proxy in self._dead:
            answer, took = Answered.DEAD, CONNECT_TIMEOUT
        elif proxy in self._captive:
            answer = Answered.CAPTIVE
        else:
            bans = self._site.bans
            answer = self._site.ask(proxy, now)
            row[-1] += self._site.bans - bans
        row[answer] += 1
        self._push(now + took, _END, worker, proxy, answer)

    def _end(self, now: Moment, worker: int, proxy: int, answer: Answered) -> None:
        self._in_flight -= 1
        if self._policy.reported_after:
            self._push(now + self._policy.reported_after, _LEARN, worker, proxy, answer)
        else:
            self._policy.learn(worker, proxy, answer, now)
        self._next(now, worker)

    def _wake(self, now: Moment, worker: int) -> None:
        if worker >= 0:
            self._next(now, worker)
            return
        self._wake_at = float("inf")
        self._serve_idle(now)

    def _serve_idle(self, now: Moment) -> None:
        while self._idle and self._next(now, self._idle.popleft()):
            pass
