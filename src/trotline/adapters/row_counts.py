"""How many records of a job were new, changed or seen again, in the SQLite files of sinks.

Counted in the transaction that stores the rows: a worker that is killed between storing and settling has counted its
new rows, and the second visit counts them as seen again.
"""

import sqlite3

from trotline.model.row_counts import Stored
from trotline.model.time import Moment

# started_at is part of the key: a new frontier file for the same rows has a second job `shop-1`.
TABLE = """
    CREATE TABLE IF NOT EXISTS row_counts (
        job TEXT NOT NULL, started_at REAL NOT NULL,
        new INTEGER NOT NULL, changed INTEGER NOT NULL, again INTEGER NOT NULL,
        PRIMARY KEY (job, started_at)) WITHOUT ROWID
"""
"""Created whenever a file is opened for writing: files of older versions lack it."""

# One step in the index per job: the ledger may have millions of visits.
JOBS = {
    "row_counts": "SELECT DISTINCT job FROM row_counts",
    "visits": """
        WITH RECURSIVE known (job) AS (
            SELECT min(job) FROM visits
            UNION ALL SELECT (SELECT min(job) FROM visits WHERE job > known.job) FROM known WHERE job IS NOT NULL)
        SELECT job FROM known WHERE job IS NOT NULL
    """,
}
"""Which jobs have written, by the table that knows it."""


def add(connection: sqlite3.Connection, job: str, started_at: Moment, counts: Stored) -> None:
    connection.execute(
        "INSERT INTO row_counts VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " new = new + excluded.new, changed = changed + excluded.changed, again = again + excluded.again",
        (job, started_at, counts.new, counts.changed, counts.again),
    )


def read(connection: sqlite3.Connection, job: str, started_at: Moment) -> Stored:
    found = connection.execute(
        "SELECT new, changed, again FROM row_counts WHERE job = ? AND started_at = ?", (job, started_at)
    ).fetchone()
    new, changed, again = found or (0, 0, 0)
    return Stored(new=new, changed=changed, again=again)
