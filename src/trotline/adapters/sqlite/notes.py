"""Notes of a job (N1 to N4 of ports/console.py)."""

import json
import sqlite3
from collections.abc import Sequence

from trotline.adapters.sqlite.job_transaction import gone
from trotline.model.note import Note


def read(db: sqlite3.Connection, job: int, names: Sequence[str]) -> list[Note | None]:
    rows = db.execute(
        "SELECT name, data, version FROM note WHERE job = ? AND name IN (SELECT value FROM json_each(?))",
        (job, json.dumps(list(names))),
    )
    found = {name: Note(data, version) for name, data, version in rows}
    return [found.get(name) for name in names]


def write(db: sqlite3.Connection, job: int, name: str, data: bytes, version: int) -> bool:
    if db.execute("SELECT 1 FROM job WHERE id = ?", (job,)).fetchone() is None:
        raise gone()
    if version:
        statement = "UPDATE note SET data = ?, version = version + 1 WHERE job = ? AND name = ? AND version = ?"
        return db.execute(statement, (data, job, name, version)).rowcount == 1
    added = db.execute("INSERT OR IGNORE INTO note (job, name, data, version) VALUES (?, ?, ?, 1)", (job, name, data))
    return added.rowcount == 1
