"""The rate limiter of a lane, its circuit breaker and its retry budget.

A lane reserves start times that are at least `interval` apart, for all jobs of its frontier together. `adaptive_pace`
changes the interval by the lane's answers, `lane_sharing` decides between jobs. Every function takes a lane and returns
a new one.
"""

import msgspec

from trotline.model.pace import FASTEST, Pace, Rate
from trotline.model.time import Moment, Seconds

BREAKER = 10
"""Circuit breaker: consecutive failures after which a lane rests."""
NEAR: Seconds = 0.2
"""A lane that was rate limited reserves starts at most this far ahead: they cannot be withdrawn at the next 429."""
ROBOTS_GOOD_FOR: Seconds = 24 * 3600.0
"""How long a robots.txt is valid."""
RETRY_ALLOWANCE = 10.0
"""Retries a failing lane may make beyond its share."""
RETRY_DRIP = 0.1
"""Retry credit per second, so that a failing lane with only retries left still ends."""
FAILING = 0.5
"""A lane with a larger share of failures in its recent visits is failing: its retries are limited."""
UNCAPPED = 1e9
MANY = 1_000_000
"""Concurrent visits of a lane without a limit."""
NEVER: Moment = float("inf")

PAUSE: Seconds = 5.0
"""A lane without requests for this long was idle: its limit cannot be measured over such a time."""


class Bounds(msgspec.Struct, frozen=True, array_like=True):
    """A pace as numbers."""

    floor: Seconds
    """The interval between two starts is never shorter."""
    ceiling: Seconds
    """Adaptation never makes it longer."""
    concurrency: int


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """The use of a lane by one job."""

    job: str
    bounds: Bounds
    used_at: Moment
    """Its last start, or its first request for one: from then on its bounds are in force for a while. 0: none yet."""
    wants_at: Moment = 0.0
    """It waits and may start from this moment on; NEVER: when a slot is released; 0: it does not wait."""


