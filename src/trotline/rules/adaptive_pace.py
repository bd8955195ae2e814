"""Adaptive rate limit and circuit breaker of a lane.

Slower on 429, 5xx and rising latency, faster while answers are good. A lane that is rate limited (429) rests; then one
probe is sent. The rate that was accepted between two 429s is its limit. The pace returns to just below the limit at
once, to the limit after a while, and beyond it only after a long calm, as each 429 costs a rest. A lane that only fails
rests with exponential backoff (circuit breaker), and is probed in the same way.
"""

import msgspec

from trotline.model.lease import LaneFeedback
from trotline.model.time import Moment, Seconds
from trotline.model.verdict import Kind
from trotline.rules.pace import BREAKER, RETRY_ALLOWANCE, ROBOTS_GOOD_FOR, Lane, failing, robots_known, shortest

FIRST_REST: Seconds = 5.0
LONGEST_REST: Seconds = 600.0
THROTTLE_REST: Seconds = 2.0
"""Rest after a 429 without Retry-After."""
SLOWEST_STEP: Seconds = 0.01
"""The first interval of a lane without one when it is slowed down."""
CALM_FOR = 20.0
"""The return to the limit takes this many times as long as the rest that found it."""
SHORTEST_CALM: Seconds = 30.0
LONGEST_CALM: Seconds = 7200.0

RECOVER = 0.98
"""Factor on the interval after each good answer."""
RISING = 2.0
"""Latency is rising above this multiple of the usual one plus JITTER."""
JITTER: Seconds = 0.05
LATENCY_WEIGHT = 0.2
"""Weight of the newest answer in the moving average of the recent latency."""
USUAL_WEIGHT = 0.02
"""The same for the usual latency."""
SLOWER_BY_LATENCY = 1.1
SLOWER_BY_FAILURE = 1.25
FORGET = 0.2
"""Weight of the newest visit in the moving average of failures."""
NO_TROUBLE = 0.01
"""A smaller share of failures counts as none."""
DIP = 0.08
"""How far below the limit a lane starts after a rest."""
FIRST_GUESS = 1.8
"""Factor on the interval that was too short."""
NEXT_GUESS = 1.05
"""Minimum factor between a limit that was too fast and the next one."""
BAN_LIMIT = 0.85
"""After a ban the limit is this share of the rate that was banned."""
CALMEST = 100.0
"""Maximum distance of a lane from its limit, as a factor."""
REST_SPREAD = 0.25
"""Rests are longer by a random share of up to this: lanes must not resume all at once."""
ENOUGH = 10
"""Answers needed to measure the limit."""
LONGER_PHASE = 0.2
"""A phase is compared with the previous one only if it was longer by this share."""
INSTANT: Seconds = 0.001
DOUBLINGS = 20
"""Cap of the exponent; longer rests are cut to LONGEST_REST anyway."""
FAILED = frozenset({Kind.BROKEN, Kind.UNREACHABLE, Kind.BLOCKED})
"""Blocks count as failures: at full speed every task would fail, and our address would be banned."""
ROBOTS_AGAIN: Seconds = ROBOTS_GOOD_FOR / 24
"""Interval at which the time of the last robots.txt is updated."""


def learn(lane: Lane, news: LaneFeedback, now: Moment, chance: float) -> Lane:
    """The lane after a visit's feedback. `chance` in [0, 1) adds jitter to rests."""
    if news.robots or news.interval > 0:
        lane = _robots_known(lane, news.interval, now)
    if news.kind is Kind.THROTTLED:
        return _throttled(lane, news, now, chance)
    if news.kind in FAILED:
        return _failed(lane, news, now, chance)
    if news.kind is Kind.REFUSED:
        return lane
    return _answered(lane, news, now)


