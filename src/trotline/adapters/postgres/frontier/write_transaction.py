"""Writes the changes of a transaction in one statement: each part is a data-modifying WITH query."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trotline.adapters.postgres.frontier import task_rows
from trotline.adapters.postgres.frontier.combined_statement import Part, composed
from trotline.adapters.postgres.frontier.errors import gone
from trotline.adapters.postgres.frontier.lane_row import PaceRow, TurnWrite, encode_pace
from trotline.rules.counter_limits import MOST_NAMES, folded

if TYPE_CHECKING:
    from trotline.adapters.postgres.frontier.job_transaction import JobTransaction

LONGEST_TALLY = 100

_CHANGE_TURN = """
UPDATE turn t SET
    waiting = t.waiting + u.queued,
    level = CASE WHEN u.exact THEN u.level ELSE least(t.level, u.level) END,
    position = CASE WHEN u.exact OR u.level < t.level THEN u.position
        WHEN u.level = t.level THEN least(t.position, u.position) ELSE t.position END,
    ready_at = CASE WHEN u.ready_at > n.now OR t.ready_at > n.now OR u.served IS NOT NULL THEN u.ready_at
        ELSE t.ready_at END,
    served = coalesce(u.served, t.served)
FROM (SELECT %s::float8 AS now) n, unnest(%s::bigint[], %s::integer[], %s::bigint[], %s::boolean[],
    %s::float8[], %s::bigint[], %s::bigint[]) u (lane, level, position, exact, ready_at, served, queued)
WHERE t.lane = u.lane AND (u.level IS NOT NULL OR u.ready_at <> t.ready_at)
RETURNING t.lane
"""
"""A lane that is ready keeps its time, and so its turn, unless it was served."""
_READY_AGAIN = """
UPDATE turn SET ready_at = %s::float8 WHERE lane = ANY(%s::bigint[]) AND ready_at > %s::float8
"""
"""The short form, for lanes in which nothing changed but that they may run."""
_ADD_TURN = """
INSERT INTO turn (job, served, lane, pool, pace, level, position, ready_at, waiting)
SELECT $1::integer, u.position - (1::bigint << 62), u.* FROM unnest($2::bigint[], $3::text[], $4::bigint[],
    $5::integer[], $6::bigint[], $7::float8[], $8::bigint[]) u (lane, pool, pace, level, position, ready_at, waiting)
"""
"""Lanes that become ready at the same moment have their turns in the order in which their tasks came, and before those
that were served at that moment."""
_HANDED = """
INSERT INTO held (job, worker, leased_at, token, task, lane, level, attempt, deaths, kills, member, chain, fp, body,
    starts_at)
SELECT %s::integer, %s::text, %s::float8, * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::integer[],
    %s::integer[], %s::integer[], %s::integer[], %s::bigint[], %s::text[], %s::bigint[], %s::bytea[], %s::float8[])
"""
_HANDED_UNTRIED = """
INSERT INTO held (attempt, deaths, kills, member, chain, job, worker, leased_at, token, task, lane, level, fp, body,
    starts_at)
SELECT 0, 0, 0, NULL::bigint, '', %s::integer, %s::text, %s::float8, * FROM unnest(%s::bigint[], %s::bigint[],
    %s::bigint[], %s::integer[], %s::bigint[], %s::bytea[], %s::float8[])
