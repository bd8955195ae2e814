"""What an operator wants of a job or of a lane, and how it is written down."""

from trotline.adapters.sqlite.turn import Turn
from trotline.model.job import State
from trotline.model.pace import Pace
from trotline.ports.frontier import HORIZON
from trotline.rules import pace as paces

STATES = (State.RUNNING, State.PAUSED, State.DRAINING, State.CANCELLED)
"""By the number in the column `paused`."""


def want(turn: Turn, lane: str | None, wanted: int) -> None:
    """The job, or one lane of it, is to run, to pause, to drain, or (the job alone) to end."""
    if lane is None:
        turn.db.execute("UPDATE job SET paused = ? WHERE id = ?", (wanted, turn.job))
        return
    row = turn.lane_named(lane)
    row.paused = wanted
    turn.db.execute("UPDATE lane SET paused = ? WHERE id = ?", (wanted, row.id))


def cancel_lane(turn: Turn, lane: str) -> int:
    """What waits in the lane is buried; what is in flight may end. How many were buried."""
    return turn.bury_waiting(turn.lane_named(lane), "cancelled")


def set_pace(turn: Turn, lane: str, pace: Pace) -> None:
    row = turn.lane_named(lane)
    row.pace = paces.repaced(row.pace, pace, turn.now, HORIZON)
