"""Settles leases: admits children, applies the outcome and the lane feedback, atomically."""

import json
from collections.abc import Sequence
from random import Random

import msgspec

from trotline.adapters.sqlite import chains
from trotline.adapters.sqlite.job_transaction import LONGEST_TALLY, JobTransaction
from trotline.adapters.sqlite.lane_row import LaneRow
from trotline.adapters.sqlite.put_tasks import admit
from trotline.adapters.sqlite.schema import DELAYED, LEASED, TOKEN_BITS, WAITING
from trotline.model import task_json
from trotline.model.lease import LaneFeedback, Settled, Settlement
from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.rules import adaptive_pace, pace, proxy_ring
from trotline.rules.counter_limits import MOST_REJECTS, NOT_KEPT
from trotline.rules.retries import LATER_BY

_LONGEST_EXAMPLE = 500
_Row = tuple[int, int, int, int, int, int, int | None]
"""id, token, lane, priority, attempt, fingerprint, member"""


def settle(tx: JobTransaction, worker: str, settlements: Sequence[Settlement], chance: Random) -> list[Settled]:
    held = _held(tx, settlements)
    answers: list[Settled] = []
    done: list[tuple[int]] = []
    children: list[Task] = []
    failed = 0
    for settlement in settlements:
        # Popped: a lease that appears twice in one call is settled once.
        row = held.pop((settlement.lease.token, settlement.lease.task.fingerprint), None)
        if row is None:
            answers.append(Settled.STALE)
            continue
        _apply(tx, settlement, row, done, chance)
        failed += isinstance(settlement.outcome, Retry | Bury)
        children.extend(settlement.children)
        answers.append(Settled.OK)
    tx.db.executemany("DELETE FROM task WHERE id = ?", done)
    if done or failed:
        tx.db.execute(
            "UPDATE worker SET done = done + ?, failed = failed + ? WHERE job = ? AND id = ?",
            (len(done), failed, tx.job, worker),
        )
    admit(tx, children)
    return answers


def _held(tx: JobTransaction, settlements: Sequence[Settlement]) -> dict[tuple[int, int], _Row]:
    """The leased rows by token and fingerprint; a missing token is stale."""
    ids = json.dumps([settlement.lease.token >> TOKEN_BITS for settlement in settlements])
    rows = tx.db.execute(
        "SELECT id, token, lane, priority, attempt, fingerprint, member FROM task"
        f" WHERE id IN (SELECT value FROM json_each(?)) AND state = {LEASED} AND job = ?",
        (ids, tx.job),
    ).fetchall()
    return {(row[1], row[5]): row for row in rows}


def _apply(tx: JobTransaction, settlement: Settlement, row: _Row, done: list[tuple[int]], chance: Random) -> None:
    task_id, _, lane_id, priority, attempt, fingerprint, member = row
    lane = tx.lane(lane_id)
    lane.retry_at = 0.0
    outcome = settlement.outcome
    if isinstance(outcome, Done):
        lane.running -= 1
        tx.leased -= 1
        tx.done += 1
        done.append((task_id,))
        if settlement.lease.task.chain:
            chains.release_next(tx, task_id)
        tx.tallies[f"dropped: {outcome.why}" if outcome.why else "ok"] += 1
    elif isinstance(outcome, Retry):
        _wait_again(tx, lane, lane, task_id, priority + LATER_BY, outcome.wait)
        tx.db.execute("UPDATE task SET attempt = ? WHERE id = ?", (attempt + 1, task_id))
        tx.tallies[f"retry: {outcome.why}"] += 1
    elif isinstance(outcome, Snooze):
        target = lane if outcome.task is None else _move(tx, task_id, outcome.task, fingerprint, attempt)
        _wait_again(tx, lane, target, task_id, priority, outcome.wait)
        tx.tallies[f"snooze: {outcome.why}"] += 1
    elif isinstance(outcome, Bury):
        tx.bury_leased(task_id, lane_id, outcome.why, outcome.detail)
    news = settlement.news if member is None else _member_back(tx, lane, member, settlement, chance)
    if news is not None:
        lane.pace = adaptive_pace.learn(lane.pace, news, tx.now, chance.random())
    if settlement.tallies:
        tx.tallies.update(settlement.tallies)
    if settlement.examples:
        tx.db.executemany(
            "INSERT OR IGNORE INTO example (job, name, url) VALUES (?, ?, ?)",
            [(tx.job, name[:LONGEST_TALLY], url[:_LONGEST_EXAMPLE]) for name, url in settlement.examples.items()],
        )
    if settlement.rejects:
        _keep_rejects(tx, settlement, fingerprint)


def _member_back(
    tx: JobTransaction, lane: LaneRow, member: int, settlement: Settlement, chance: Random
) -> LaneFeedback | None:
    """Return the member of the proxy pool with its result; what is left for the lane's own pace to learn."""
    ring, news = tx.ring(lane), settlement.news
    before = ring.state
    retry_after = news.rest if news is not None else 0.0
    ring.give_back(member, settlement.member, retry_after=retry_after, chance=chance.random())
    if settlement.lift and proxy_ring.may_lift(before):
        ring.lift(settlement.lift)
    if ring.state.site_blocked and not before.site_blocked:
        lane.pace = pace.suspected(lane.pace)
    return proxy_ring.lane_feedback(settlement.member, news, ring.state)


def _wait_again(tx: JobTransaction, old: LaneRow, new: LaneRow, task_id: int, priority: int, wait: Seconds) -> None:
    state = DELAYED if wait > 0 else WAITING
    tx.db.execute(
        "UPDATE task SET state = ?, priority = ?, due = ?, worker = NULL, token = NULL, member = NULL WHERE id = ?",
        (state, priority, tx.now + wait, task_id),
    )
    old.running -= 1
    tx.leased -= 1
    new.waiting += 1
    tx.waiting += 1
    if state == WAITING:
        tx.has_waiting(new, priority)


def _move(tx: JobTransaction, task_id: int, moved: Task, fingerprint: int, attempt: int) -> LaneRow:
    """The same task continues under another URL, possibly in another lane."""
    lane = tx.lane_of(moved)
    task = msgspec.structs.replace(moved, fingerprint=fingerprint, attempt=attempt)
    tx.db.execute("UPDATE task SET lane = ?, body = ? WHERE id = ?", (lane.id, task_json.encode(task), task_id))
    return lane


def _keep_rejects(tx: JobTransaction, settlement: Settlement, fingerprint: int) -> None:
    """Bounded, so that a wrong handler does not fill the disk: further rejects are only counted."""
    task = settlement.lease.task
    body = task_json.encode(task)
    [kept] = tx.db.execute("SELECT count(*) FROM reject WHERE job = ?", (tx.job,)).fetchone()
    rows = settlement.rejects[: max(0, MOST_REJECTS - kept)]
    tx.db.executemany(
        "INSERT INTO reject (job, fingerprint, url, route, kind, why, data, seen_at, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (tx.job, fingerprint, task.url, task.route, reject.kind, reject.why, reject.data, tx.now, body)
            for reject in rows
        ],
    )
    if len(rows) < len(settlement.rejects):
        tx.tallies[NOT_KEPT] += len(settlement.rejects) - len(rows)
    tx.tallies["records rejected"] += len(settlement.rejects)