def _robots_known(lane: Lane, asked: Seconds, now: Moment) -> Lane:
    """robots.txt is known, with this Crawl-delay. A lane may have several origins: the longest delay applies."""
    if robots_known(lane, now) and (asked < lane.asked or (asked == lane.asked and now < lane.asked_at + ROBOTS_AGAIN)):
        return lane
    longer = asked > lane.asked
    lane = msgspec.structs.replace(lane, asked=asked, asked_at=now)
    interval = max(lane.interval, shortest(lane))
    if not longer or interval == lane.interval:
        return lane
    # The visit may have fetched robots.txt right before its page: count from now.
    start = max(lane.next_start + interval - lane.interval, now + interval)
    return msgspec.structs.replace(lane, interval=interval, next_start=start)


def _answered(lane: Lane, news: LaneFeedback, now: Moment) -> Lane:
    latency = news.took if lane.latency == 0 else lane.latency + (news.took - lane.latency) * LATENCY_WEIGHT
    usual = news.took if lane.usual == 0 else lane.usual + (news.took - lane.usual) * USUAL_WEIGHT
    if (lane.failures > 0 or lane.rests > 0) and now >= lane.rest_until:
        # Answers to requests from before the rest do not end it.
        lane = _healed(lane, now)
    if lane.limit > 0 or lane.trouble > 0:
        lane = _counted(lane, now)
    if latency > RISING * usual + JITTER:
        # In small steps: a lane without an interval is slowed by its own latency already.
        interval, slowed_at = _slower(lane, SLOWER_BY_LATENCY, now, least=0.0)
    else:
        interval, slowed_at = max(shortest(lane), lane.interval * RECOVER, _target(lane, now)), lane.slowed_at
    if interval == lane.interval and latency == lane.latency and usual == lane.usual:
        return lane
    return msgspec.structs.replace(lane, interval=interval, slowed_at=slowed_at, latency=latency, usual=usual)


def _healed(lane: Lane, now: Moment) -> Lane:
    if lane.limit > 0 and lane.lost == 0:
        lane = msgspec.structs.replace(lane, lost=max(now - lane.phase_at, INSTANT), phase_at=now, answers=0)
    return msgspec.structs.replace(lane, failures=0, failing_since=0.0, rests=0, rest_why="")


def _counted(lane: Lane, now: Moment) -> Lane:
    trouble = lane.trouble * (1 - FORGET) if lane.trouble > NO_TROUBLE else 0.0
    was_failing = failing(lane)
    lane = msgspec.structs.replace(lane, trouble=trouble, answers=lane.answers + 1 if lane.limit > 0 else 0)
    if was_failing and not failing(lane):
        lane = msgspec.structs.replace(lane, credit=RETRY_ALLOWANCE, credited_at=now)
    if lane.limit > 0 and lane.lost > 0 and lane.interval == shortest(lane) >= _target(lane, now):
        # At full speed without a 429: the limit no longer applies.
        lane = msgspec.structs.replace(lane, limit=0.0, lost=0.0, answers=0, last_answers=0, last_phase=0.0)
    return lane


def _target(lane: Lane, now: Moment) -> Seconds:
    """The target interval: a cubic curve over time that starts below the limit, reaches it, and then goes beyond it."""
    if lane.limit == 0:
        return 0.0
    if lane.lost == 0:
        return lane.interval
    since = _calm(lane, now) - 1.0
    return min(lane.ceiling, lane.limit / (1.0 + DIP * since * since * since))


def _calm(lane: Lane, now: Moment) -> float:
    """Progress of the return to the limit; 1: at the limit."""
    way = min(LONGEST_CALM, max(SHORTEST_CALM, CALM_FOR * lane.lost)) if lane.sure else SHORTEST_CALM
    return min((now - lane.phase_at) / way, CALMEST)


def _throttled(lane: Lane, news: LaneFeedback, now: Moment, chance: float) -> Lane:
    why = f"rate limited: Retry-After {news.rest:.0f} s" if news.rest else "rate limited"
    if now < lane.rest_until:
        # A request from before the rest.
        if now + news.rest <= lane.rest_until:
            return lane
        return msgspec.structs.replace(lane, rest_until=now + news.rest, rest_why=why)
    rest = news.rest or THROTTLE_REST * (1 + chance)
    if lane.rests == 0:
        lane = _limited(lane, now, ban=False)
    else:
        # A probe: a single visit cannot be too fast, so back off.
        rest = max(
            rest, min(LONGEST_REST, THROTTLE_REST * 2.0 ** min(lane.rests, DOUBLINGS)) * (1 + REST_SPREAD * chance)
        )
    return msgspec.structs.replace(
        lane,
        rests=lane.rests + 1,
        failing_since=lane.failing_since or now,
        rest_until=now + rest,
        rest_why=why,
    )


