"""Members of a proxy pool for the next starts of a lane: which of the candidates go out, and what the others become.

The frontiers read candidates from their tables in the order of choice (`rules/proxy_ring.py`), ask here about one after
another, and write the answers. A member's limits over all lanes are part of the decision.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from trotline.model.proxy_pool import MemberResult, PoolRules
from trotline.model.time import Moment, Seconds
from trotline.rules import proxy_ring
from trotline.rules.pace import NEVER
from trotline.rules.proxy_ring import Identity, LaneRing

IN_RING, AT_HEAD, OUT = 0, 1, 2
"""Where a member stands in a lane: in the ring, at its head, in flight."""

UNLIMITED = 1 << 60
"""Visits at a time through a member of a pool without `member_concurrency`."""


class Limits(NamedTuple):
    """A member over all lanes."""

    weight: int
    down_until: Moment
    next_start: Moment
    running: int
    uses: int
    window_began: Moment

    def free_at(self, rules: PoolRules) -> Moment:
        """No start before."""
        return max(self.down_until, self.next_start, proxy_ring.uses_left_at(self.window_began, self.uses, rules))

    def after(self, start: Moment, rules: PoolRules) -> "Limits":
        """A visit goes out at `start`."""
        began, uses = proxy_ring.uses_after(self.window_began, self.uses, start, rules)
        return self._replace(
            running=self.running + 1, next_start=start + rules.member_interval, uses=uses, window_began=began
        )


class Candidate(NamedTuple):
    identity: Identity
    limits: Limits
    places: bool
    """Is it below its concurrency over all lanes?"""
    place: int


class Move(NamedTuple):
    """A candidate after its turn. `start`: when its visit starts; None: it does not go out."""

    candidate: Candidate
    identity: Identity
    place: int
    start: Moment | None = None


class Standing(NamedTuple):
    """A member that is in the ring of a lane or at its head, as one who waits for it sees it."""

    due: Moment
    banned_at: Moment
    busy: bool
    """At its concurrency over all lanes."""
    yield_until: Moment
    """The lane lets others have it until then."""


class Choice:
    """Members for these starts of a lane, at most one each, in the order of their starts. A start is later than
    reserved if its member is due later, and never later than `latest`."""

    def __init__(
        self, starts: Sequence[Moment], interval: Seconds, rules: PoolRules, ring: LaneRing, now: Moment, latest: Moment
    ) -> None:
        self._starts = starts
        self._interval = interval
        self._rules = rules
        self._wanted = proxy_ring.wanted_interval(rules, ring)
        self._now = now
        self._latest = latest
        self._passed: dict[int, Candidate] = {}
        self._count = 0
        self._last: Moment | None = None
        self._over = False

    @property
    def missing(self) -> int:
        """Members that are still wanted; 0 also if no further start is possible."""
        return 0 if self._over else len(self._starts) - self._count

    def offer(self, candidate: Candidate, chance: Callable[[], float]) -> Move:
        """The candidate's turn. Only while one is missing."""
        identity, free_at = candidate.identity, candidate.limits.free_at(self._rules)
        if not candidate.places or identity.member in self._passed:
            # One that lost its turn may be read again, as it is due soon.
            return Move(candidate, identity, candidate.place)
        if free_at > self._latest:
            return Move(candidate, proxy_ring.postponed(identity, free_at), IN_RING)
        if proxy_ring.loses_turn(identity, chance()):
            self._passed[identity.member] = candidate
            return Move(candidate, proxy_ring.passed_over(identity, self._now, self._wanted), IN_RING)
        begin = self._start_of(candidate)
        if begin > self._latest:
            self._over = True
            return Move(candidate, identity, candidate.place)
        return self._sent(candidate, begin)

    def second_turns(self) -> Iterator[Move]:
        """After all offers: a turn is lost to others only."""
        for candidate in self._passed.values():
            if self._count < len(self._starts) and (begin := self._start_of(candidate)) <= self._latest:
                yield self._sent(candidate, begin)

    def _start_of(self, candidate: Candidate) -> Moment:
        after = 0.0 if self._last is None else self._last + self._interval
        return max(self._starts[self._count], after, candidate.identity.due, candidate.limits.free_at(self._rules))

    def _sent(self, candidate: Candidate, begin: Moment) -> Move:
        self._count += 1
        self._last = begin
        identity = proxy_ring.taken(proxy_ring.back(candidate.identity), begin, self._wanted)
        return Move(candidate, identity, OUT, begin)


def limited(rules: PoolRules) -> bool:
    """Has a member limits over all lanes?"""
    return rules.member_interval > 0 or rules.member_concurrency > 0 or rules.member_uses > 0


def first_free(
    standings: Iterable[Standing], now: Moment, horizon: Seconds, *, waits_without_time: bool
) -> tuple[Moment, bool]:
    """When the first of these members, in the order of their due times, can go out; NEVER: when one comes back. And
    is a busy one waited for? `waits_without_time`: those that are due and busy (accounts) are, others are polled."""
    waits = False
    for due, banned_at, busy, yield_until in standings:
        ready = due if banned_at else due - horizon
        if not (busy and ready <= now and waits_without_time):
            return max(ready, yield_until), waits
        waits = True
    return NEVER, waits


def faults_after(faults: int, result: MemberResult, now: Moment, chance: float) -> tuple[int, Moment] | None:
    """A member's failures of its own in a row, and until when it rests for all lanes; None: nothing changes."""
    if result is MemberResult.FAULT:
        down = proxy_ring.down_for(faults + 1, chance)
        return faults + 1, now + down if down else 0.0
    if result is MemberResult.GOOD and faults:
        return 0, 0.0
    return None
