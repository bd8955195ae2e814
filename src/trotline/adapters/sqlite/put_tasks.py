"""Admission of tasks: each once, and none while draining."""

import json
from collections.abc import Sequence

from trotline.adapters.sqlite import chains
from trotline.adapters.sqlite.schema import CHAINED, DEAD, DELAYED, DRAINING, WAITING
from trotline.adapters.sqlite.transaction import Turn, gone
from trotline.model import task_json
from trotline.model.lease import Admission
from trotline.model.task import Task
from trotline.rules.chains import TALLY

_REFUSED = "refused: draining"
"""The tally of tasks refused by a draining job or lane."""


def admit(turn: Turn, tasks: Sequence[Task]) -> list[Admission]:
    """Mark as seen and enqueue in one transaction: otherwise a crash could lose URLs for ever."""
    if not tasks:
        return []
    known = _known(turn, tasks)
    # A batch of duplicates, the most common one, does not read the job.
    draining = len(known) < len(tasks) and _job_drains(turn)
    answers: list[Admission] = []
    fresh: list[Task] = []
    for task in tasks:
        if task.fingerprint in known:
            answers.append(Admission.DUPLICATE)
        elif draining or turn.lane_of(task).paused == DRAINING:
            # Not marked as seen: it may be admitted after a resume.
            answers.append(Admission.REFUSED)
            turn.tallies[_REFUSED] += 1
        else:
            known.add(task.fingerprint)
            fresh.append(task)
            answers.append(Admission.NEW)
    if fresh:
        _insert(turn, fresh)
    return answers


def _known(turn: Turn, tasks: Sequence[Task]) -> set[int]:
    numbers = json.dumps([task.fingerprint for task in tasks])
    found = turn.db.execute(
        "SELECT fingerprint FROM seen WHERE job = ? AND fingerprint IN (SELECT value FROM json_each(?))",
        (turn.job, numbers),
    )
    return {number for (number,) in found}


def _job_drains(turn: Turn) -> bool:
    row = turn.db.execute("SELECT paused FROM job WHERE id = ?", (turn.job,)).fetchone()
    if row is None:
        raise gone()
    return bool(row[0] == DRAINING)


_Row = tuple[int, int, int, int, float, int, int, bytes]
_INSERT = (
    "INSERT INTO task (job, lane, state, priority, due, attempt, fingerprint, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


def _insert(turn: Turn, tasks: list[Task]) -> None:
    rows: list[_Row] = []
    for task in tasks:
        if task.chain:
            # In the order of the call.
            turn.db.executemany(_INSERT, rows)
            rows.clear()
            _insert_step(turn, task)
            continue
        rows.append(_waiting(turn, task))
    turn.db.executemany(
        "INSERT INTO seen (job, fingerprint) VALUES (?, ?)", [(turn.job, task.fingerprint) for task in tasks]
    )
    turn.db.executemany(_INSERT, rows)
    turn.waiting += len(tasks)
    turn.reopen()


def _waiting(turn: Turn, task: Task) -> _Row:
    lane = turn.lane_of(task)
    lane.waiting += 1
    state = DELAYED if task.not_before > turn.now else WAITING
    if state == WAITING:
        turn.has_waiting(lane, task.priority)
    return _row(turn, task, lane.id, state)


def _insert_step(turn: Turn, task: Task) -> None:
    """A step is queued if its chain has no other one, waits behind those that it has, and dies if they do."""
    behind, why = chains.failure(turn, task.chain)
    if not behind:
        row = _waiting(turn, task)
    else:
        lane = turn.lane_of(task)
        row = _row(turn, task, lane.id, DEAD if why else CHAINED)
        lane.waiting += not why
    cursor = turn.db.execute(_INSERT, row)
    assert cursor.lastrowid is not None  # noqa: S101 - an INSERT always has one
    chains.join(turn, task.chain, cursor.lastrowid)
    if why:
        turn.db.execute("UPDATE task SET why = ?, died_at = ? WHERE id = ?", (why, turn.now, cursor.lastrowid))
        # It is counted as waiting with the others of the call.
        turn.waiting -= 1
        turn.dead += 1
        turn.tallies[TALLY] += 1


def _row(turn: Turn, task: Task, lane: int, state: int) -> _Row:
    body = task_json.encode(task)
    return turn.job, lane, state, task.priority, task.not_before, task.attempt, task.fingerprint, body
