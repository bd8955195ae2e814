"""The status of a task."""

from collections.abc import Sequence

from trotline.adapters.postgres.pool import Connection
from trotline.model import task_json
from trotline.model.job import TaskStatus
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.rules import chain_failures, redaction

_FOUND = """
SELECT 'waiting' AS state, id, 0::float8 AS due, attempt, '' AS worker, '' AS why, body FROM waiting_{n} WHERE fp = $1
UNION ALL SELECT 'delayed', id, due, attempt, '', '', body FROM late_{n} WHERE fp = $1
UNION ALL SELECT 'chained', id, 0, attempt, '', '', body FROM chained_{n} WHERE fp = $1
UNION ALL SELECT 'leased', task, 0, attempt, worker, '', body FROM held WHERE job = {n} AND fp = $1
UNION ALL SELECT 'dead', id, 0, attempt, '', why, body FROM grave_{n} WHERE fp = $1
LIMIT 1
"""
_BEFORE = """
SELECT (
    SELECT body FROM waiting_{n} WHERE id = earlier.task
    UNION ALL SELECT body FROM late_{n} WHERE id = earlier.task
    UNION ALL SELECT body FROM chained_{n} WHERE id = earlier.task
    UNION ALL SELECT body FROM held WHERE job = {n} AND task = earlier.task
    UNION ALL SELECT body FROM grave_{n} WHERE id = earlier.task
    LIMIT 1
)
FROM step own JOIN step earlier ON earlier.job = own.job AND earlier.chain = own.chain AND earlier.task < own.task
WHERE own.task = $1 ORDER BY earlier.task DESC LIMIT 1
"""


async def whereabouts(db: Connection, job: int, task: Task, now: Moment, redact: Sequence[str]) -> TaskStatus:
    """By its fingerprint, in any lane. Scans: an index would cost every task, for a rare query. One statement, so that
    a task that moves meanwhile is in one place."""
    found = await db.fetchrow(_FOUND.format(n=job), task.fingerprint)
    if found is None:
        seen = await db.fetchval(f"SELECT 1 FROM seen_{job} WHERE fp = $1", task.fingerprint)
        return TaskStatus(state="ended" if seen else "unknown")
    state, task_id, due, attempt, worker, why, body = found
    if state == "delayed" and due <= now:
        # Due; the next lease promotes it.
        state = "waiting"
    parent, created_at, chain = _origin(body)
    before = ""
    if state == "chained":
        state = "waiting"
        before = _url(await db.fetchval(_BEFORE.format(n=job), task_id))
    else:
        chain = ""
    return TaskStatus(
        state=state,
        due_in=due - now if state == "delayed" else 0.0,
        attempt=attempt,
        parent=redaction.url(parent, redact),
        created_at=created_at,
        worker=worker,
        why=chain_failures.shown(why, redact),
        chain=chain,
        waits_for=redaction.url(before, redact),
    )


def _url(body: bytes | None) -> str:
    try:
        return task_json.decode(body).url if body is not None else ""
    except task_json.Undecodable:
        return "(undecodable)"


def _origin(body: bytes) -> tuple[str, Moment, str]:
    """The page with its link, when it was found, and its chain."""
    try:
        task = task_json.decode(body)
    except task_json.Undecodable:
        return "", 0.0, ""
    return task.parent, task.created_at, task.chain
