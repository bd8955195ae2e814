"""The operator's state, pace and budget for a job or a lane."""

import msgspec

from trotline.adapters.postgres.frontier.job_transaction import JobTransaction, living
from trotline.adapters.postgres.frontier.lane_row import LaneRow, decode_pace, encode_pace
from trotline.adapters.postgres.frontier.schema import CANCELLED, PAUSED, RUNNING
from trotline.adapters.postgres.pool import Connection
from trotline.model.job import Budget, LanePace, State
from trotline.model.pace import Pace
from trotline.model.time import Moment
from trotline.ports.frontier import HORIZON
from trotline.rules import frontier_views, lane_sharing, pace

STATES = (State.RUNNING, State.PAUSED, State.DRAINING, State.CANCELLED)
"""By the number in the column `paused`."""


async def want(tx: JobTransaction, lane: str | None, wanted: int) -> None:
    """Set the state of the job, or of one of its lanes (which cannot be cancelled)."""
    tx.woke = True
    if lane is None:
        await tx.db.execute("UPDATE job SET paused = $2, state_at = $3 WHERE id = $1", tx.job, wanted, tx.now)
        if wanted in (CANCELLED, PAUSED):
            await tx.release_lanes()
        return
    for row in await tx.lock_named(lane):
        await _want(tx, row, wanted)


async def _want(tx: JobTransaction, row: LaneRow, wanted: int) -> None:
    if wanted == RUNNING and row.paused == RUNNING and row.pace.rest_until > tx.now:
        row.pace = pace.probed_now(row.pace, tx.now)
        await _check_again(tx, row.pace_id)
    row.paused = wanted
    if wanted == PAUSED:
        row.pace = lane_sharing.withdrawn(row.pace, tx.name)
    await tx.db.execute("UPDATE lane SET paused = $2 WHERE id = $1", row.id, wanted)


async def cancel_lane(tx: JobTransaction, lane: str) -> int:
    """Bury the lane's waiting tasks; visits in flight continue. Returns the number."""
    return sum([await tx.bury_waiting(row, "cancelled") for row in await tx.lock_named(lane)])


async def set_budget(tx: JobTransaction, budget: Budget) -> None:
    packed = None if budget == Budget() else msgspec.json.encode(budget)
    await tx.db.execute("UPDATE job SET budget = $2 WHERE id = $1", tx.job, packed)
    tx.woke = True


async def set_pace(tx: JobTransaction, name: str, wanted: Pace | None) -> None:
    """For all jobs of the frontier, also later ones. Waiting lanes are checked again."""
    bounds = None if wanted is None else pace.bounds_of(wanted)
    await tx.db.execute(
        "INSERT INTO pace (name, lane) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        name,
        encode_pace(pace.open_lane(bounds or tx.bounds(name), tx.now)),
    )
    number, packed = await tx.db.fetchrow("SELECT id, lane FROM pace WHERE name = $1 FOR NO KEY UPDATE", name)
    lane = lane_sharing.ordered(decode_pace(packed), bounds, tx.now, HORIZON)
    await tx.db.execute("UPDATE pace SET lane = $2 WHERE id = $1", number, encode_pace(lane))
    await _check_again(tx, number)
    tx.woke = True


async def _check_again(tx: JobTransaction, pace_id: int) -> None:
    """Waiting lanes of all jobs that share this pace."""
    await tx.db.execute(
        "UPDATE turn SET ready_at = $2 WHERE ready_at > $2 AND lane = ANY(ARRAY("
        f"SELECT id FROM lane WHERE pace = $1 AND paused <> {PAUSED}))",
        pace_id,
        tx.now,
    )


async def lane_pace(db: Connection, name: str, now: Moment) -> LanePace | None:
    found = await db.fetchrow("SELECT running, lane FROM pace WHERE name = $1", name)
    if found is None:
        return None
    running, lane = found[0], decode_pace(found[1])
    claims = lane_sharing.in_force(lane, now, await living(db, [claim.job for claim in lane.claims]))
    return frontier_views.lane_pace(name, running, lane, claims, now)
