"""Trotline's own policy, for `rules/proxy_simulation.py`: one lane and its ring, with the rules that a frontier runs.

Only where the members stand is written here, as in `adapters/sqlite/pool_ring.py`; every decision is that of
`rules/proxy_ring.py`, `rules/pace.py` and `rules/adaptive_pace.py`.
"""

import heapq
import random
from collections import deque

import msgspec

from trotline.model.lease import LaneFeedback
from trotline.model.pace import Pace, Rate
from trotline.model.proxy_pool import MemberResult, PoolRules
from trotline.model.time import Moment, Seconds
from trotline.model.verdict import Kind
from trotline.rules import adaptive_pace, pace, proxy_ring
from trotline.rules.proxy_ring import Identity, LaneRing, Lift, Place
from trotline.rules.simulated_site import Answered

HORIZON: Seconds = 1.0
"""A start is reserved at most this far ahead."""
COMMIT: Seconds = 0.05
"""A result is known to the fleet so much later: workers commit visits in batches."""

_RESULTS = {
    Answered.GOOD: MemberResult.GOOD,
    Answered.THROTTLED: MemberResult.THROTTLED,
    Answered.BANNED: MemberResult.BLOCKED,
    Answered.DEAD: MemberResult.FAULT,
    # Seen in the tunnel's reply, by its certificate, or as one page of many hosts (rules/captive_runs.py).
    Answered.CAPTIVE: MemberResult.FAULT,
}
_FEEDBACK = {
    MemberResult.GOOD: LaneFeedback(Kind.OK),
    MemberResult.THROTTLED: LaneFeedback(Kind.THROTTLED),
    MemberResult.BLOCKED: LaneFeedback(Kind.BLOCKED),
    MemberResult.FAULT: None,
}


class SharedRing:
    """All workers ask the same ring."""

    reported_after: Seconds = COMMIT

    def __init__(self, proxies: int, interval: Seconds, rules: PoolRules, chance: random.Random) -> None:
        self._proxies = proxies
        self._rules = rules
        self._chance = chance
        bounds = pace.bounds_of(Pace(rate=Rate(1 / interval), per_proxy=True), "simulated")
        self._lane = pace.open_lane(bounds, 0.0)
        self._ring = LaneRing(gap=interval)
        self._head: deque[Identity] = deque()
        self._waiting: list[tuple[Moment, int, Identity]] = []
        """Heap of those that are in the ring or rest, by the moment from which they are due."""
        self._places = 0
        self._out: dict[int, Identity] = {}
        self._faults: dict[int, int] = {}
        self._down: dict[int, Moment] = {}

    def choose(self, worker: int, now: Moment) -> tuple[int, Moment]:
        starts, spent = pace.reserve(self._lane, now, 1, len(self._out), HORIZON)
        if not starts:
            return -1, pace.free_at(self._lane, now, len(self._out), HORIZON)
        found = self._send(starts[0], now)
        if found is None:
            return -1, self._free_at(now)
        proxy, start = found
        self._lane = msgspec.structs.replace(spent, next_start=max(spent.next_start, start + spent.interval))
        return proxy, start

    def _send(self, reserved: Moment, now: Moment) -> tuple[int, Moment] | None:
        wanted = proxy_ring.wanted_interval(self._rules, self._ring)
        skipped: list[Identity] = []
        found = None
        for _ in range(self._proxies + 1):
            identity = self._candidate(now, skipped)
            if identity is None:
                break
            down = self._down.get(identity.member, 0.0)
            if down > now + HORIZON:
                self._wait(proxy_ring.postponed(identity, down))
            elif proxy_ring.loses_turn(identity, self._chance.random()):
                self._wait(proxy_ring.passed_over(identity, now, wanted))
            else:
                start = max(reserved, identity.due, down)
                self._out[identity.member] = proxy_ring.taken(proxy_ring.back(identity), start, wanted)
                found = identity.member, start
                break
        for identity in skipped:
            self._wait(identity)
        return found

    def _candidate(self, now: Moment, skipped: list[Identity]) -> Identity | None:
        if self._head and self._head[0].due <= now + HORIZON:
            return self._head.popleft()
        if self._ring.dealt < self._proxies:
            self._ring = msgspec.structs.replace(self._ring, dealt=self._ring.dealt + 1)
            return Identity(member=self._ring.dealt - 1)
        while self._waiting and self._waiting[0][0] <= now + HORIZON:
            identity = heapq.heappop(self._waiting)[2]
            if not identity.banned_at or identity.due <= now:
                return identity
            skipped.append(identity)
        return None

    def _free_at(self, now: Moment) -> Moment:
        first = pace.NEVER
        if self._waiting:
            identity = self._waiting[0][2]
            first = identity.due if identity.banned_at else identity.due - HORIZON
        if self._head:
            first = min(first, self._head[0].due - HORIZON)
        return max(first, now + proxy_ring.LOST_TURN) if first <= now else first

    def learn(self, worker: int, proxy: int, answer: Answered, now: Moment) -> None:
        result, before = _RESULTS[answer], self._ring
        identity = self._out.pop(proxy)
        back = proxy_ring.returned(identity, before, result, now, self._rules, chance=self._chance.random())
        self._ring = back.ring
        if back.place is Place.HEAD:
            self._head.append(back.identity)
        else:
            self._wait(back.identity)
        self._count_faults(proxy, result, now)
        if back.lift is Lift.ONE:
            self._test_a_ban(before, now)
        elif back.lift is Lift.ALL:
            self._lift(before.tested_since, before.tested_blocked_at, now)
        if back.ring.site_blocked and not before.site_blocked:
            self._lane = pace.suspected(self._lane)
        feedback = proxy_ring.lane_feedback(result, _FEEDBACK[result], back.ring)
        if feedback is not None:
            self._lane = adaptive_pace.learn(self._lane, feedback, now, self._chance.random())

    def _wait(self, identity: Identity) -> None:
        self._places += 1
        heapq.heappush(self._waiting, (identity.due, self._places, identity))

    def _count_faults(self, proxy: int, result: MemberResult, now: Moment) -> None:
        if result is MemberResult.GOOD:
            self._faults.pop(proxy, None)
            self._down.pop(proxy, None)
        elif result is MemberResult.FAULT:
            self._faults[proxy] = self._faults.get(proxy, 0) + 1
            if down := proxy_ring.down_for(self._faults[proxy], self._chance.random()):
                self._down[proxy] = now + down

    def _test_a_ban(self, old: LaneRing, now: Moment) -> None:
        banned = [each for *_, each in self._waiting if each.banned_at > 0 and each.banned_at >= old.suspected_at]
        if banned:
            first = min(banned, key=lambda identity: identity.banned_at)
            self._ring = msgspec.structs.replace(self._ring, tested=first.member)
            self._lift(first.banned_at, old.blocked_at, now, only=first.member)

    def _lift(self, since: Moment, blocked_at: Moment, now: Moment, only: int | None = None) -> None:
        everyone, self._waiting = self._waiting, []
        wanted = proxy_ring.wanted_interval(self._rules, self._ring)
        for _, _, identity in everyone:
            banned = identity.banned_at > 0 and identity.banned_at >= since and only in (None, identity.member)
            self._wait(proxy_ring.lifted(identity, now, wanted, blocked_at=blocked_at) if banned else identity)