def _failed(lane: Lane, news: LaneFeedback, now: Moment, chance: float) -> Lane:
    interval, slowed_at = lane.interval, lane.slowed_at
    if news.kind is not Kind.BLOCKED:
        interval, slowed_at = _slower(lane, SLOWER_BY_FAILURE, now)
    failures = lane.failures + 1
    lane = msgspec.structs.replace(
        lane,
        interval=interval,
        slowed_at=slowed_at,
        failures=failures,
        failing_since=lane.failing_since or now,
        trouble=lane.trouble + (1 - lane.trouble) * FORGET,
    )
    if failures < BREAKER or now < lane.rest_until:
        return lane
    if news.kind is Kind.BLOCKED and lane.rests == 0:
        lane = _limited(lane, now, ban=True)
    rest = min(LONGEST_REST, FIRST_REST * 2.0 ** min(lane.rests, DOUBLINGS)) * (1 + REST_SPREAD * chance)
    return msgspec.structs.replace(
        lane,
        rests=lane.rests + 1,
        rest_until=now + max(rest, news.rest),
        # A site that blocks a whole pool opens the breaker before there are as many failures (`pace.suspected`).
        rest_why="blocked by the site" if news.kind is Kind.BLOCKED else f"{failures} failures in a row",
    )


def _limited(lane: Lane, now: Moment, *, ban: bool) -> Lane:
    """It was rate limited: a new limit, and the end of a phase."""
    old, phase = lane.interval, now - lane.phase_at
    if lane.limit == 0:
        limit, sure = max(old, SLOWEST_STEP) * FIRST_GUESS, ban
    elif ban:
        # A ban, which only shows that this rate was too high.
        limit, sure = old / BAN_LIMIT, True
    elif lane.lost > 0 and _calm(lane, now) >= 1:
        limit, sure = min(old / (1 - DIP), max(old * NEXT_GUESS, phase / max(1, lane.answers))), True
    else:
        limit, sure = _measured(lane, old, phase)
    return msgspec.structs.replace(
        lane,
        limit=min(limit, lane.ceiling),
        sure=sure,
        interval=max(lane.interval, min(limit / (1 - DIP), lane.ceiling)),
        lost=0.0,
        phase_at=now,
        answers=0,
        last_answers=lane.answers if lane.lost > 0 else 0,
        last_phase=phase if lane.lost > 0 else 0.0,
        slowed_at=now,
    )


def _measured(lane: Lane, old: Seconds, phase: Seconds) -> tuple[Seconds, bool]:
    """The limit by the answers that the site accepted, and whether it could be measured.

    A site's token bucket may be full when the rest ends, and is empty at a 429. Over the rest and the phase together
    the site accepted at most its rate, so that is a bound; it accepted less if the bucket was full before the rest was
    over. Two phases start with the same bucket: their difference is the rate alone.
    """
    slowest = (phase + lane.lost) / max(1, lane.answers)
    more, longer = lane.answers - lane.last_answers, phase - lane.last_phase
    if lane.answers < ENOUGH or lane.last_answers == 0 or longer < LONGER_PHASE * lane.last_phase:
        guess = old * 2
        return (slowest, True) if lane.answers >= ENOUGH and slowest < guess else (guess, False)
    measured = longer / more if more > 0 else slowest
    return max(min(measured, slowest), old * NEXT_GUESS), True


def _slower(lane: Lane, factor: float, now: Moment, least: Seconds = SLOWEST_STEP) -> tuple[Seconds, Moment]:
    # Many visits in flight report the same problem: at most one step per second.
    if now < lane.slowed_at + 1.0:
        return lane.interval, lane.slowed_at
    return max(lane.interval, min(lane.ceiling, max(lane.interval, least) * factor)), now
