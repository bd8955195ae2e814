"""Pages whose records failed validation, visited again."""

import json
from collections.abc import Sequence

from trotline.adapters.sqlite.schema import WAITING
from trotline.adapters.sqlite.transaction import Turn
from trotline.model import task_json

_CHOSEN = (
    "SELECT fingerprint, max(body) FROM reject WHERE job = ? AND body IS NOT NULL"
    " AND 'bad record: ' || why LIKE ? ESCAPE '\\' AND (?3 IS NULL OR id IN (SELECT value FROM json_each(?3)))"
    " GROUP BY fingerprint ORDER BY min(id)"
)


def revisit_rejects(turn: Turn, ids: Sequence[str], pattern: str) -> int:
    """Queue the pages of these rejected records again, and delete all their rejected records. Returns the number of
    pages.

    `ids`: of records ("r17"); none: all whose reason is LIKE `pattern`.
    """
    numbers = [int(name[1:]) for name in ids if name.startswith("r") and name[1:].isdecimal()]
    if ids and not numbers:
        return 0
    pages = turn.db.execute(_CHOSEN, (turn.job, pattern, json.dumps(numbers) if ids else None)).fetchall()
    for fingerprint, body in pages:
        _wait_again(turn, fingerprint, body)
    gone = turn.db.execute(
        "DELETE FROM reject WHERE job = ? AND fingerprint IN (SELECT value FROM json_each(?))",
        (turn.job, json.dumps([fingerprint for fingerprint, _ in pages])),
    ).rowcount
    if pages:
        turn.tallies["records rejected"] -= gone
        turn.done -= len(pages)
        turn.waiting += len(pages)
        turn.reopen()
    return len(pages)


def _wait_again(turn: Turn, fingerprint: int, body: bytes) -> None:
    task = task_json.decode(body)
    lane = turn.lane_of(task)
    lane.waiting += 1
    turn.has_waiting(lane, task.priority)
    turn.db.execute(
        f"INSERT INTO task (job, lane, state, priority, fingerprint, body) VALUES (?, ?, {WAITING}, ?, ?, ?)",
        (turn.job, lane.id, task.priority, fingerprint, body),
    )
