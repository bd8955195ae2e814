"""When a lane may be asked.

A lane hands out start moments that are at least `interval` apart, to all jobs of its frontier together. How its answers
change that is in `learning`, whose bounds hold when several jobs use it in `sharing`. Every function takes the lane
and gives a new one.
"""

import msgspec

from trotline.model.pace import Pace, Rate
from trotline.model.time import Moment, Seconds

BREAKER = 10
"""Failures in a row after which a lane rests."""
NEAR: Seconds = 0.2
"""A lane that was throttled hands out starts this far ahead and no farther: what is handed out cannot be taken back
when it says once more that it is too much."""
ROBOTS_GOOD_FOR: Seconds = 24 * 3600.0
"""What robots.txt said is known for so long."""
RETRY_ALLOWANCE = 10.0
"""Retries a failing lane may make beyond its share."""
RETRY_DRIP = 0.1
"""Retry credit per second: a failing lane with nothing but retries left still ends."""
FAILING = 0.5
"""A lane with a larger share of failures among its recent visits is failing, and its retries are capped."""
UNCAPPED = 1e9
NEVER: Moment = float("inf")

PAUSE: Seconds = 5.0
"""A lane that is not asked for so long had nothing to do: what it admits cannot be told from such a time."""


class Bounds(msgspec.Struct, frozen=True, array_like=True):
    """A pace as numbers."""

    floor: Seconds
    """The interval between two starts is never shorter."""
    ceiling: Seconds
    """Adapting never makes it longer."""
    concurrency: int


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """What one job wants of a lane that it may share with others."""

    job: str
    bounds: Bounds
    used_at: Moment
    """Its last start there, or when it wanted its first: from then on its bounds are in force, for a while. 0: it
    has not got that far."""
    wants_at: Moment = 0.0
    """It waits, and may start from this moment on: NEVER, when somebody gives a place back; 0, it does not wait."""


