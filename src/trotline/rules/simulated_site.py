"""A model of a site that limits and bans addresses, for `rules/proxy_simulation.py`.

Each address has a token bucket. A request without a token is refused with 429; after `ban_after` of them the address is
banned for a while, and refused with 403. The site judges a request when it starts; its answer arrives a latency later.
"""

from enum import IntEnum

import msgspec

from trotline.model.time import Moment, Seconds

_ROUNDING = 1e-6
"""Of a token: two starts exactly an interval apart are within the limit."""


class Answered(IntEnum):
    """The result of one simulated request."""

    GOOD = 0
    THROTTLED = 1
    """429: over the limit, not banned yet."""
    BANNED = 2
    """403: the address is banned."""
    DEAD = 3
    """The proxy does not answer."""
    CAPTIVE = 4
    """The proxy answers with a page of its own, status 200."""


class SiteModel(msgspec.Struct, frozen=True, kw_only=True):
    limit: float
    """Requests per minute that one address may send."""
    burst: float = 5.0
    """Size of the token bucket."""
    ban_after: int = 3
    """Requests over the limit that ban an address."""
    ban: Seconds = 600.0
    renewed: bool = False
    """Each request of a banned address starts its ban again."""
    latency: Seconds = 0.3
    jitter: Seconds = 0.15
    """Latencies are uniform in latency +- jitter."""


class SimulatedSite:
    def __init__(self, model: SiteModel, addresses: int) -> None:
        self._model = model
        self._rate = model.limit / 60
        self._tokens = [model.burst] * addresses
        self._seen: list[Moment] = [0.0] * addresses
        self._over = [0] * addresses
        self._banned: list[Moment] = [0.0] * addresses
        self.bans = 0

    def ask(self, address: int, now: Moment) -> Answered:
        """Requests of one address must be in the order of their time."""
        if now < self._banned[address]:
            if self._model.renewed:
                self._banned[address] = now + self._model.ban
            return Answered.BANNED
        tokens = self._tokens[address] + (now - self._seen[address]) * self._rate
        self._seen[address] = now
        if tokens >= self._model.burst:
            tokens, self._over[address] = self._model.burst, 0
        if tokens >= 1 - _ROUNDING:
            self._tokens[address] = tokens - 1
            return Answered.GOOD
        self._tokens[address] = tokens
        self._over[address] += 1
        if self._over[address] < self._model.ban_after:
            return Answered.THROTTLED
        self._over[address] = 0
        self._banned[address] = now + self._model.ban
        self.bans += 1
        return Answered.BANNED
