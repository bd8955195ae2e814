"""Which member of a proxy pool visits a lane next, and what the result of a visit means for it.

The members of a pool stand in a ring per lane: the first one that is due goes out, and comes back at the tail. A member
that is out is in no ring, so one visit at a time goes through it to a lane, and no other visit can follow a ban that
has not been reported yet. A banned member rests (quarantine) for this lane only. Every function takes values and
returns new ones; `adapters/redis/lua/helpers/proxy_ring.lua` is this module word for word.

The order of choice: members that rest and are due go to the tail (`back`); then members at the head (held, or unused)
that are due, members that have not been in this ring yet, and the others that are due. Due: within the horizon of
leases, and then the start is not before it; a quarantine must be over. A member that rests for all lanes is
`postponed`, one that is at its concurrency over all lanes stays where it is, one that `loses_turn` is `passed_over`.
"""

from enum import IntEnum
from math import ceil, log
from typing import NamedTuple

import msgspec

from trotline.model.lease import LaneFeedback
from trotline.model.proxy_pool import MemberResult, PoolRules
from trotline.model.time import Moment, Seconds
from trotline.model.verdict import Kind

UNITS = 100
"""Due times are kept in these parts of a second."""
BEST = 63
NEW = 45
"""Quality of a member without history, and the quality from which on it has all its turns."""
MOST_WEIGHT = 255
LEARN = 8
"""Quality moves by 1/LEARN of the distance with each visit."""
LEAST_SHARE = 0.05
"""A bad member still gets this share of its turns, or it could never recover."""
LOST_TURN: Seconds = 0.5
"""A member that loses its turn is due again an interval later, and not before this."""
PROBATION = 0.3
"""Share of turns after a quarantine and a first good visit (the probe), until CLEARED good visits."""
CLEARED = 3
MOST_STRIKES = 15
SLOWER = 32
"""Added to `slow` by a 429; 32 steps are a doubling of the interval, and each good visit takes one back."""
MOST_SLOW = 255
SLOW_BASE: Seconds = 0.5
"""The interval that a 429 doubles where none was set."""
PARKED: Seconds = 5.0
"""A member that is due later than this waits beside the ring, in order of time: it would hold up those behind it."""
JITTER = 0.1
"""Quarantines are longer by up to this share, so that members do not come back all at once."""
IN_FORCE: Seconds = 60.0
"""The interval per member that a job wants is in force for this long after it asked, or for two of these intervals."""
FAULTS = 3
"""Failures of its own in a row after which a member rests for all lanes."""
FIRST_DOWN: Seconds = 10.0
LONGEST_DOWN: Seconds = 600.0

DOWN_DOUBLINGS = 20
SHARE_WEIGHT = 1 / 64
"""Moving average of the share of blocked visits of a lane."""
NO_SHARE = 0.001
"""A smaller share is 0: it changes no decision, and a ring that a good visit does not change is not written."""
USUAL_SHARE = 0.2
"""Lanes are expected to block up to this share of visits; or USUAL_MARGIN times their own share, up to MOST_SHARE."""
USUAL_MARGIN = 1.5
MOST_SHARE = 0.6
SUSPICION = 6.9
"""Wald's sequential test: evidence (ln of the likelihood ratio) from which on the site blocks us, and not single
members. With USUAL_SHARE these are five blocked members in a row."""
BLOCKED_IF_SITE = 0.95
"""Share of blocked visits while the site blocks us."""


