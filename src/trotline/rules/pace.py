"""When a lane may be asked, and how its answers change that.

A lane hands out start moments that are at least `interval` apart. The interval moves between the spider's
bounds: slower on 429, 5xx and rising latency, back up slowly while answers are good. A lane that only fails
rests with growing pauses and is probed by one visit at a time. Every function takes the lane and gives a new one.
"""

import msgspec

from trotline.model.lease import LaneNews
from trotline.model.moments import Moment, Seconds
from trotline.model.pace import Pace
from trotline.model.verdict import Kind

BREAKER = 10
"""Failures in a row after which a lane rests."""
FIRST_REST: Seconds = 5.0
LONGEST_REST: Seconds = 600.0
THROTTLE_REST: Seconds = 2.0
"""Rest after a 429 that names no time."""
SLOWEST_STEP: Seconds = 0.01
"""A lane with no noticeable interval gets at least this one when it has to slow down."""
RETRY_ALLOWANCE = 10.0
"""Retries a lane may make beyond its share."""
RETRY_DRIP = 0.1
"""Retry credit per second: a lane with nothing but retries left still ends."""
NEVER: Moment = float("inf")

_RECOVER = 0.98
_RISING = 2.0
_DOUBLINGS = 20
"""Beyond that every rest is the longest one, and a power would overflow some day."""
_FAILED = frozenset({Kind.BROKEN, Kind.UNREACHABLE, Kind.BLOCKED})
"""A site that blocks us counts too: going on at full speed would burn every task, and the address with them."""


