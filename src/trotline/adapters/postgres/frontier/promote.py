"""Delayed tasks that are due become waiting."""

from trotline.adapters.postgres.frontier.task_rows import TASK, TaskRow
from trotline.adapters.postgres.frontier.transaction import Turn

_AT_ONCE = 500
_DUE = f"""
DELETE FROM late_{{job}} WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM late_{{job}} WHERE due <= $1 ORDER BY due, id LIMIT {_AT_ONCE} FOR UPDATE SKIP LOCKED
)) RETURNING {TASK}
"""


async def promote(turn: Turn) -> int:
    """Returns their number. Those that another call promotes at the moment are left to it."""
    rows = [TaskRow(*row) for row in await turn.db.fetch(_DUE.format(job=turn.job), turn.now)]
    await turn.lock_lanes(row.lane for row in rows)
    for row in rows:
        turn.queue(row)
        # It is counted as waiting already.
        turn.lane(row.lane).waiting -= 1
    turn.waiting -= len(rows)
    return len(rows)
