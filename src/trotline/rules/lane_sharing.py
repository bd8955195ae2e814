"""A lane shared by several jobs of a frontier: which rate limit applies, and which job goes next.

Each job claims the lanes that it uses, with the pace of its spider. The slowest pace in force applies, unless the
operator sets another.
"""

import msgspec

from trotline.model.time import Moment, Seconds
from trotline.rules.pace import NEVER, Bounds, Claim, Lane, open_lane, shortest

IN_FORCE: Seconds = 60.0
"""A job's bounds are in force for this long after its last start, or for two of its intervals, if that is longer."""
YIELD: Seconds = 0.25
"""The job that had the last turn yields to a waiting job for this long."""
PORTION: Seconds = 0.1
"""In a shared lane a turn has as many starts as fit into this time."""
FORGETS: Seconds = 600.0
"""The adaptive state of a lane that was unused for this long is reset."""


def claimed(
    lane: Lane, job: str, bounds: Bounds, now: Moment, horizon: Seconds, living: frozenset[str] | None = None
) -> Lane:
    """The lane with this job's bounds among those in force. `living`: the jobs that have not ended; None: unknown."""
    if len(lane.claims) == 1 and lane.claims[0].job == job and lane.claims[0].bounds == bounds:
        # Fast path: the only job.
        if now > max(lane.next_start, lane.rest_until) + FORGETS:
            lane = msgspec.structs.replace(_forgotten(lane, bounds, now), claims=lane.claims)
        return rebound(lane, lane.ordered or bounds, now, horizon)
    others = [each for each in lane.claims if each.job != job and _there(each, now, living)]
    own = claim_of(lane, job)
    if own is None:
        own = Claim(job, bounds, now)
    elif own.bounds != bounds or not _counts(own, now):
        own = msgspec.structs.replace(own, bounds=bounds, used_at=now)
    if not others and now > max(lane.next_start, lane.rest_until) + FORGETS:
        lane = _forgotten(lane, bounds, now)
    if lane.claims != (own, *others):
        lane = msgspec.structs.replace(lane, claims=(own, *others))
    in_force = [bounds, *(each.bounds for each in others if _counts(each, now))]
    return rebound(lane, lane.ordered or _slowest(in_force), now, horizon)


def used(lane: Lane, job: str, now: Moment) -> Lane:
    """The lane after a start of this job, which has a claim."""
    if len(lane.claims) == 1:
        return msgspec.structs.replace(lane, claims=(Claim(job, lane.claims[0].bounds, now),))
    claims = tuple(
        msgspec.structs.replace(claim, used_at=now, wants_at=0.0) if claim.job == job else claim
        for claim in lane.claims
    )
    return msgspec.structs.replace(lane, claims=claims)


def waits(lane: Lane, job: str, bounds: Bounds, free_at: Moment) -> Lane:
    """The lane when this job has to wait until `free_at`."""
    own = claim_of(lane, job) or Claim(job, bounds, used_at=0.0)
    others = tuple(claim for claim in lane.claims if claim.job != job)
    if own.wants_at == free_at or (not others and free_at != NEVER):
        return lane
    return msgspec.structs.replace(lane, claims=(msgspec.structs.replace(own, wants_at=free_at), *others))


def withdrawn(lane: Lane, job: str) -> Lane:
    """The lane after this job was paused in it: its bounds are not in force, and it waits for no turn."""
    claims = tuple(
        msgspec.structs.replace(claim, used_at=0.0, wants_at=0.0) if claim.job == job else claim
        for claim in lane.claims
    )
    return msgspec.structs.replace(lane, claims=claims)


def freed(lane: Lane, job: str, now: Moment) -> Lane:
    """The lane after this job released a slot: waiting jobs may start from now on."""
    if all(claim.wants_at != NEVER or claim.job == job for claim in lane.claims):
        return lane
    claims = tuple(
        msgspec.structs.replace(claim, wants_at=now) if claim.wants_at == NEVER else claim for claim in lane.claims
    )
    return msgspec.structs.replace(lane, claims=claims)


