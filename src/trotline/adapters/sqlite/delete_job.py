"""Deletes a job: from the list of jobs at once, its rows in small batches."""

import sqlite3
from collections.abc import Iterable

import msgspec

from trotline.adapters.sqlite.job_transaction import JobTransaction
from trotline.adapters.sqlite.schema import CANCELLED, DEAD, DELAYED, LEASED, WAITING
from trotline.model.job import LaneRules
from trotline.model.time import Moment

RETIRED = "CREATE TABLE IF NOT EXISTS retired (job INTEGER PRIMARY KEY)"
"""Deleted jobs whose rows are not deleted yet. Created with the first one."""
AT_ONCE = 5_000
"""Rows per transaction: the workers of other jobs wait for it."""
_LANES = 100

ENDED = f"""
SELECT id, name FROM job
WHERE coalesce(finished_at, CASE paused WHEN {CANCELLED} THEN coalesce(state_at, started_at) END) < ?
AND id < (SELECT max(id) FROM job newest WHERE newest.spider = job.spider)
"""
"""Finished or cancelled before a time. The newest job of a spider is kept: as its last run, and so that its number is
not reused."""


def ended(db: sqlite3.Connection, before: Moment, most: int, spider: str = "") -> list[tuple[int, str]]:
    """Number and name of the oldest jobs that may be deleted; optionally of one spider."""
    only, named = (" AND spider = ?", (spider,)) if spider else ("", ())
    return db.execute(f"{ENDED}{only} ORDER BY id LIMIT ?", (before, *named, most)).fetchall()


def delete_jobs(db: sqlite3.Connection, numbers: Iterable[int], now: Moment) -> None:
    """Delete the jobs from the list, and return their leases, whose places other jobs may wait for."""
    db.execute(RETIRED)
    for number in numbers:
        _give_back(db, number, now)
        db.execute("INSERT OR IGNORE INTO retired (job) VALUES (?)", (number,))
        db.execute("DELETE FROM job WHERE id = ?", (number,))


def _give_back(db: sqlite3.Connection, number: int, now: Moment) -> None:
    held = db.execute(
        f"SELECT id, lane, priority, attempt, member FROM task WHERE state = {LEASED} AND job = ?", (number,)
    ).fetchall()
    if held:
        name, rules = db.execute("SELECT name, rules FROM job WHERE id = ?", (number,)).fetchone()
        tx = JobTransaction(db, number, name, msgspec.json.decode(rules, type=LaneRules), now)
        # Their workers notice it at the next settle: their requests may be under way.
        tx.give_back(held, attempts=0, may_send=True)
        tx.flush()


def delete_rows(db: sqlite3.Connection) -> bool:
    """Delete a batch of rows of a deleted job; False when none is left."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'retired'").fetchone() is None:
        return False
    row = db.execute("SELECT job FROM retired LIMIT 1").fetchone()
    if row is None:
        return False
    [number] = row
    if _clear_chains(db, number):
        return True
    for chosen in (
        f"task WHERE id IN (SELECT id FROM task WHERE job = ? AND state = {DEAD} LIMIT {AT_ONCE})",
        f"task WHERE id IN (SELECT id FROM task WHERE job = ? AND state = {DELAYED} LIMIT {AT_ONCE})",
        f"seen WHERE (job, fingerprint) IN (SELECT job, fingerprint FROM seen WHERE job = ? LIMIT {AT_ONCE})",
    ):
        if db.execute(f"DELETE FROM {chosen}", (number,)).rowcount:
            return True
    if _clear_lanes(db, number):
        return True
    for table in _tables_of_jobs(db):
        db.execute(f"DELETE FROM {table} WHERE job = ?", (number,))
    return True


def _clear_chains(db: sqlite3.Connection, number: int) -> bool:
    steps = db.execute(f"SELECT task FROM step WHERE job = ? LIMIT {AT_ONCE}", (number,)).fetchall()
    db.executemany("DELETE FROM task WHERE id = ?", steps)
    db.executemany("DELETE FROM step WHERE task = ?", steps)
    return bool(steps)


def _clear_lanes(db: sqlite3.Connection, number: int) -> bool:
    lanes = db.execute(f"SELECT id FROM lane WHERE job = ? LIMIT {_LANES}", (number,)).fetchall()
    if not lanes:
        return False
    marks = ",".join("?" * len(lanes))
    ids = [lane for (lane,) in lanes]
    waiting = f"SELECT id FROM task WHERE lane IN ({marks}) AND state = {WAITING} LIMIT {AT_ONCE}"
    if not db.execute(f"DELETE FROM task WHERE id IN ({waiting})", ids).rowcount:
        db.execute(f"DELETE FROM lane WHERE id IN ({marks})", ids)
    return True


def _tables_of_jobs(db: sqlite3.Connection) -> list[str]:
    """The tables with a job number, `retired` among them."""
    rows = db.execute(
        "SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c"
        " WHERE m.type = 'table' AND c.name = 'job' AND c.type = 'INTEGER'"
    )
    return [name for (name,) in rows]
