"""The status of a task."""

import sqlite3
from collections.abc import Sequence

from trotline.adapters.sqlite.chains import url_of
from trotline.adapters.sqlite.schema import CHAINED, DEAD, DELAYED, LEASED, WAITING
from trotline.model import task_json
from trotline.model.job import TaskStatus
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.rules import chain_failures, redaction

_STATES = {WAITING: "waiting", DELAYED: "delayed", LEASED: "leased", DEAD: "dead", CHAINED: "waiting"}


def whereabouts(db: sqlite3.Connection, job: int, task: Task, now: Moment, redact: Sequence[str]) -> TaskStatus:
    """By its fingerprint, in any lane. A table scan: an index would cost every task, for a rare query."""
    found = db.execute(
        "SELECT id, state, due, attempt, worker, why, body FROM task WHERE job = ? AND fingerprint = ?",
        (job, task.fingerprint),
    ).fetchone()
    if found is None:
        return _without_a_row(db, job, task)
    task_id, state, due, attempt, worker, why, body = found
    if state == DELAYED and due <= now:
        # Due; the next lease promotes it.
        state = WAITING
    parent, created_at = _origin(body)
    chain, before = _step_before(db, task_id) if state == CHAINED else ("", "")
    return TaskStatus(
        state=_STATES[state],
        due_in=due - now if state == DELAYED else 0.0,
        attempt=attempt,
        parent=redaction.url(parent, redact),
        created_at=created_at,
        worker=worker or "",
        why=chain_failures.shown(why or "", redact),
        chain=chain,
        waits_for=redaction.url(before, redact),
    )


def _step_before(db: sqlite3.Connection, task_id: int) -> tuple[str, str]:
    """The chain of a step, and the URL of the step in front of it."""
    chain, body = db.execute(
        "SELECT s.chain, t.body FROM step own"
        " JOIN step s ON s.job = own.job AND s.chain = own.chain AND s.task < own.task"
        " JOIN task t ON t.id = s.task WHERE own.task = ? ORDER BY s.task DESC LIMIT 1",
        (task_id,),
    ).fetchone()
    return chain, url_of(body)


def _without_a_row(db: sqlite3.Connection, job: int, task: Task) -> TaskStatus:
    seen = db.execute("SELECT 1 FROM seen WHERE job = ? AND fingerprint = ?", (job, task.fingerprint)).fetchone()
    return TaskStatus(state="ended" if seen else "unknown")


def _origin(body: bytes) -> tuple[str, Moment]:
    try:
        task = task_json.decode(body)
    except task_json.Undecodable:
        return "", 0.0
    return task.parent, task.created_at