def yields_until(lane: Lane, job: str, now: Moment) -> Moment:
    """Until when this job, which has a claim, yields to another one; 0: it is its turn."""
    if len(lane.claims) == 1:
        return 0.0
    own = claim_of(lane, job)
    last = own.used_at if own else 0.0
    return max(
        (
            claim.wants_at + YIELD
            for claim in lane.claims
            if claim.job != job and claim.used_at < last and 0 < claim.wants_at <= now < claim.wants_at + YIELD
        ),
        default=0.0,
    )


def portion(lane: Lane, job: str, wanted: int) -> int:
    """How many starts the job, which has a claim, gets in one turn: all, if it is alone."""
    if len(lane.claims) == 1:
        return wanted
    return min(wanted, max(1, int(PORTION / lane.interval)))


def ordered(lane: Lane, bounds: Bounds | None, now: Moment, horizon: Seconds) -> Lane:
    """The lane with the operator's bounds, or without them (None). Its adapted interval is reset, its rests are not."""
    lane = msgspec.structs.replace(lane, ordered=bounds)
    in_force = [claim.bounds for claim in lane.claims if _counts(claim, now)]
    # Without claims the bounds stay until the next one.
    wanted = bounds or (_slowest(in_force) if in_force else Bounds(lane.floor, lane.ceiling, lane.concurrency))
    return rebound(lane, wanted, now, horizon, forget=True)


def rebound(lane: Lane, bounds: Bounds, now: Moment, horizon: Seconds, *, forget: bool = False) -> Lane:
    """The lane within these bounds, from now on.

    Reserved starts stay, and the next one keeps the new interval to the last of them, which is at most the horizon
    ahead: a lane that was slow does not wait for the end of its old interval.
    """
    if not forget and (bounds.floor, bounds.ceiling, bounds.concurrency) == (
        lane.floor,
        lane.ceiling,
        lane.concurrency,
    ):
        return lane
    before, learnt = lane.interval, lane.interval > shortest(lane)
    lane = msgspec.structs.replace(lane, floor=bounds.floor, ceiling=bounds.ceiling, concurrency=bounds.concurrency)
    interval = shortest(lane)
    if learnt and not forget:
        interval = min(max(before, interval), lane.ceiling)
    if forget:
        lane = msgspec.structs.replace(lane, limit=0.0, lost=0.0, slowed_at=0.0)
    start = min(lane.next_start + max(0.0, interval - before), now + horizon + interval)
    return msgspec.structs.replace(lane, interval=interval, next_start=start)


def claim_of(lane: Lane, job: str) -> Claim | None:
    return next((claim for claim in lane.claims if claim.job == job), None)


def in_force(lane: Lane, now: Moment, living: frozenset[str] | None = None) -> list[Claim]:
    """The claims in force, for operators."""
    return [claim for claim in lane.claims if _counts(claim, now) and (living is None or claim.job in living)]


def _counts(claim: Claim, now: Moment) -> bool:
    return claim.used_at > 0 and now <= claim.used_at + max(IN_FORCE, 2 * claim.bounds.floor)


def _there(claim: Claim, now: Moment, living: frozenset[str] | None) -> bool:
    """Is the claim in force, or waiting?"""
    if living is not None and claim.job not in living:
        return False
    return _counts(claim, now) or now <= claim.wants_at + YIELD


def _slowest(bounds: list[Bounds]) -> Bounds:
    return Bounds(
        max(each.floor for each in bounds),
        max(each.ceiling for each in bounds),
        min(each.concurrency for each in bounds),
    )


def _forgotten(lane: Lane, bounds: Bounds, now: Moment) -> Lane:
    """The lane without its adaptive state; Crawl-delay and the operator's bounds stay."""
    return msgspec.structs.replace(
        open_lane(bounds, now),
        next_start=lane.next_start,
        asked=lane.asked,
        asked_at=lane.asked_at,
        ordered=lane.ordered,
    )
