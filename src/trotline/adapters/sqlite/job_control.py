"""The operator's state and pace for a job or a lane."""

import sqlite3

from trotline.adapters.sqlite.job_transaction import JobTransaction, living
from trotline.adapters.sqlite.lane_row import LaneRow, decode_pace, encode_pace
from trotline.adapters.sqlite.schema import CANCELLED, FULL, PAUSED, READY, RESTING, RUNNING
from trotline.model.job import LanePace, State
from trotline.model.pace import Pace
from trotline.model.time import Moment
from trotline.ports.frontier import HORIZON
from trotline.rules import frontier_views, lane_sharing, pace

STATES = (State.RUNNING, State.PAUSED, State.DRAINING, State.CANCELLED)
"""By the number in the column `paused`."""


def want(tx: JobTransaction, lane: str | None, wanted: int) -> None:
    """Set the state of the job, or of one of its lanes (which cannot be cancelled)."""
    if lane is None:
        tx.db.execute("UPDATE job SET paused = ?, state_at = ? WHERE id = ?", (wanted, tx.now, tx.job))
        if wanted in (CANCELLED, PAUSED):
            tx.release_lanes()
        return
    for row in tx.lanes_named(lane):
        _want(tx, row, wanted)


def _want(tx: JobTransaction, row: LaneRow, wanted: int) -> None:
    if wanted == RUNNING and row.paused == RUNNING and row.pace.rest_until > tx.now:
        row.pace = pace.probed_now(row.pace, tx.now)
        _check_again(tx, row.pace_id)
        row.changed_elsewhere()
    row.paused = wanted
    if wanted == PAUSED:
        row.pace = lane_sharing.withdrawn(row.pace, tx.name)
    tx.db.execute("UPDATE lane SET paused = ? WHERE id = ?", (wanted, row.id))


def cancel_lane(tx: JobTransaction, lane: str) -> int:
    """Bury the lane's waiting tasks; visits in flight continue. Returns the number."""
    return sum(tx.bury_waiting(row, "cancelled") for row in tx.lanes_named(lane))


def set_pace(tx: JobTransaction, name: str, wanted: Pace | None) -> None:
    """For all jobs of the file, also later ones. Waiting lanes are checked again."""
    bounds = None if wanted is None else pace.bounds_of(wanted)
    found = tx.db.execute("SELECT id, lane FROM pace WHERE name = ?", (name,)).fetchone()
    if found is None:
        found = (None, encode_pace(pace.open_lane(bounds or tx.bounds(name), tx.now)))
    lane = lane_sharing.ordered(decode_pace(found[1]), bounds, tx.now, HORIZON)
    tx.db.execute(
        "INSERT INTO pace (id, name, lane) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET lane = excluded.lane",
        (found[0], name, encode_pace(lane)),
    )
    _check_again(tx, found[0])


def _check_again(tx: JobTransaction, pace_id: int) -> None:
    """Waiting lanes of all jobs that share this pace."""
    tx.db.execute(
        f"UPDATE lane SET state = {READY} WHERE pace = ? AND state IN ({RESTING}, {FULL})"
        f" AND paused <> {PAUSED} AND best IS NOT NULL",
        (pace_id,),
    )


def lane_pace(db: sqlite3.Connection, name: str, now: Moment) -> LanePace | None:
    found = db.execute("SELECT running, lane FROM pace WHERE name = ?", (name,)).fetchone()
    if found is None:
        return None
    running, lane = found[0], decode_pace(found[1])
    claims = lane_sharing.in_force(lane, now, living(db, [claim.job for claim in lane.claims]))
    return frontier_views.lane_pace(name, running, lane, claims, now)
