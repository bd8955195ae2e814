"""The status of a task."""

import sqlite3
from collections.abc import Sequence

from trotline.adapters.sqlite.schema import DEAD, DELAYED, LEASED, WAITING
from trotline.model import task_json
from trotline.model.job import TaskStatus
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.rules import redaction

_STATES = {WAITING: "waiting", DELAYED: "delayed", LEASED: "leased", DEAD: "dead"}


def whereabouts(db: sqlite3.Connection, job: int, task: Task, now: Moment, redact: Sequence[str]) -> TaskStatus:
    """By its fingerprint, in any lane. A table scan: an index would cost every task, for a rare query."""
    found = db.execute(
        "SELECT state, due, attempt, worker, why, body FROM task WHERE job = ? AND fingerprint = ?",
        (job, task.fingerprint),
    ).fetchone()
    if found is None:
        return _without_a_row(db, job, task)
    state, due, attempt, worker, why, body = found
    if state == DELAYED and due <= now:
        # Due; the next lease promotes it.
        state = WAITING
    parent, created_at = _origin(body)
    return TaskStatus(
        state=_STATES[state],
        due_in=due - now if state == DELAYED else 0.0,
        attempt=attempt,
        parent=redaction.url(parent, redact),
        created_at=created_at,
        worker=worker or "",
        why=why or "",
    )


def _without_a_row(db: sqlite3.Connection, job: int, task: Task) -> TaskStatus:
    seen = db.execute("SELECT 1 FROM seen WHERE job = ? AND fingerprint = ?", (job, task.fingerprint)).fetchone()
    return TaskStatus(state="ended" if seen else "unknown")


def _origin(body: bytes) -> tuple[str, Moment]:
    try:
        task = task_json.decode(body)
    except task_json.Undecodable:
        return "", 0.0
    return task.parent, task.created_at
