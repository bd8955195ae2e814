"""Accounts: members of a pool that one visit at a time has, over all lanes. Their sessions, and whose turn it is."""

import sqlite3

from trotline.adapters.sqlite.schema import FULL, LEASED, PAUSED, READY, RESTING, TOKEN_BITS
from trotline.model.lease import Lease
from trotline.model.proxy_pool import pool_of
from trotline.model.time import Moment, Seconds

YIELD: Seconds = 0.3
"""A lane that returns an account for which others wait does not take it again before. Without this the worker that
settles would always be the first to ask for it: those of other jobs notice its return only when they poll."""


def wake(db: sqlite3.Connection, pool: str, member: int, pace_id: int, now: Moment) -> bool:
    """Lanes of all jobs that wait for this account, which came back from a lane, are tried again. False: there are
    none."""
    waiting = db.execute(
        # A lane with queues has the route behind its pool.
        "SELECT id, pace FROM lane WHERE pool >= ? AND pool < ? AND member IN (0, ?) AND waits = 1"
        f" AND state IN ({RESTING}, {FULL}) AND paused <> {PAUSED} AND best IS NOT NULL",
        (pool, pool + " ", member),
    ).fetchall()
    db.executemany(f"UPDATE lane SET state = {READY}, waits = 0 WHERE id = ?", [(row[0],) for row in waiting])
    if any(row[1] != pace_id for row in waiting):
        db.execute(
            "UPDATE pool_member SET last_pace = ?, yield_until = ? WHERE pool = ? AND member = ?",
            (pace_id, now + YIELD, pool, member),
        )
    return bool(waiting)


def read_session(db: sqlite3.Connection, job: int, worker: str, lease: Lease) -> bytes | None:
    """None: the worker does not have this lease."""
    if not _is_held(db, job, worker, lease):
        return None
    row = db.execute(
        "SELECT state FROM pool_member WHERE pool = ? AND member = ?", (pool_of(lease.task.lane), lease.member)
    ).fetchone()
    return bytes(row[0]) if row and row[0] else b""


def save_session(db: sqlite3.Connection, job: int, worker: str, lease: Lease, state: bytes) -> bool:
    """False: the worker does not have this lease. An account that was removed from its pool meanwhile has no state."""
    if not _is_held(db, job, worker, lease):
        return False
    db.execute(
        "UPDATE pool_member SET state = ? WHERE pool = ? AND member = ?",
        (state, pool_of(lease.task.lane), lease.member),
    )
    return True


def _is_held(db: sqlite3.Connection, job: int, worker: str, lease: Lease) -> bool:
    held = db.execute(
        f"SELECT 1 FROM task WHERE id = ? AND state = {LEASED} AND job = ? AND worker = ? AND token = ? AND member = ?",
        (lease.token >> TOKEN_BITS, job, worker, lease.token, lease.member),
    ).fetchone()
    return held is not None