class Lane(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What the frontier remembers of a lane's pace."""

    floor: Seconds
    """The spider's interval: never faster."""
    ceiling: Seconds
    concurrency: int
    interval: Seconds
    next_start: Moment = 0.0
    rest_until: Moment = 0.0
    rest_why: str = ""
    failures: int = 0
    """In a row."""
    failing_since: Moment = 0.0
    rests: int = 0
    """Rests in a row; each is longer."""
    slowed_at: Moment = 0.0
    latency: Seconds = 0.0
    """Recent, quickly forgetting."""
    usual: Seconds = 0.0
    """Usual, slowly forgetting."""
    credit: float = RETRY_ALLOWANCE
    credited_at: Moment = 0.0


def open_lane(pace: Pace, now: Moment) -> Lane:
    floor = pace.rate.interval
    return Lane(
        floor=floor,
        ceiling=max(floor, pace.slowest.interval),
        concurrency=pace.concurrency,
        interval=floor,
        credited_at=now,
    )


def repaced(lane: Lane, pace: Pace, now: Moment, horizon: Seconds) -> Lane:
    """The lane under other bounds, from now on: what it learnt of its interval is forgotten, its rests are not.

    What is reserved stays reserved, and the next start keeps the new interval to the last of it. That last one is at
    most the horizon ahead, so a lane that was slow need not wait for the end of an interval it no longer has.
    """
    floor = pace.rate.interval
    later = max(0.0, floor - lane.interval)
    return msgspec.structs.replace(
        lane,
        floor=floor,
        ceiling=max(floor, pace.slowest.interval),
        concurrency=pace.concurrency,
        interval=floor,
        next_start=min(lane.next_start + later, now + horizon + floor),
        slowed_at=0.0,
    )


def allowed(lane: Lane) -> int:
    """Visits at the same time: one probe while the lane fails."""
    return 1 if lane.failures >= BREAKER else lane.concurrency


def reserve(lane: Lane, now: Moment, wanted: int, running: int, horizon: Seconds) -> tuple[list[Moment], Lane]:
    """Up to `wanted` start moments within the horizon, and the lane that has spent them."""
    count = min(wanted, allowed(lane) - running)
    start = max(now, lane.next_start, lane.rest_until)
    starts: list[Moment] = []
    while len(starts) < count and start <= now + horizon:
        starts.append(start)
        start += lane.interval
    if not starts:
        return starts, lane
    return starts, msgspec.structs.replace(lane, next_start=start)


def free_at(lane: Lane, running: int, horizon: Seconds) -> Moment:
    """From when on the lane may hand out a start; NEVER while all its places are taken."""
    if running >= allowed(lane):
        return NEVER
    return max(lane.rest_until, lane.next_start - horizon)


def learn(lane: Lane, news: LaneNews, now: Moment, chance: float) -> Lane:
    """The lane after a visit's news. `chance` in [0, 1) spreads the ends of rests."""
    if news.interval > lane.floor:
        asked = min(news.interval, max(lane.ceiling, lane.floor))
        lane = msgspec.structs.replace(lane, floor=asked, interval=max(lane.interval, asked))
    if news.kind is Kind.THROTTLED:
        return _throttled(lane, news, now, chance)
    if news.kind in _FAILED:
        return _failed(lane, news, now, chance)
    if news.kind is Kind.REFUSED:
        return lane
    return _answered(lane, news, now)


def _answered(lane: Lane, news: LaneNews, now: Moment) -> Lane:
    latency = news.took if lane.latency == 0 else lane.latency + (news.took - lane.latency) * 0.2
    usual = news.took if lane.usual == 0 else lane.usual + (news.took - lane.usual) * 0.02
    rising = latency > _RISING * usual + 0.05
    if rising:
        # Gently, from where it is: a lane without a noticeable interval is slowed by its own latency already.
        interval, slowed_at = _slower(lane, 1.1, now, least=0.0)
    else:
        interval, slowed_at = max(lane.floor, lane.interval * _RECOVER), lane.slowed_at
    healed = lane.failures > 0
    if not healed and interval == lane.interval and latency == lane.latency and usual == lane.usual:
        return lane
    return msgspec.structs.replace(
        lane,
        interval=interval,
        slowed_at=slowed_at,
        latency=latency,
        usual=usual,
        failures=0,
        failing_since=0.0,
        rests=0,
        rest_why="" if healed else lane.rest_why,
    )


def _throttled(lane: Lane, news: LaneNews, now: Moment, chance: float) -> Lane:
    interval, slowed_at = _slower(lane, 2.0, now)
    rest = news.rest or THROTTLE_REST * (1 + chance)
    why = f"they asked for {news.rest:.0f} s of quiet" if news.rest else "they said: too fast"
    return msgspec.structs.replace(
        lane,
        interval=interval,
        slowed_at=slowed_at,
        rest_until=max(lane.rest_until, now + rest),
        rest_why=why,
    )


def _failed(lane: Lane, news: LaneNews, now: Moment, chance: float) -> Lane:
    interval, slowed_at = _slower(lane, 1.25, now)
    failures = lane.failures + 1
    lane = msgspec.structs.replace(
        lane,
        interval=interval,
        slowed_at=slowed_at,
        failures=failures,
        failing_since=lane.failing_since or now,
    )
    if failures < BREAKER or now < lane.rest_until:
        return lane
    rest = min(LONGEST_REST, FIRST_REST * 2.0 ** min(lane.rests, _DOUBLINGS)) * (1 + 0.25 * chance)
    return msgspec.structs.replace(
        lane,
        rests=lane.rests + 1,
        rest_until=now + max(rest, news.rest),
        rest_why=f"{failures} failures in a row",
    )


def _slower(lane: Lane, factor: float, now: Moment, least: Seconds = SLOWEST_STEP) -> tuple[Seconds, Moment]:
    # Many visits in flight bring the same bad news: one step a second, or they would multiply.
    if now < lane.slowed_at + 1.0:
        return lane.interval, lane.slowed_at
    return max(lane.interval, min(lane.ceiling, max(lane.interval, least) * factor)), now


def given_up(lane: Lane, now: Moment, patience: Seconds) -> bool:
    """Has the lane only failed for longer than we are patient?"""
    return lane.failures >= BREAKER and now - lane.failing_since > patience


def forgiven(lane: Lane) -> Lane:
    """A lane that was given up, ready for work that comes later: one more failure opens the breaker again."""
    return msgspec.structs.replace(lane, failures=BREAKER - 1, failing_since=0.0, rests=0)


def credit(lane: Lane, now: Moment) -> float:
    """Retries the lane may start now."""
    return min(RETRY_ALLOWANCE, lane.credit + RETRY_DRIP * max(0.0, now - lane.credited_at))


def spend(lane: Lane, now: Moment, *, fresh: int, retries: int, share: float) -> Lane:
    """The lane after `fresh` first attempts and `retries` retries were handed out."""
    left = min(RETRY_ALLOWANCE, credit(lane, now) + share * fresh) - retries
    if left == lane.credit == RETRY_ALLOWANCE:
        # Full and unspent, as nearly always. Only then may the moment stay: else time would drip twice.
        return lane
    return msgspec.structs.replace(lane, credit=left, credited_at=now)


def credit_at(lane: Lane, now: Moment) -> Moment:
    """From when on the lane has credit for one more retry."""
    return now + max(0.0, 1.0 - credit(lane, now)) / RETRY_DRIP
