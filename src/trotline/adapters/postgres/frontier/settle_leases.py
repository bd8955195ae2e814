"""Settles leases: admits children, applies the outcome and the lane feedback, atomically."""

from collections.abc import Sequence
from random import Random

import msgspec

from trotline.adapters.postgres.frontier import chains, put_tasks
from trotline.adapters.postgres.frontier.database import CLOCK
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.frontier.lane_row import LaneRow
from trotline.adapters.postgres.frontier.put_tasks import level_of
from trotline.adapters.postgres.frontier.task_rows import HELD, Held, TaskRow
from trotline.adapters.postgres.frontier.write_transaction import LONGEST_TALLY
from trotline.model import task_json
from trotline.model.lease import LaneFeedback, Settled, Settlement
from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.model.task import Task
from trotline.rules import adaptive_pace, pace, proxy_ring
from trotline.rules.counter_limits import MOST_REJECTS, NOT_KEPT
from trotline.rules.retries import LATER_BY

_LONGEST_EXAMPLE = 500
_TAKE = f"""
DELETE FROM held h USING unnest($1::bigint[], $2::bigint[]) u (key, print)
WHERE h.token = u.key AND h.fp = u.print AND h.job + 0 = $3
RETURNING {HELD}, (SELECT coalesce($4::float8, {CLOCK}))
"""
"""The fingerprint, too: a server that crashed may repeat tokens that it had not flushed. With "+ 0" the planner cannot
choose to read all leases of the job."""

_ADD_REJECTS = """
INSERT INTO reject (job, seen_at, fingerprint, url, route, body, kind, why, data)
SELECT $1, $2, * FROM unnest($3::bigint[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::text[], $9::text[])
"""


async def settle(tx: JobTransaction, worker: str, settlements: Sequence[Settlement], chance: Random) -> list[Settled]:
    held = await _take(tx, settlements)
    valid: list[tuple[Settlement, Held]] = []
    answers: list[Settled] = []
    for settlement in settlements:
        # Popped: a lease that appears twice in one call is settled once.
        row = held.pop((settlement.lease.token, settlement.lease.task.fingerprint), None)
        answers.append(Settled.STALE if row is None else Settled.OK)
        if row is not None:
            valid.append((settlement, row))
    if valid:
        await _settle(tx, worker, valid, chance)
    return answers


async def _take(tx: JobTransaction, settlements: Sequence[Settlement]) -> dict[tuple[int, int], Held]:
    """The leased rows by token and fingerprint, deleted; a missing one is stale. Sets the transaction's time."""
    pairs = sorted({(each.lease.token, each.lease.task.fingerprint) for each in settlements})
    if not pairs:
        return {}
    rows = await tx.db.fetch(
        _TAKE, [token for token, _ in pairs], [print_ for _, print_ in pairs], tx.job, tx.given_now
    )
    if rows:
        tx.now = rows[0][-1]
    found = [Held(*row[:-1]) for row in rows]
    return {(row.token, row.fp): row for row in found}


async def _settle(tx: JobTransaction, worker: str, valid: Sequence[tuple[Settlement, Held]], chance: Random) -> None:
    children = [child for settlement, _ in valid for child in settlement.children]
    fresh = await put_tasks.mark(tx, children) if children else None
    new = [task for task in children if fresh is not None and task.fingerprint in fresh.fingerprints]
    await chains.lock(tx, {row.chain for _, row in valid if row.chain} | {task.chain for task in new if task.chain})
    following = await chains.take_next(tx, [row for row in _ending(valid, Done) if row.chain])
    behind = await chains.lanes_behind(tx, {row.chain for row in _ending(valid, Bury) if row.chain})
    lanes = {*(row.lane for _, row in valid), *(step.row.lane for step in following), *behind}
    await tx.lock_for((*new, *_moved(valid)), lanes)
    await tx.return_members(row for _, row in valid)
    done: list[Held] = []
    failed = 0
    for settlement, row in valid:
        await _apply(tx, settlement, row, chance)
        failed += isinstance(settlement.outcome, Retry | Bury)
        if isinstance(settlement.outcome, Done):
            done.append(row)
    await _keep_examples(tx, valid)
    await _keep_rejects(tx, valid)
    chains.queue_next(tx, following)
    if done or failed:
        tx.worker_ends[worker] = (len(done), failed)
    if fresh is not None:
        await put_tasks.enqueue(tx, children, fresh)


def _ending(valid: Sequence[tuple[Settlement, Held]], kind: type[Done | Bury]) -> list[Held]:
    return [row for settlement, row in valid if isinstance(settlement.outcome, kind)]


