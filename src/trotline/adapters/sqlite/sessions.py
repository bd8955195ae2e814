"""The process that is logged in to a session of a job."""

import sqlite3


def write(db: sqlite3.Connection, job: int, session: str, home: str) -> None:
    db.execute("INSERT OR REPLACE INTO session (job, name, home) VALUES (?, ?, ?)", (job, session, home))


def read(db: sqlite3.Connection, job: int, session: str) -> str:
    row = db.execute("SELECT home FROM session WHERE job = ? AND name = ?", (job, session)).fetchone()
    return str(row[0]) if row else ""
