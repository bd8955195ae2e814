"""Finds the lanes that may run now, and locks them. Never waits for a lock."""

from collections.abc import Sequence
from typing import NamedTuple

from trotline.adapters.postgres.frontier.database import CLOCK
from trotline.adapters.postgres.frontier.errors import gone
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.frontier.lane_row import COLUMNS, LaneRow
from trotline.adapters.postgres.frontier.schema import CANCELLED, PAUSED
from trotline.model.time import Moment, Seconds
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules import pace

_SPARE = 8
"""Lanes that are looked at beyond those wanted: others may have locked some."""

_LOOKED_AT = 10
"""Workers that may die next: of more, others look often enough."""
_AGAIN: Seconds = 1.0
_HELD_UP: Seconds = 4.0
_LEVELS = """
    levels AS (
        SELECT u.pool, (SELECT t.level FROM turn t WHERE t.job = $1 AND t.pool = u.pool ORDER BY t.level LIMIT 1)
            AS level FROM unnest($2::text[]) u (pool)
        UNION ALL
        SELECT v.pool, (SELECT t.level FROM turn t WHERE t.job = $1 AND t.pool = v.pool AND t.level > v.level
            ORDER BY t.level LIMIT 1) FROM levels v WHERE v.level IS NOT NULL
    )
"""
"""Each level once, with one look into the index each."""
_PICK = f"""
WITH RECURSIVE n AS MATERIALIZED (SELECT coalesce($3::float8, {CLOCK}) AS now), {_LEVELS},
c AS MATERIALIZED (
    SELECT x.* FROM levels v CROSS JOIN LATERAL (
        SELECT t.lane, t.pace, t.level, t.ready_at, t.served FROM turn t
        WHERE t.job = $1 AND t.pool = v.pool AND t.level = v.level AND t.ready_at <= (SELECT now FROM n)
        ORDER BY t.ready_at, t.served LIMIT $4 + {_SPARE}
    ) x
    WHERE v.level IS NOT NULL ORDER BY x.level, x.ready_at, x.served LIMIT $4 + {_SPARE}
)
SELECT {COLUMNS}, c.level, c.ready_at, c.served, (SELECT now FROM n), (SELECT nextval('token')),
    (SELECT budget IS NOT NULL FROM job WHERE id = $1)
FROM c JOIN lane l ON l.id = c.lane JOIN pace p ON p.id = c.pace
WHERE (SELECT paused FROM job WHERE id = $1) NOT IN ({PAUSED}, {CANCELLED})
    AND ($5 OR NOT EXISTS (SELECT 1 FROM late_{{job}} WHERE due <= (SELECT now FROM n)))
ORDER BY c.level, c.ready_at, c.served LIMIT $4 FOR NO KEY UPDATE OF p SKIP LOCKED
"""
"""The order is asked for, not left to the plan: with other statistics another table would be read first."""
_NOTHING = f"""
WITH RECURSIVE n AS MATERIALIZED (SELECT coalesce($3::float8, {CLOCK}) AS now), {_LEVELS}
SELECT j.finished_at IS NOT NULL OR j.paused = {CANCELLED}, j.sealed, j.budget IS NOT NULL, j.paused = {PAUSED},
    (SELECT now FROM n), c.waiting, c.leased,
    (SELECT due FROM late_{{job}} ORDER BY due LIMIT 1),
    (SELECT min(x.ready_at) FROM levels v CROSS JOIN LATERAL (
        SELECT t.ready_at FROM turn t WHERE t.job = $1 AND t.pool = v.pool AND t.level = v.level
        ORDER BY t.ready_at LIMIT 1) x WHERE v.level IS NOT NULL),
    CASE WHEN c.leased > 0 THEN (
        SELECT min(o.beat_at) FROM (SELECT id, beat_at FROM worker WHERE job = $1 ORDER BY beat_at LIMIT {_LOOKED_AT}) o
        WHERE EXISTS (SELECT 1 FROM held h WHERE h.job = $1 AND h.worker = o.id)) END
FROM job j, (SELECT sum(waiting)::bigint AS waiting, sum(leased)::bigint AS leased FROM counter WHERE job = $1) c
WHERE j.id = $1
"""
"""Why no lane was found. With nothing leased nobody looks at all workers, of which there may be a thousand."""


class Batch(NamedTuple):
    lanes: list[LaneRow]
    token: int
    """The first token, to be filled up."""
    budget: bool


class Nothing(NamedTuple):
    """Why there is nothing to lease."""

    may_be_over: bool
    """The job may be finished, cancelled, or its budget spent."""
    due: bool
    """Delayed tasks are due."""
    skipped: bool
    """Lanes may run, but other calls had locked them."""
    wake: Moment
    """When the next task may be leased, or when to look again."""
    death: Moment
    """When leases of a worker have to be rescued, should it not beat again."""
    empty: bool
    """No task waits."""
    now: Moment


async def pick(tx: JobTransaction, pools: Sequence[str], limit: int, *, ignore_due: bool) -> Batch | None:
    """Locks up to `limit` lanes, by best level and then by the time since their last turn; sets the transaction's time.
    None: there are none, or delayed tasks are due and not to be ignored."""
    rows = await tx.db.fetch(_PICK.format(job=tx.job), tx.job, pools, tx.given_now, limit, ignore_due)
    if not rows:
        return None
    tx.now = rows[0][13]
    rows.sort(key=lambda row: (row[10], row[11], row[12]))
    lanes = [tx.keep(row[:10]) for row in rows]
    tx.store.known.add(rows)
    for lane in lanes:
        lane.touched = False
    return Batch(lanes, rows[0][14], rows[0][15])


async def nothing(tx: JobTransaction, pools: Sequence[str]) -> Nothing:
    row = await tx.db.fetchrow(_NOTHING.format(job=tx.job), tx.job, pools, tx.given_now)
    if row is None:
        raise gone()
    over, sealed, budget, paused, now, waiting, leased, due, ready_at, beat_at = row
    tx.now = now
    wake = min(pace.NEVER if due is None else due, pace.NEVER if ready_at is None else ready_at)
    death = pace.NEVER if beat_at is None else beat_at + DEAD_AFTER
    wake = min(wake, max(now + _AGAIN, death))
    if waiting:
        # Something holds them up, such as leases of another job's dead workers.
        wake = min(wake, now + _HELD_UP)
    return Nothing(
        may_be_over=over or budget or (sealed and not waiting + leased),
        due=due is not None and due <= now,
        skipped=ready_at is not None and ready_at <= now and not paused,
        wake=pace.NEVER if paused else wake,
        death=death,
        empty=not waiting,
        now=now,
    )
