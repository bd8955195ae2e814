"""Gives buried tasks a fresh start."""

from collections.abc import Sequence

from trotline.adapters.sqlite import chains
from trotline.adapters.sqlite.job_transaction import JobTransaction
from trotline.adapters.sqlite.revisit_rejects import revisit_rejects
from trotline.adapters.sqlite.schema import CHAINED, DEAD, WAITING
from trotline.model import task_json
from trotline.rules.revive_with_other_pool import moved

_Buried = tuple[int, int, bytes]
"""id, lane, body"""


def revive(tx: JobTransaction, ids: Sequence[str], why: str, pool: str | None) -> int:
    """Those with these ids, or all; of which the reason starts with `why`. `pool`: their proxy pool from now on."""
    risen: set[int] = set()
    for row in _chosen(tx, ids, why):
        if row[0] not in risen:
            # A step of a chain comes back with the one that failed, and with all that were buried for it.
            first, *others = chains.dead_chain(tx, row[0]) or [row]
            _raise(tx, first, WAITING, pool)
            for other in others:
                _raise(tx, other, CHAINED, pool)
            risen.update(each[0] for each in (first, *others))
    tx.dead -= len(risen)
    tx.waiting += len(risen)
    if risen:
        tx.reopen()
    return len(risen) + revisit_rejects(tx, ids, prefix_pattern(why))


def _chosen(tx: JobTransaction, ids: Sequence[str], why: str) -> list[_Buried]:
    query = f"SELECT id, lane, body FROM task WHERE job = ? AND state = {DEAD}"
    if not ids:
        return tx.db.execute(f"{query} AND why LIKE ? ESCAPE '\\'", (tx.job, prefix_pattern(why))).fetchall()
    chosen = []
    for name in ids:
        chosen += tx.db.execute(
            f"{query} AND fingerprint = ? AND why LIKE ? ESCAPE '\\'",
            (tx.job, fingerprint_of(name), prefix_pattern(why)),
        ).fetchall()
    return chosen


def _raise(tx: JobTransaction, buried: _Buried, state: int, pool: str | None) -> None:
    task_id, lane_id, body = buried
    lane, priority = tx.lane(lane_id), 0
    try:
        task = task_json.decode(body)
    except task_json.Undecodable:
        pass
    else:
        priority = task.priority
        if pool is not None:
            task = moved(task, pool)
            lane, body = tx.lane_of(task), task_json.encode(task)
    lane.waiting += 1
    if state == WAITING:
        tx.has_waiting(lane, priority)
    tx.db.execute(
        "UPDATE task SET state = ?, lane = ?, body = ?, priority = ?, due = 0, attempt = 0, deaths = 0, kills = 0,"
        " why = NULL, detail = NULL, died_at = NULL WHERE id = ?",
        (state, lane.id, body, priority, task_id),
    )


def fingerprint_of(name: str) -> int:
    """The fingerprint of a task's id; 0, which no task has, if `name` is not an id."""
    try:
        number = int(name, 16)
    except ValueError:
        return 0
    return number - (1 << 64) if number >= 1 << 63 else number


def prefix_pattern(why: str) -> str:
    """For LIKE, with the escape character \\."""
    escaped = why.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"{escaped}%"