class Lane(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The state of a lane's rate limiter."""

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
    """Time of the first failure since the last good answer; 0: the last answer was good."""
    rests: int = 0
    """Consecutive rests; each is longer, and ends with one probe."""
    slowed_at: Moment = 0.0
    """When it was slowed down last."""
    latency: Seconds = 0.0
    """Fast moving average."""
    usual: Seconds = 0.0
    """Slow moving average of the latency."""
    trouble: float = 0.0
    """The share of failures in its recent visits."""
    credit: float = RETRY_ALLOWANCE
    credited_at: Moment = 0.0
    limit: Seconds = 0.0
    """The interval that the site is estimated to accept; 0: it never rate limited us."""
    sure: bool = False
    """Was the limit measured? Else it is a guess, and revised soon."""
    lost: Seconds = 0.0
    """Time from the 429 to the next good answer; 0: there was none yet."""
    phase_at: Moment = 0.0
    """Start of the phase: the time between two 429s."""
    answers: int = 0
    """Good answers in this phase."""
    last_answers: int = 0
    last_phase: Seconds = 0.0
    """Good answers and length of the previous phase."""
    asked: Seconds = 0.0
    """Crawl-delay of its robots.txt."""
    asked_at: Moment = 0.0
    """When robots.txt was fetched; 0: unknown."""
    ordered: Bounds | None = None
    """Bounds set by the operator, for all jobs."""
    claims: tuple[Claim, ...] = ()
    older: int = 0
    """Visits that began before its last rest and are still under way: a probe does not wait for them."""


def bounds_of(pace: Pace, pool: str = "") -> Bounds:
    """`pool`: of the lane. A rate "per proxy" is kept by each member of the pool: the lane itself has no floor, and no
    limit of concurrency unless one was set."""
    if pace.per_proxy and pool:
        floor = 1.0 / FASTEST
        concurrency = MANY if pace.concurrency == Pace().concurrency else pace.concurrency
    else:
        floor, concurrency = pace.rate.interval, pace.concurrency
    return Bounds(floor, max(floor, pace.slowest.interval), concurrency)


def pace_of(bounds: Bounds) -> Pace:
    """The inverse of `bounds_of`."""
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
    """The interval at full speed, by the bounds in force and, within them, by Crawl-delay."""
    return max(lane.floor, min(lane.asked, lane.ceiling))


def robots_known(lane: Lane, now: Moment) -> bool:
    return lane.asked_at > 0 and now < lane.asked_at + ROBOTS_GOOD_FOR


def allowed(lane: Lane, now: Moment, *, heeds: bool = False) -> int:
    """Concurrent visits. While the lane is probed, one beside those that began before its rest: a page that hangs would
    hold up the probe, and so the whole lane. For a job that obeys robots.txt, one until that is known."""
    if heeds and not robots_known(lane, now):
        return 1
    if _is_probed(lane):
        return min(lane.concurrency, lane.older + 1)
    return lane.concurrency


def _is_probed(lane: Lane) -> bool:
    return lane.rests > 0 or lane.failures >= BREAKER


def with_older(lane: Lane, running: int, before: Lane, running_before: int) -> Lane:
    """The lane after visits ended or began, with what is left of those from before its rest. Which ones ended is not
    known: while a probe is under way they count as older ones."""
    if lane.rests > before.rests:
        older = running
    elif _is_probed(lane):
        older = max(0, before.older - max(0, running_before - running))
    else:
        older = 0
    return lane if older == lane.older else msgspec.structs.replace(lane, older=older)


def reserve(
    lane: Lane, now: Moment, wanted: int, running: int, horizon: Seconds, *, heeds: bool = False
) -> tuple[list[Moment], Lane]:
    """Reserve up to `wanted` start times within the horizon."""
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
    """When the lane may reserve the next start; NEVER while all its slots are taken."""
    if running >= allowed(lane, now, heeds=heeds):
        return NEVER
    return max(lane.rest_until, lane.next_start - _ahead(lane, horizon))


def _ahead(lane: Lane, horizon: Seconds) -> Seconds:
    return min(horizon, NEAR) if lane.limit > 0 else horizon


def probed_now(lane: Lane, now: Moment) -> Lane:
    """Its rest is over: one probe goes out, and the next rest is longer if that fails."""
    return msgspec.structs.replace(lane, rest_until=now) if lane.rest_until > now else lane


def given_up(lane: Lane, now: Moment, patience: Seconds) -> str:
    """Why the lane is given up: only failures, or only 429s, for longer than `patience`. Empty: it is not."""
    if lane.failing_since == 0 or now - lane.failing_since <= patience:
        return ""
    if lane.failures >= BREAKER:
        return f"unreachable: lane given up after {patience:.0f} s of failures only"
    if lane.rests >= BREAKER:
        return f"throttled: lane given up after {patience:.0f} s of rate limiting only"
    return ""


def forgiven(lane: Lane) -> Lane:
    """A lane that was given up, ready for later tasks: one more failure opens the circuit breaker again."""
    return msgspec.structs.replace(lane, failures=BREAKER - 1, failing_since=0.0, rests=0)


def suspected(lane: Lane) -> Lane:
    """The site blocks all members of a proxy pool: the next failure opens the circuit breaker."""
    return msgspec.structs.replace(lane, failures=max(lane.failures, BREAKER - 1))


def probed(lane: Lane) -> bool:
    """Does the circuit breaker let out one probe at a time? It should be a task that has not failed before, if one
    waits: a page that always fails says little about the site."""
    return lane.failures >= BREAKER


def failing(lane: Lane) -> bool:
    """Do most of its recent visits fail?"""
    return lane.trouble > FAILING


def credit(lane: Lane, now: Moment) -> float:
    """Retries that the lane may start now; limited only for a failing lane."""
    if not failing(lane):
        return UNCAPPED
    return min(RETRY_ALLOWANCE, lane.credit + RETRY_DRIP * max(0.0, now - lane.credited_at))


def capped_credit(lane: Lane, now: Moment) -> float | None:
    """For operators: retries that a failing lane may start now; None: its retries are not limited."""
    return credit(lane, now) if failing(lane) else None


def spend(lane: Lane, now: Moment, *, fresh: int, retries: int, share: float) -> Lane:
    """The lane after `fresh` first attempts and `retries` retries were leased."""
    if not failing(lane):
        return lane
    left = min(RETRY_ALLOWANCE, credit(lane, now) + share * fresh) - retries
    return msgspec.structs.replace(lane, credit=left, credited_at=now)


def credit_at(lane: Lane, now: Moment) -> Moment:
    """When the lane has credit for one more retry."""
    return now + max(0.0, 1.0 - credit(lane, now)) / RETRY_DRIP