class Lane(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What the frontier remembers of a lane's pace."""

    floor: Seconds
    """Of the bounds in force."""
    ceiling: Seconds
    concurrency: int
    interval: Seconds
    next_start: Moment = 0.0
    rest_until: Moment = 0.0
    rest_why: str = ""
    failures: int = 0
    """In a row."""
    failing_since: Moment = 0.0
    """It has not had a good answer since then; 0: its last answer was a good one."""
    rests: int = 0
    """Rests in a row; each is longer, and ends with one probe."""
    slowed_at: Moment = 0.0
    """When it slowed down last."""
    latency: Seconds = 0.0
    """Recent, quickly forgetting."""
    usual: Seconds = 0.0
    """Usual, slowly forgetting."""
    trouble: float = 0.0
    """The share of failures among its recent visits."""
    credit: float = RETRY_ALLOWANCE
    credited_at: Moment = 0.0
    limit: Seconds = 0.0
    """The interval that the site is thought to admit; 0: it never said that we are too fast."""
    sure: bool = False
    """Was the limit measured? Else it is a guess, and the next one is made soon."""
    lost: Seconds = 0.0
    """How long it took to be let in again when the limit was found; 0: it is not let in yet."""
    phase_at: Moment = 0.0
    """Since when it is let in: the time before it says once more that we are too fast is a phase."""
    answers: int = 0
    """Good ones in this phase."""
    last_answers: int = 0
    last_phase: Seconds = 0.0
    """How long the phase before was, and how many good answers it had."""
    asked: Seconds = 0.0
    """Crawl-delay of its robots.txt."""
    asked_at: Moment = 0.0
    """When robots.txt was known; 0: nobody has told us."""
    ordered: Bounds | None = None
    """The operator's word: it holds for every job."""
    claims: tuple[Claim, ...] = ()


def bounds_of(pace: Pace) -> Bounds:
    floor = pace.rate.interval
    return Bounds(floor, max(floor, pace.slowest.interval), pace.concurrency)


def pace_of(bounds: Bounds) -> Pace:
    """The pace that these are the numbers of."""
    return Pace(Rate(1.0 / bounds.floor), bounds.concurrency, Rate(1.0 / bounds.ceiling))


def open_lane(bounds: Bounds, now: Moment) -> Lane:
    return Lane(
        floor=bounds.floor,
        ceiling=bounds.ceiling,
        concurrency=bounds.concurrency,
        interval=bounds.floor,
        credited_at=now,
    )


def shortest(lane: Lane) -> Seconds:
    """The interval at full speed: as the bounds in force and robots.txt say, the latter within the bounds."""
    return max(lane.floor, min(lane.asked, lane.ceiling))


def robots_known(lane: Lane, now: Moment) -> bool:
    return lane.asked_at > 0 and now < lane.asked_at + ROBOTS_GOOD_FOR


def allowed(lane: Lane, now: Moment, *, heeds: bool = False) -> int:
    """Visits at the same time. One, if the lane has to prove that it answers; or that it is known how often it may be
    asked, for a job that heeds robots.txt."""
    if lane.rests > 0 or lane.failures >= BREAKER or (heeds and not robots_known(lane, now)):
        return 1
    return lane.concurrency


def reserve(
    lane: Lane, now: Moment, wanted: int, running: int, horizon: Seconds, *, heeds: bool = False
) -> tuple[list[Moment], Lane]:
    """Up to `wanted` start moments within the horizon, and the lane that has spent them."""
    count = min(wanted, allowed(lane, now, heeds=heeds) - running)
    start = max(now, lane.next_start, lane.rest_until)
    latest = now + _ahead(lane, horizon)
    starts: list[Moment] = []
    while len(starts) < count and start <= latest:
        starts.append(start)
        start += lane.interval
    if not starts:
        return starts, lane
    if lane.limit > 0 and now > max(lane.next_start, lane.rest_until) + PAUSE:
        lane = msgspec.structs.replace(lane, phase_at=now, answers=0)
    return starts, msgspec.structs.replace(lane, next_start=start)


def free_at(lane: Lane, now: Moment, running: int, horizon: Seconds, *, heeds: bool = False) -> Moment:
    """From when on the lane may hand out a start; NEVER while all its places are taken."""
    if running >= allowed(lane, now, heeds=heeds):
        return NEVER
    return max(lane.rest_until, lane.next_start - _ahead(lane, horizon))


def _ahead(lane: Lane, horizon: Seconds) -> Seconds:
    return min(horizon, NEAR) if lane.limit > 0 else horizon


def given_up(lane: Lane, now: Moment, patience: Seconds) -> str:
    """Why the lane is given up: it has only failed, or only said "too fast", for longer than we are patient. Empty: it
    is not."""
    if lane.failing_since == 0 or now - lane.failing_since <= patience:
        return ""
    if lane.failures >= BREAKER:
        return f"unreachable: lane given up after {patience:.0f} s of failures only"
    if lane.rests >= BREAKER:
        return f"throttled: lane given up after {patience:.0f} s in which it answered nothing but: too fast"
    return ""


def forgiven(lane: Lane) -> Lane:
    """A lane that was given up, ready for work that comes later: one more failure opens the breaker again."""
    return msgspec.structs.replace(lane, failures=BREAKER - 1, failing_since=0.0, rests=0)


def failing(lane: Lane) -> bool:
    """Do most of its visits fail?"""
    return lane.trouble > FAILING


def credit(lane: Lane, now: Moment) -> float:
    """Retries the lane may start now. Only a failing lane has to count them."""
    if not failing(lane):
        return UNCAPPED
    return min(RETRY_ALLOWANCE, lane.credit + RETRY_DRIP * max(0.0, now - lane.credited_at))


def spend(lane: Lane, now: Moment, *, fresh: int, retries: int, share: float) -> Lane:
    """The lane after `fresh` first attempts and `retries` retries were handed out."""
    if not failing(lane):
        return lane
    left = min(RETRY_ALLOWANCE, credit(lane, now) + share * fresh) - retries
    return msgspec.structs.replace(lane, credit=left, credited_at=now)


def credit_at(lane: Lane, now: Moment) -> Moment:
    """From when on the lane has credit for one more retry."""
    return now + max(0.0, 1.0 - credit(lane, now)) / RETRY_DRIP
