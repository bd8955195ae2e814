"""Gives buried tasks a fresh start."""

from collections.abc import Sequence

from trotline.adapters.postgres.frontier import chains
from trotline.adapters.postgres.frontier.graveyard import fingerprint_of
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.frontier.schema import MOST_AT_ONCE
from trotline.adapters.postgres.frontier.task_rows import TASK, TaskRow
from trotline.model import task_json
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.rules.revive_with_other_pool import moved

_Risen = tuple[TaskRow, Task | None]
"""A task as it was buried, with the attempts and the level of a new one; and the task itself, if its lane changes."""


async def revive(tx: JobTransaction, ids: Sequence[str], why: str, pool: str | None, before: Moment) -> int:
    """Some of those with these ids, or of all, of which the reason starts with `why` and that died before a time. The
    number; 0: there are no more. `pool`: their proxy pool from now on."""
    chosen = await _chosen(tx, ids, why, before)
    if not chosen:
        return 0
    followers = await _followers(tx, chosen)
    heads = [_fresh(row, pool) for row in chosen if row.id not in followers]
    others = [_fresh(row, pool) for row in chosen if row.id in followers]
    await tx.lock_for([task for _, task in (*heads, *others) if task], {row.lane for row in chosen})
    for row, task in heads:
        tx.queue(row._replace(lane=tx.lane_of(task).id) if task else row)
    for row, task in others:
        tx.queue_chained(row._replace(lane=tx.lane_of(task).id) if task else row)
    tx.dead -= len(chosen)
    tx.reopen()
    return len(chosen)


async def _chosen(tx: JobTransaction, ids: Sequence[str], why: str, before: Moment) -> list[TaskRow]:
    """Removed from the graveyard; with all dead steps of their chains."""
    condition, more = ("AND fp = ANY($4::bigint[])", [list(map(fingerprint_of, ids))]) if ids else ("", [])
    rows = await tx.db.fetch(
        f"DELETE FROM grave_{tx.job} WHERE id = ANY(ARRAY(SELECT id FROM grave_{tx.job}"
        f" WHERE starts_with(why, $1) AND died_at <= $2 {condition} ORDER BY died_at, id LIMIT $3)) RETURNING {TASK}",
        why,
        before,
        MOST_AT_ONCE,
        *more,
    )
    names = sorted({row["chain"] for row in rows if row["chain"]})
    if names:
        await chains.lock(tx, names)
        # A step of a chain comes back with the one that failed, and with all that were buried for it.
        rows += await tx.db.fetch(
            f"DELETE FROM grave_{tx.job} WHERE id = ANY(ARRAY(SELECT task FROM step WHERE job = $1"
            f" AND chain = ANY($2::text[]))) RETURNING {TASK}",
            tx.job,
            names,
        )
    return sorted(TaskRow(*row) for row in rows)


async def _followers(tx: JobTransaction, rows: Sequence[TaskRow]) -> set[int]:
    """Those of these tasks that have an earlier step of their chain before them."""
    names = sorted({row.chain for row in rows if row.chain})
    if not names:
        return set()
    found = await tx.db.fetch(
        "SELECT task FROM step s WHERE job = $1 AND chain = ANY($2::text[]) AND EXISTS"
        " (SELECT 1 FROM step e WHERE e.job = s.job AND e.chain = s.chain AND e.task < s.task)",
        tx.job,
        names,
    )
    return {row[0] for row in found}


def _fresh(row: TaskRow, pool: str | None) -> _Risen:
    level, elsewhere, body = 0, None, row.body
    try:
        task = task_json.decode(row.body)
    except task_json.Undecodable:
        pass
    else:
        level = task.priority
        if pool is not None:
            elsewhere = moved(task, pool)
            body = task_json.encode(elsewhere)
    return TaskRow(row.id, row.lane, level, 0, 0, 0, row.fp, row.chain, body), elsewhere