def _moved(valid: Sequence[tuple[Settlement, Held]]) -> list[Task]:
    outcomes = [settlement.outcome for settlement, _ in valid]
    return [outcome.task for outcome in outcomes if isinstance(outcome, Snooze) and outcome.task is not None]


async def _apply(tx: JobTransaction, settlement: Settlement, row: Held, chance: Random) -> None:
    lane = tx.lane(row.lane)
    lane.retry_at = 0.0
    outcome = settlement.outcome
    if isinstance(outcome, Bury):
        await tx.bury_leased(row, outcome.why, outcome.detail)
    else:
        lane.running -= 1
        tx.leased -= 1
    tx.woke = True
    if isinstance(outcome, Done):
        tx.done += 1
        tx.tallies[f"dropped: {outcome.why}" if outcome.why else "ok"] += 1
    elif isinstance(outcome, Retry):
        again = row.row(level=level_of(row.level + LATER_BY), attempts=1)
        tx.queue(again, tx.now + outcome.wait if outcome.wait > 0 else 0.0)
        tx.tallies[f"retry: {outcome.why}"] += 1
    elif isinstance(outcome, Snooze):
        again = row.row() if outcome.task is None else _move(tx, row, outcome.task)
        tx.queue(again, tx.now + outcome.wait if outcome.wait > 0 else 0.0)
        tx.tallies[f"snooze: {outcome.why}"] += 1
    news = settlement.news if row.member is None else await _member_back(tx, lane, row.member, settlement, chance)
    if news is not None:
        lane.pace = adaptive_pace.learn(lane.pace, news, tx.now, chance.random())
    if settlement.tallies:
        tx.tallies.update(settlement.tallies)


async def _member_back(
    tx: JobTransaction, lane: LaneRow, member: int, settlement: Settlement, chance: Random
) -> LaneFeedback | None:
    """Return the member of the proxy pool with its result; what is left for the lane's own pace to learn."""
    ring, news = await tx.ring(lane, member), settlement.news
    before = ring.state
    retry_after = news.rest if news is not None else 0.0
    await ring.give_back(member, settlement.member, retry_after=retry_after, chance=chance.random())
    if settlement.lift and proxy_ring.may_lift(before):
        await ring.lift(settlement.lift)
    if ring.state.site_blocked and not before.site_blocked:
        lane.pace = pace.suspected(lane.pace)
    return proxy_ring.lane_feedback(settlement.member, news, ring.state)


def _move(tx: JobTransaction, row: Held, moved: Task) -> TaskRow:
    """The same task continues under another URL, possibly in another lane."""
    task = msgspec.structs.replace(moved, fingerprint=row.fp, attempt=row.attempt)
    lane = tx.lane_of(moved)
    return row.row()._replace(lane=lane.id, body=task_json.encode(task))


async def _keep_examples(tx: JobTransaction, valid: Sequence[tuple[Settlement, Held]]) -> None:
    """The first URL of a tally; names that have one are not written again."""
    known = tx.store.examples
    found: dict[str, str] = {}
    for settlement, _ in valid:
        for name, url in settlement.examples.items():
            if (name := name[:LONGEST_TALLY]) not in known:
                found.setdefault(name, url[:_LONGEST_EXAMPLE])
    if found:
        await tx.db.execute(
            "INSERT INTO example (job, name, url) SELECT $1, * FROM unnest($2::text[], $3::text[])"
            " ON CONFLICT DO NOTHING",
            tx.job,
            sorted(found),
            [found[name] for name in sorted(found)],
        )
        tx.noted.update(found)


async def _keep_rejects(tx: JobTransaction, valid: Sequence[tuple[Settlement, Held]]) -> None:
    """Bounded, so that a wrong handler does not fill the disk: further rejects are only counted."""
    given = [(settlement.lease.task, row.fp, reject) for settlement, row in valid for reject in settlement.rejects]
    if not given:
        return
    kept = await tx.db.fetchval("SELECT count(*) FROM reject WHERE job = $1", tx.job)
    rows = [
        (fp, task.url, task.route, task_json.encode(task), reject.kind, reject.why, reject.data)
        for task, fp, reject in given[: max(0, MOST_REJECTS - kept)]
    ]
    if rows:
        await tx.db.execute(_ADD_REJECTS, tx.job, tx.now, *(list(column) for column in zip(*rows, strict=True)))
    if len(rows) < len(given):
        tx.tallies[NOT_KEPT] += len(given) - len(rows)
    tx.tallies["records rejected"] += len(given)
