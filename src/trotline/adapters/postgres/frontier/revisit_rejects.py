"""Pages whose records failed validation, visited again."""

from collections.abc import Sequence

from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.frontier.schema import ID_BITS, MOST_AT_ONCE
from trotline.adapters.postgres.frontier.task_rows import TaskRow
from trotline.model import task_json
from trotline.model.time import Moment
from trotline.rules.counter_limits import bad_record

_CHOSEN = """
SELECT fingerprint, (array_agg(body ORDER BY id))[1] FROM reject
WHERE job = $1 AND body IS NOT NULL AND starts_with($2 || why, $3) AND ($4::bigint[] IS NULL OR id = ANY($4::bigint[]))
AND seen_at <= $6 GROUP BY fingerprint ORDER BY min(id) LIMIT $5
"""
_LARGEST = 18
"""Digits of a record's number."""


async def revisit_rejects(tx: JobTransaction, ids: Sequence[str], why: str, before: Moment) -> int:
    """Queue some of the pages of these rejected records again, and delete all their rejected records. The number of
    pages; 0: there are no more. `before`: only records that were rejected until then.

    `ids`: of records ("r17"); none: all whose reason starts with `why`.
    """
    numbers = [int(name[1:]) for name in ids if name.startswith("r") and name[1:].isdecimal() and len(name) <= _LARGEST]
    if ids and not numbers:
        return 0
    pages = await tx.db.fetch(_CHOSEN, tx.job, bad_record(""), why, numbers if ids else None, MOST_AT_ONCE, before)
    if not pages:
        return 0
    gone = await tx.db.fetch(
        "DELETE FROM reject WHERE job = $1 AND fingerprint = ANY($2::bigint[]) RETURNING 1",
        tx.job,
        [fingerprint for fingerprint, _ in pages],
    )
    tasks = [(fingerprint, body, task_json.decode(body)) for fingerprint, body in pages]
    await tx.lock_for([task for _, _, task in tasks])
    first = await tx.db.fetchval("SELECT nextval('task_id')") << ID_BITS
    for place, (fingerprint, body, task) in enumerate(tasks):
        lane = tx.lane_of(task).id
        tx.queue(TaskRow(first + place, lane, task.priority, 0, 0, 0, fingerprint, "", body))
    tx.tallies["records rejected"] -= len(gone)
    tx.done -= len(pages)
    tx.reopen()
    return len(pages)
