"""A job's budget (F20). Leased pages count, so it holds for any number of workers."""

import sqlite3

import msgspec

from trotline.adapters.sqlite.job_transaction import JobTransaction, gone
from trotline.model.job import BYTES, Budget

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Budget).decode
_NONE = Budget()


def write(tx: JobTransaction, budget: Budget) -> None:
    tx.db.execute("UPDATE job SET budget = ? WHERE id = ?", (None if budget == _NONE else _encode(budget), tx.job))


def read(db: sqlite3.Connection, job: int) -> Budget:
    row = db.execute("SELECT budget FROM job WHERE id = ?", (job,)).fetchone()
    if row is None:
        raise gone()
    return _NONE if row[0] is None else _decode(row[0])


def spent(db: sqlite3.Connection, job: int) -> str:
    """Which limit is reached; empty if none is."""
    budget = read(db, job)
    if budget == _NONE:
        return ""
    ended, _ = _used(db, job)
    return budget.spent(ended, _size(db, job))


def left(tx: JobTransaction, limit: int) -> int:
    """The number of leases that the budget allows, at most `limit`."""
    budget = read(tx.db, tx.job)
    if budget == _NONE:
        return limit
    if budget.size is not None and _size(tx.db, tx.job) >= budget.size:
        return 0
    if budget.pages is None:
        return limit
    ended, leased = _used(tx.db, tx.job)
    # Counters are written at the end of the transaction: its own changes are added here.
    return min(limit, max(0, budget.pages - ended - leased - tx.done - tx.dead - tx.leased))


def _used(db: sqlite3.Connection, job: int) -> tuple[int, int]:
    """Ended pages, and leased ones."""
    [ended, leased] = db.execute("SELECT done + dead, leased FROM job WHERE id = ?", (job,)).fetchone()
    return ended, leased


def _size(db: sqlite3.Connection, job: int) -> int:
    row = db.execute("SELECT n FROM tally WHERE job = ? AND name = ?", (job, BYTES)).fetchone()
    return row[0] if row else 0
