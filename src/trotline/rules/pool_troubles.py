"""Why tasks of a lane with a proxy pool wait: what operators should know about the pool."""

from collections.abc import Collection, Sequence
from enum import StrEnum

import msgspec

from trotline.model.job import LaneView, State, WorkerView
from trotline.model.proxy_pool import LanePoolView, pool_of, without_pool
from trotline.model.time import Seconds


class Trouble(StrEnum):
    NOT_SERVED = "not served"
    """No live worker takes the tasks of the pool."""
    EMPTY = "empty"
    """A worker serves the pool, and its list is empty."""
    SITE_BLOCKED = "site blocked"
    """The site blocks all members; the lane is probed."""
    RESTING = "resting"
    """All members rest for the lane."""
    DOWN = "down"
    """All members fail by themselves, whatever the lane."""


class PoolTrouble(msgspec.Struct, frozen=True, kw_only=True):
    pool: str
    lane: str
    host: str
    """The lane without the pool."""
    trouble: Trouble
    members: int = 0
    resting: int = 0
    banned: int = 0
    down: int = 0
    logins: int = 0
    """Accounts at rest whose logins the site rejected; 0: it is not that, or not only that."""
    back_in: Seconds = 0.0
    """Until the next visit: the first member is back, or the next probe."""


def served_by(crew: Collection[WorkerView]) -> set[str] | None:
    """The pools that these workers serve; None: there is no worker, or one that has not reported its pools yet."""
    if not crew or not all(worker.about.pools for worker in crew):
        return None
    return {pool for worker in crew for pool in worker.about.pools}


def in_question(lane: LaneView) -> bool:
    """Could its pool be why it waits? Lanes that are being visited are not looked at: that costs time."""
    waits = lane.waiting > 0 and lane.state is State.RUNNING
    return waits and bool(pool_of(lane.lane)) and (lane.leased == 0 or lane.rests_for > 0)


def trouble_of(
    lane: LaneView,
    ring: LanePoolView,
    down: int = 0,
    down_for: Seconds = 0.0,
    served: Collection[str] | None = None,
    *,
    only_logins: bool = False,
) -> PoolTrouble | None:
    """`down`: members that fail by themselves, `down_for`: until the first is tried again. `served`: the pools of the
    live workers; None: not known. `only_logins`: all bans of the pool are rejected logins."""
    pool = pool_of(lane.lane)
    found = _trouble(pool, ring, down, served)
    if found is None:
        return None
    return PoolTrouble(
        pool=pool,
        lane=lane.lane,
        host=without_pool(lane.lane),
        trouble=found,
        members=ring.members,
        resting=ring.resting,
        banned=ring.banned,
        down=down,
        logins=ring.banned if only_logins and found in (Trouble.SITE_BLOCKED, Trouble.RESTING) else 0,
        back_in=down_for if found is Trouble.DOWN else max(ring.first_back, lane.rests_for),
    )


def holds_all(lanes: Sequence[LaneView], troubles: Collection[PoolTrouble], waiting: int) -> bool:
    """Is the pool of every lane that has tasks to visit in trouble? `lanes`: those that stand out; `waiting`: the tasks
    of all lanes."""
    troubled = {trouble.lane for trouble in troubles}
    found = {lane.lane for lane in lanes if lane.waiting and lane.state is State.RUNNING}
    return bool(found) and found <= troubled and not any(lane.leased for lane in lanes) and are_all(lanes, waiting)


def are_all(lanes: Sequence[LaneView], waiting: int) -> bool:
    """Have other lanes no tasks? Views look at a few lanes only, resting ones first."""
    return sum(lane.waiting for lane in lanes) >= waiting


def _trouble(pool: str, ring: LanePoolView, down: int, served: Collection[str] | None) -> Trouble | None:
    if served is not None and pool not in served:
        return Trouble.NOT_SERVED
    if not ring.members:
        # Before its first worker has registered it, a pool is empty, too.
        return Trouble.EMPTY if served is not None else None
    if ring.site_blocked:
        return Trouble.SITE_BLOCKED
    if down >= ring.members:
        return Trouble.DOWN
    # Members that only wait for their interval are the pace of the lane, not a trouble.
    if ring.in_flight == 0 and ring.first_back > 0 and ring.banned + down > 0:
        return Trouble.RESTING
    return None
