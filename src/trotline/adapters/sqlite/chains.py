"""Chains: a step is queued when the one before it is done.

The table `step` has a row for each step of a chain that has not ended, in the order of the tasks' ids. The first one
is the chain's head: waiting, delayed or leased like any task, or dead. All others wait for it in state CHAINED, or are
dead because it is.
"""

import sqlite3
from typing import TYPE_CHECKING

from trotline.adapters.sqlite.schema import CHAINED, DEAD, DELAYED, WAITING
from trotline.model import task_json
from trotline.ports.console import MOST_CHAINS
from trotline.rules import chain_failures

if TYPE_CHECKING:
    from trotline.adapters.sqlite.job_transaction import JobTransaction

_OF_CHAIN = "SELECT task FROM step WHERE job = ? AND chain = ?"


def failure(tx: "JobTransaction", chain: str) -> tuple[bool, str]:
    """Has the chain a head, and with which reason do steps die that come now; none if the head is alive."""
    head = tx.db.execute(
        "SELECT t.state, t.why, t.body FROM step s JOIN task t ON t.id = s.task"
        " WHERE s.job = ? AND s.chain = ? ORDER BY s.task LIMIT 1",
        (tx.job, chain),
    ).fetchone()
    if head is None:
        return False, ""
    state, why, body = head
    return True, chain_failures.failed(url_of(body), why) if state == DEAD else ""


def count(db: sqlite3.Connection, job: int) -> int:
    """Chains with a step, up to MOST_CHAINS."""
    query = "SELECT count(*) FROM (SELECT DISTINCT chain FROM step WHERE job = ? LIMIT ?)"
    [found] = db.execute(query, (job, MOST_CHAINS)).fetchone()
    return int(found)


def join(tx: "JobTransaction", chain: str, task_id: int) -> None:
    tx.db.execute("INSERT INTO step (job, chain, task) VALUES (?, ?, ?)", (tx.job, chain, task_id))


def release_next(tx: "JobTransaction", task_id: int) -> None:
    """A task is done: if it is the head of a chain, queue the next step."""
    ended = tx.db.execute("DELETE FROM step WHERE task = ? RETURNING chain", (task_id,)).fetchone()
    if ended is None:
        # A page that is read again for its records: it is in the chain no longer.
        return
    found = tx.db.execute(
        "SELECT t.id, t.lane, t.priority, t.due FROM step s JOIN task t ON t.id = s.task"
        f" WHERE s.job = ? AND s.chain = ? AND t.state = {CHAINED} ORDER BY s.task LIMIT 1",
        (tx.job, ended[0]),
    ).fetchone()
    if found is None:
        return
    next_id, lane_id, priority, due = found
    delayed = due > tx.now
    lane = tx.lane(lane_id)
    if not delayed:
        tx.has_waiting(lane, priority)
    tx.db.execute("UPDATE task SET state = ? WHERE id = ?", (DELAYED if delayed else WAITING, next_id))


def bury_followers(tx: "JobTransaction", task_id: int, why: str) -> None:
    """A task was buried: if it is the head of a chain, bury the steps behind it."""
    found = tx.db.execute(
        "SELECT s.chain, t.body FROM step s JOIN task t ON t.id = s.task WHERE s.task = ?", (task_id,)
    ).fetchone()
    if found is None:
        return
    chain, body = found
    count = _count_off(tx, chain)
    if not count:
        return
    tx.db.execute(
        f"UPDATE task SET state = {DEAD}, why = ?, died_at = ? WHERE id IN ({_OF_CHAIN}) AND state = {CHAINED}",
        (chain_failures.failed(url_of(body), why), tx.now, tx.job, chain),
    )
    tx.waiting -= count
    tx.dead += count
    tx.tallies[chain_failures.TALLY] += count


def _count_off(tx: "JobTransaction", chain: str) -> int:
    """Subtract the chain's waiting steps from their lanes; returns their number."""
    lanes = tx.db.execute(
        f"SELECT lane, count(*) FROM task WHERE id IN ({_OF_CHAIN}) AND state = {CHAINED} GROUP BY lane",
        (tx.job, chain),
    ).fetchall()
    for lane_id, count in lanes:
        tx.lane(lane_id).waiting -= count
    return sum(count for _, count in lanes)


def heads_in(tx: "JobTransaction", lane_id: int) -> list[int]:
    """The heads of chains that wait in this lane."""
    found = tx.db.execute(
        "SELECT t.id FROM step s JOIN task t ON t.id = s.task"
        f" WHERE s.job = ? AND t.lane = ? AND t.state IN ({WAITING}, {DELAYED})",
        (tx.job, lane_id),
    )
    return [task_id for (task_id,) in found]


def dead_chain(tx: "JobTransaction", task_id: int) -> list[tuple[int, int, bytes]]:
    """The dead steps of this dead task's chain (id, lane, body), its head first; none if it has no chain."""
    return tx.db.execute(
        "SELECT t.id, t.lane, t.body FROM step s JOIN task t ON t.id = s.task"
        " WHERE s.job = ?1 AND s.chain = (SELECT chain FROM step WHERE task = ?2)"
        f" AND t.state = {DEAD} ORDER BY s.task",
        (tx.job, task_id),
    ).fetchall()


def url_of(body: bytes) -> str:
    try:
        return task_json.decode(body).url
    except task_json.Undecodable:
        return "(undecodable)"