"""
"""The short form, for tasks that are leased for the first time, without a member of a pool and without a chain."""


async def write(tx: "JobTransaction", turns: Sequence[TurnWrite]) -> None:
    parts = [
        *tx.more,
        *_task_parts(tx),
        *_lane_parts(tx),
        *_worker_parts(tx),
        *await _tally_parts(tx),
    ]
    answers = ["1", "false", "NULL"]
    if tx.waiting or tx.leased or tx.done or tx.dead or tx.leases:
        answers[0] = f"(SELECT count(*) FROM p{len(parts)})"
        parts.append(_counter_part(tx))
    if tx.woke:
        answers[1] = f"EXISTS (SELECT 1 FROM idle WHERE job = {tx.job} AND until > %s)"
    parts += _turn_parts(tx, turns)
    if filled := _filled(turns):
        answers[2] = f"ARRAY(SELECT lane FROM p{len(parts) - 1})"
    if parts:
        last = f"SELECT {', '.join(answers)}"
        row = await tx.db.fetchrow(*composed(parts, last, [tx.now] if tx.woke else []))
        if not row[0]:
            raise gone()
        tx.idle = tx.idle or row[1]
        if filled and (added := [each for each in filled if each.lane not in set(row[2])]):
            await _add_turns(tx, added)
    if tx.reopened:
        tx.reopened = False
        await tx.db.execute(
            "UPDATE job SET announced = false, finished_at = NULL WHERE id = $1 AND finished_at IS NOT NULL", tx.job
        )
    _clear(tx)


def _task_parts(tx: "JobTransaction") -> list[Part]:
    parts: list[Part] = []
    if tx.taken:
        parts.append((f"DELETE FROM waiting_{tx.job} WHERE ctid = ANY(%s::tid[])", [tx.taken]))
    if tx.handed:
        columns = [list(column) for column in zip(*tx.handed, strict=True)]
        attempts, deaths, kills, members, chains = columns[4:9]
        if any(attempts) or any(deaths) or any(kills) or any(chains) or any(one is not None for one in members):
            parts.append((_HANDED, [tx.job, tx.worker, tx.now, *columns]))
        else:
            parts.append((_HANDED_UNTRIED, [tx.job, tx.worker, tx.now, *columns[:4], *columns[9:]]))
    if tx.new:
        parts.append(task_rows.add_waiting(tx.job, tx.new))
    if tx.late:
        parts.append(task_rows.add_late(tx.job, tx.late))
    if tx.chained:
        parts.append(task_rows.add_late(tx.job, tx.chained, "chained"))
    if tx.graves:
        parts.append(task_rows.add_graves(tx.job, tx.graves))
    return parts


def _lane_parts(tx: "JobTransaction") -> list[Part]:
    parts: list[Part] = []
    lanes = [lane for lane in tx.lanes if lane.lane_changed]
    if lanes:
        parts.append(
            (
                "UPDATE lane SET later = lane.later + u.later, waits = u.waits"
                " FROM unnest(%s::bigint[], %s::bigint[], %s::smallint[]) u (id, later, waits)"
                " WHERE lane.id = u.id",
                [[lane.id for lane in lanes], [lane.later for lane in lanes], [lane.waits for lane in lanes]],
            )
        )
    changed = [pace for pace in tx.paces if pace.changed]
    in_place = [pace for pace in changed if pace.place is not None]
    if in_place:
        parts.append(_pace_part("ctid", "tid", [pace.place for pace in in_place], in_place))
    if elsewhere := [pace for pace in changed if pace.place is None]:
        parts.append(_pace_part("id", "bigint", [pace.id for pace in elsewhere], elsewhere))
    return parts


def _pace_part(column: str, kind: str, keys: Sequence[object], paces: Sequence[PaceRow]) -> Part:
    return (
        "UPDATE pace SET running = u.running, lane = u.lane"
        f" FROM unnest(%s::{kind}[], %s::integer[], %s::bytea[]) u (key, running, lane) WHERE pace.{column} = u.key",
        [keys, [pace.running for pace in paces], [encode_pace(pace.pace) for pace in paces]],
    )


def _turn_parts(tx: "JobTransaction", turns: Sequence[TurnWrite]) -> list[Part]:
    """The last part, if there is one, returns the lanes that have a row."""
    parts: list[Part] = []
    empty = [each.lane for each in turns if each.exact and each.level is None]
    if empty:
        parts.append(("DELETE FROM turn WHERE lane = ANY(%s::bigint[])", [empty]))
    kept = [each for each in turns if not each.exact or each.level is not None]
    ready = [each.lane for each in kept if each.level is None and not each.queued and each.ready_at <= tx.now]
    if ready:
        parts.append((_READY_AGAIN, [tx.now, sorted(ready), tx.now]))
    changed = [each for each in kept if each.level is not None or each.queued or each.ready_at > tx.now]
    if changed:
        parts.append(
            (
                _CHANGE_TURN,
                [
                    tx.now,
                    [each.lane for each in changed],
                    [each.level for each in changed],
                    [each.position for each in changed],
                    [each.exact for each in changed],
                    [each.ready_at for each in changed],
                    [each.served for each in changed],
                    [each.queued for each in changed],
                ],
            )
        )
    return parts


def _filled(turns: Sequence[TurnWrite]) -> list[TurnWrite]:
    """Lanes that have tasks now; those that had none before need a row."""
    return [each for each in turns if each.level is not None and each.served is None]


async def _add_turns(tx: "JobTransaction", added: Sequence[TurnWrite]) -> None:
    await tx.db.execute(
        _ADD_TURN,
        tx.job,
        [each.lane for each in added],
        [each.pool for each in added],
        [each.pace for each in added],
        [each.level for each in added],
        [each.position for each in added],
        [each.ready_at for each in added],
        [each.queued for each in added],
    )


def _worker_parts(tx: "JobTransaction") -> list[Part]:
    return [
        (
            "UPDATE worker SET done = done + %s::bigint, failed = failed + %s::bigint WHERE job = %s AND id = %s",
            [done, failed, tx.job, worker],
        )
        for worker, (done, failed) in tx.worker_ends.items()
    ]


async def _tally_parts(tx: "JobTransaction") -> list[Part]:
    counts: dict[str, int] = {}
    for name, count in tx.tallies.items():
        if count:
            counts[name[:LONGEST_TALLY]] = counts.get(name[:LONGEST_TALLY], 0) + count
    if not counts:
        return []
    known = tx.store.tallies
    if not known.issuperset(counts):
        rows = await tx.db.fetch("SELECT DISTINCT name FROM tally WHERE job = $1", tx.job)
        known.update(row[0] for row in rows)
        for name in [name for name in counts if name not in known]:
            if len(known) < MOST_NAMES:
                known.add(name)
            else:
                like = folded(name)
                counts[like] = counts.get(like, 0) + counts.pop(name)
    names = sorted(counts)
    return [
        (
            "INSERT INTO tally (job, stripe, name, n) SELECT %s::integer, %s::smallint, *"
            " FROM unnest(%s::text[], %s::bigint[])"
            " ON CONFLICT (job, name, stripe) DO UPDATE SET n = tally.n + excluded.n",
            [tx.job, tx.store.stripe, names, [counts[name] for name in names]],
        )
    ]


def _counter_part(tx: "JobTransaction") -> Part:
    return (
        "UPDATE counter SET waiting = waiting + %s::bigint, leased = leased + %s::bigint, done = done + %s::bigint,"
        " dead = dead + %s::bigint, leases = leases + %s::bigint WHERE job = %s::integer AND stripe = %s::smallint"
        " RETURNING 1",
        [tx.waiting, tx.leased, tx.done, tx.dead, tx.leases, tx.job, tx.store.stripe],
    )


def _clear(tx: "JobTransaction") -> None:
    """A later flush of the transaction adds only what comes after."""
    tx.waiting = tx.leased = tx.done = tx.dead = tx.leases = 0
    tx.tallies.clear()
    tx.worker_ends.clear()
    for rows in (tx.new, tx.late, tx.chained, tx.graves, tx.taken, tx.handed, tx.more):
        rows.clear()
    for lane in tx.lanes:
        lane.written()
