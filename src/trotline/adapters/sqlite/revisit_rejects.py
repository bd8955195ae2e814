"""Pages whose records failed validation, visited again."""

import json
from collections.abc import Sequence

from trotline.adapters.sqlite.job_transaction import JobTransaction
from trotline.adapters.sqlite.schema import WAITING
from trotline.model import task_json

_CHOSEN = (
    "SELECT fingerprint, max(body) FROM reject WHERE job = ? AND body IS NOT NULL"
    " AND 'bad record: ' || why LIKE ? ESCAPE '\\' AND (?3 IS NULL OR id IN (SELECT value FROM json_each(?3)))"
    " GROUP BY fingerprint ORDER BY min(id)"
)


def revisit_rejects(tx: JobTransaction, ids: Sequence[str], pattern: str) -> int:
    """Queue the pages of these rejected records again, and delete all their rejected records. Returns the number of
    pages.

    `ids`: of records ("r17"); none: all whose reason is LIKE `pattern`.
    """
    numbers = [int(name[1:]) for name in ids if name.startswith("r") and name[1:].isdecimal()]
    if ids and not numbers:
        return 0
    pages = tx.db.execute(_CHOSEN, (tx.job, pattern, json.dumps(numbers) if ids else None)).fetchall()
    for fingerprint, body in pages:
        _wait_again(tx, fingerprint, body)
    gone = tx.db.execute(
        "DELETE FROM reject WHERE job = ? AND fingerprint IN (SELECT value FROM json_each(?))",
        (tx.job, json.dumps([fingerprint for fingerprint, _ in pages])),
    ).rowcount
    if pages:
        tx.tallies["records rejected"] -= gone
        tx.done -= len(pages)
        tx.waiting += len(pages)
        tx.reopen()
    return len(pages)


def _wait_again(tx: JobTransaction, fingerprint: int, body: bytes) -> None:
    task = task_json.decode(body)
    lane = tx.lane_of(task)
    lane.waiting += 1
    tx.has_waiting(lane, task.priority)
    tx.db.execute(
        f"INSERT INTO task (job, lane, state, priority, fingerprint, body) VALUES (?, ?, {WAITING}, ?, ?, ?)",
        (tx.job, lane.id, task.priority, fingerprint, body),
    )
