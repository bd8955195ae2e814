"""Admission of tasks: each once, and none while draining."""

import json
from collections.abc import Sequence

from trotline.adapters.sqlite import chains
from trotline.adapters.sqlite.job_transaction import JobTransaction, gone
from trotline.adapters.sqlite.schema import CHAINED, DEAD, DELAYED, DRAINING, WAITING
from trotline.model import task_json
from trotline.model.lease import Admission
from trotline.model.task import Task
from trotline.rules.chain_failures import TALLY

_REFUSED = "refused: draining"
"""The tally of tasks refused by a draining job or lane."""


def admit(tx: JobTransaction, tasks: Sequence[Task]) -> list[Admission]:
    """Mark as seen and enqueue in one transaction: otherwise a crash could lose URLs for ever."""
    if not tasks:
        return []
    known = _known(tx, tasks)
    # A batch of duplicates, the most common one, does not read the job.
    draining = len(known) < len(tasks) and _job_drains(tx)
    answers: list[Admission] = []
    fresh: list[Task] = []
    for task in tasks:
        if task.fingerprint in known:
            answers.append(Admission.DUPLICATE)
        elif draining or tx.lane_of(task).paused == DRAINING:
            # Not marked as seen: it may be admitted after a resume.
            answers.append(Admission.REFUSED)
            tx.tallies[_REFUSED] += 1
        else:
            known.add(task.fingerprint)
            fresh.append(task)
            answers.append(Admission.NEW)
    if fresh:
        _insert(tx, fresh)
    return answers


def _known(tx: JobTransaction, tasks: Sequence[Task]) -> set[int]:
    numbers = json.dumps([task.fingerprint for task in tasks])
    found = tx.db.execute(
        "SELECT fingerprint FROM seen WHERE job = ? AND fingerprint IN (SELECT value FROM json_each(?))",
        (tx.job, numbers),
    )
    return {number for (number,) in found}


def _job_drains(tx: JobTransaction) -> bool:
    row = tx.db.execute("SELECT paused FROM job WHERE id = ?", (tx.job,)).fetchone()
    if row is None:
        raise gone()
    return bool(row[0] == DRAINING)


_Row = tuple[int, int, int, int, float, int, int, bytes]
_INSERT = (
    "INSERT INTO task (job, lane, state, priority, due, attempt, fingerprint, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


def _insert(tx: JobTransaction, tasks: list[Task]) -> None:
    rows: list[_Row] = []
    for task in tasks:
        if task.chain:
            # In the order of the call.
            tx.db.executemany(_INSERT, rows)
            rows.clear()
            _insert_step(tx, task)
            continue
        rows.append(_waiting(tx, task))
    tx.db.executemany(
        "INSERT INTO seen (job, fingerprint) VALUES (?, ?)", [(tx.job, task.fingerprint) for task in tasks]
    )
    tx.db.executemany(_INSERT, rows)
    tx.waiting += len(tasks)
    tx.reopen()


def _waiting(tx: JobTransaction, task: Task) -> _Row:
    lane = tx.lane_of(task)
    lane.waiting += 1
    state = DELAYED if task.not_before > tx.now else WAITING
    if state == WAITING:
        tx.has_waiting(lane, task.priority)
    return _row(tx, task, lane.id, state)


def _insert_step(tx: JobTransaction, task: Task) -> None:
    """A step is queued if its chain has no other one, waits behind those that it has, and dies if they do."""
    behind, why = chains.failure(tx, task.chain)
    if not behind:
        row = _waiting(tx, task)
    else:
        lane = tx.lane_of(task)
        row = _row(tx, task, lane.id, DEAD if why else CHAINED)
        lane.waiting += not why
    cursor = tx.db.execute(_INSERT, row)
    assert cursor.lastrowid is not None  # noqa: S101 - an INSERT always has one
    chains.join(tx, task.chain, cursor.lastrowid)
    if why:
        tx.db.execute("UPDATE task SET why = ?, died_at = ? WHERE id = ?", (why, tx.now, cursor.lastrowid))
        # It is counted as waiting with the others of the call.
        tx.waiting -= 1
        tx.dead += 1
        tx.tallies[TALLY] += 1


def _row(tx: JobTransaction, task: Task, lane: int, state: int) -> _Row:
    body = task_json.encode(task)
    return tx.job, lane, state, task.priority, task.not_before, task.attempt, task.fingerprint, body