class Identity(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A member in one lane."""

    member: int
    due: Moment = 0.0
    banned_at: Moment = 0.0
    """0: it is not in quarantine."""
    quality: int = NEW
    uses: int = 0
    """Of this hold."""
    good: int = 0
    """Good visits since the last strike, up to CLEARED."""
    strikes: int = 0
    slow: int = 0
    weight: int = MOST_WEIGHT


class LaneRing(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What is known of a lane's ring as a whole."""

    dealt: int = 0
    """Members of the pool's list that have been in this ring."""
    evidence: float = 0.0
    share: float = 0.0
    """Moving average of the share of blocked visits."""
    suspected_at: Moment = 0.0
    """The first block of those that are the evidence; 0: none."""
    blocked_at: Moment = 0.0
    """When the evidence was enough: the site blocks us. 0: it does not."""
    gap: Seconds = 0.0
    """The longest interval per member that a job wants."""
    gap_at: Moment = 0.0
    """When a job wanted this last; 0: none does."""
    tested: int = 0
    """A banned member that goes out to see whether the bans of the last block by the site are over; 0: none does."""
    tested_since: Moment = 0.0
    """`suspected_at` of that block."""
    tested_blocked_at: Moment = 0.0
    """Its `blocked_at`."""

    @property
    def site_blocked(self) -> bool:
        return self.blocked_at > 0


class Lift(IntEnum):
    """Quarantines that end with a good visit after a block by the site. One first: many proxies that reach the limit of
    a site together are banned in a row, too, and their bans are not over."""

    NONE = 0
    ONE = 1
    """The member that was banned first since `suspected_at` of the old ring: it is `tested`."""
    ALL = 2
    """All since `tested_since` of the old ring."""


class Place(IntEnum):
    """Where a member goes after a visit."""

    TAIL = 0
    HEAD = 1
    RESTING = 2


class Returned(NamedTuple):
    identity: Identity
    place: Place
    ring: LaneRing
    lift: Lift


def ceil_unit(moment: Moment) -> Moment:
    """The moment in whole units, never earlier."""
    return ceil(moment * UNITS) / UNITS


def interval(identity: Identity, wanted: Seconds) -> Seconds:
    """Between two starts through this member, after its 429s."""
    if identity.slow == 0:
        return wanted
    return float(max(wanted, SLOW_BASE) * 2 ** (identity.slow / SLOWER))


def taken(identity: Identity, start: Moment, wanted: Seconds) -> Identity:
    """It goes out at `start`; the next visit is due an interval later, however long this one takes."""
    return msgspec.structs.replace(identity, due=ceil_unit(start + interval(identity, wanted)))


def wanted_interval(rules: PoolRules, ring: LaneRing) -> Seconds:
    """Between two starts of the lane through one member, before its 429s."""
    return max(rules.interval, ring.gap)


def share_of_turns(identity: Identity) -> float:
    if identity.strikes > 0 and identity.good == 0:
        # The probe after a quarantine: the rest was its loss of turns.
        return 1.0
    share = min(1.0, identity.quality / NEW) * (identity.weight / MOST_WEIGHT)
    if identity.strikes > 0:
        share = min(share, PROBATION)
    return max(LEAST_SHARE, share)


def loses_turn(identity: Identity, chance: float) -> bool:
    return chance >= share_of_turns(identity)


def passed_over(identity: Identity, now: Moment, wanted: Seconds) -> Identity:
    """It lost its turn: as if it had gone out now. It goes to the tail, or rests."""
    due = ceil_unit(now + max(LOST_TURN, interval(identity, wanted)))
    return msgspec.structs.replace(identity, due=max(identity.due, due))


def postponed(identity: Identity, until: Moment) -> Identity:
    """It cannot go out before, as it rests for all lanes, or by its limits over all lanes. It goes to the tail, or
    rests."""
    return msgspec.structs.replace(identity, due=max(identity.due, ceil_unit(until)))


def returned(
    identity: Identity,
    ring: LaneRing,
    result: MemberResult,
    now: Moment,
    rules: PoolRules,
    *,
    retry_after: Seconds = 0.0,
    chance: float = 0.0,
) -> Returned:
    """The member and the ring after a visit. `chance` in [0, 1)."""
    if result is MemberResult.UNUSED:
        place = Place.HEAD if identity.due <= now + PARKED else Place.RESTING
        return Returned(identity, place, ring, Lift.NONE)
    if result is MemberResult.BLOCKED:
        return _blocked(identity, ring, now, rules, chance)
    if result is MemberResult.THROTTLED:
        slower = msgspec.structs.replace(identity, slow=min(MOST_SLOW, identity.slow + SLOWER), uses=0)
        due = ceil_unit(now + max(retry_after, interval(slower, wanted_interval(rules, ring))))
        return _placed(msgspec.structs.replace(slower, due=max(identity.due, due)), ring, now)
    if result is MemberResult.UNCLEAR:
        return _placed(msgspec.structs.replace(identity, quality=max(1, identity.quality - 1), uses=0), ring, now)
    if result is MemberResult.FAULT:
        due = max(identity.due, ceil_unit(now + FIRST_DOWN * (1 + JITTER * chance)))
        worse = msgspec.structs.replace(identity, quality=identity.quality - identity.quality // LEARN, due=due, uses=0)
        return _placed(worse, ring, now)
    return _good(identity, ring, now, rules)


def _good(identity: Identity, ring: LaneRing, now: Moment, rules: PoolRules) -> Returned:
    good = min(CLEARED, identity.good + 1)
    always = rules.hold == 0
    uses = 1 if always else identity.uses + 1
    held = always or uses < rules.hold
    better = msgspec.structs.replace(
        identity,
        quality=identity.quality + -(-(BEST - identity.quality) // LEARN),
        uses=uses if held else 0,
        good=good,
        strikes=0 if good >= CLEARED else identity.strikes,
        slow=max(0, identity.slow - 1),
    )
    known = _evidence(ring, now, blocked=False)
    place = _place(better, now)
    lift = Lift.NONE
    if ring.tested == identity.member:
        lift, known = Lift.ALL, msgspec.structs.replace(known, tested=0)
    elif ring.site_blocked:
        since = {"tested_since": ring.suspected_at, "tested_blocked_at": ring.blocked_at}
        lift, known = Lift.ONE, msgspec.structs.replace(known, **since)
    return Returned(better, Place.HEAD if held and place is Place.TAIL else place, known, lift)


def _blocked(identity: Identity, ring: LaneRing, now: Moment, rules: PoolRules, chance: float) -> Returned:
    known = _evidence(ring, now, blocked=True)
    if ring.tested == identity.member:
        # The bans are not over: they are bans of members.
        known = msgspec.structs.replace(known, tested=0)
    strikes = identity.strikes if ring.site_blocked else min(MOST_STRIKES, identity.strikes + 1)
    rest = min(rules.longest_rest, rules.rest * 2.0 ** (max(strikes, 1) - 1))
    if rules.probe > 0 and known.site_blocked and _is_probe(identity, ring, rules):
        rest = min(rest, rules.probe)
    rest *= 1 + JITTER * chance
    banned = msgspec.structs.replace(
        identity,
        quality=identity.quality - -(-identity.quality // LEARN),
        due=max(identity.due, ceil_unit(now + rest)),
        banned_at=now,
        uses=0,
        good=0,
        strikes=strikes,
    )
    return Returned(banned, Place.RESTING, known, Lift.NONE)


def _is_probe(identity: Identity, ring: LaneRing, rules: PoolRules) -> bool:
    """Has the visit raised the alarm, or begun after it? Those that were under way may have had a ban of their own.
    `ring`: before the visit."""
    return not ring.site_blocked or identity.due - interval(identity, wanted_interval(rules, ring)) > ring.blocked_at


def _evidence(ring: LaneRing, now: Moment, *, blocked: bool) -> LaneRing:
    """Wald's sequential test: does the site block all members, or single ones?"""
    usual = min(MOST_SHARE, max(USUAL_SHARE, USUAL_MARGIN * ring.share))
    share = ring.share + SHARE_WEIGHT * ((1.0 if blocked else 0.0) - ring.share)
    if not blocked:
        evidence = ring.evidence + log((1 - BLOCKED_IF_SITE) / (1 - usual))
        calm = ring.site_blocked or evidence <= 0
        return msgspec.structs.replace(
            ring,
            evidence=0.0 if calm else evidence,
            share=0.0 if share < NO_SHARE else share,
            suspected_at=0.0 if calm else ring.suspected_at,
            blocked_at=0.0,
        )
    evidence = min(SUSPICION, ring.evidence + log(BLOCKED_IF_SITE / usual))
    return msgspec.structs.replace(
        ring,
        evidence=evidence,
        # While the site blocks us, its share says nothing about single members.
        share=ring.share if ring.site_blocked else share,
        suspected_at=ring.suspected_at or now,
        blocked_at=ring.blocked_at or (now if evidence >= SUSPICION else 0.0),
    )


def _placed(identity: Identity, ring: LaneRing, now: Moment) -> Returned:
    return Returned(identity, _place(identity, now), ring, Lift.NONE)


def _place(identity: Identity, now: Moment) -> Place:
    # One that was slowed is due later than those behind it.
    parked = 0.0 if identity.slow else PARKED
    return Place.RESTING if identity.due > now + parked else Place.TAIL


def back(identity: Identity) -> Identity:
    """Its rest is over: on probation if it was banned."""
    return msgspec.structs.replace(identity, banned_at=0.0)


def lifted(identity: Identity, now: Moment, wanted: Seconds, blocked_at: Moment = 0.0) -> Identity:
    """The ban was not its own: the quarantine and its strike are taken back, its interval stays. `blocked_at`: that of
    the old ring, where the site blocked us; the bans after it counted no strike."""
    counted = blocked_at == 0 or identity.banned_at <= blocked_at
    return msgspec.structs.replace(
        identity,
        banned_at=0.0,
        # Its start was before the ban.
        due=ceil_unit(max(now, identity.banned_at + interval(identity, wanted))),
        strikes=max(0, identity.strikes - 1) if counted else identity.strikes,
        good=0,
    )


def may_lift(ring: LaneRing) -> bool:
    """Can a page be the cause of bans (`Settlement.lift`)? Only if others are answered. `ring`: before the visit."""
    return ring.evidence <= 0 and not ring.site_blocked


def wanted_gap(ring: LaneRing, own: Seconds, now: Moment) -> LaneRing:
    """The longest interval per member of the jobs that use the lane; a job's own holds for a while after it asked."""
    if own < ring.gap and now <= ring.gap_at + max(IN_FORCE, 2 * ring.gap):
        return ring
    if own == ring.gap and (own == 0 or now < ring.gap_at + 1.0):
        # Not written anew with each lease.
        return ring
    return msgspec.structs.replace(ring, gap=own, gap_at=now if own > 0 else 0.0)


def lane_feedback(result: MemberResult, feedback: LaneFeedback | None, ring: LaneRing) -> LaneFeedback | None:
    """What the lane's own pace learns of a visit through a member. `ring`: after the visit. A ban, a 429 or a failure
    of the proxy is the member's, unless the site blocks us; then it is the lane's failure."""
    if result in (MemberResult.GOOD, MemberResult.UNCLEAR, MemberResult.UNUSED):
        return feedback
    if ring.site_blocked and result is not MemberResult.FAULT:
        return msgspec.structs.replace(feedback or LaneFeedback(Kind.BLOCKED), kind=Kind.BLOCKED)
    if feedback is not None and (feedback.robots or feedback.interval > 0):
        # Kind.REFUSED changes nothing but what is known of robots.txt.
        return LaneFeedback(Kind.REFUSED, interval=feedback.interval, robots=feedback.robots)
    return None


def down_for(faults: int, chance: float) -> Seconds:
    """How long a member with so many failures of its own in a row rests for all lanes."""
    if faults < FAULTS:
        return 0.0
    return float(min(LONGEST_DOWN, FIRST_DOWN * 2.0 ** min(faults - FAULTS, DOWN_DOUBLINGS)) * (1 + JITTER * chance))


def uses_after(began: Moment, uses: int, start: Moment, rules: PoolRules) -> tuple[Moment, int]:
    """A member's window and the starts in it, over all lanes, after one more start."""
    if uses == 0 or start >= began + rules.uses_window:
        return start, 1
    return began, uses + 1


def uses_left_at(began: Moment, uses: int, rules: PoolRules) -> Moment:
    """From when on the member may start once more, by `member_uses`; 0: at any time."""
    if rules.member_uses == 0 or uses < rules.member_uses:
        return 0.0
    return began + rules.uses_window
