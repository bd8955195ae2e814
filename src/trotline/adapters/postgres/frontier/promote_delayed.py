"""Delayed tasks that are due become waiting."""

from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.frontier.task_rows import TASK, TaskRow

_AT_ONCE = 500
_DUE = "SELECT DISTINCT lane FROM (SELECT lane FROM late_{job} WHERE due <= $1 ORDER BY due, id LIMIT $2) d"
_TAKE = f"""
DELETE FROM late_{{job}} WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM late_{{job}} WHERE due <= $1 AND lane = ANY($3::bigint[]) ORDER BY due, id LIMIT $2
)) RETURNING {TASK}
"""


async def promote(tx: JobTransaction) -> int:
    """Returns their number. Never waits: those of lanes that others have locked are left to the next call."""
    lanes = await tx.db.fetch(_DUE.format(job=tx.job), tx.now, _AT_ONCE)
    free = await tx.lock_free(row[0] for row in lanes)
    if not free:
        return 0
    taken = await tx.db.fetch(_TAKE.format(job=tx.job), tx.now, _AT_ONCE, free)
    rows = [TaskRow(*row) for row in taken]
    for row in rows:
        tx.queue(row)
        # It is counted as waiting already.
        tx.lane(row.lane).later -= 1
    tx.waiting -= len(rows)
    return len(rows)
