"""The ledger in the sink's file.

No index by identity or URL: two of them would cost the crawl 18 instead of 4 microseconds a visit, and a table scan
takes only 20 milliseconds for 100,000 visits.
"""

import json
import sqlite3
from collections.abc import Sequence

import msgspec

from trotline.model.row import Row, whole
from trotline.model.visit_row import VisitRow

_COLUMNS = ", ".join(VisitRow.__struct_fields__)
_AT_ONCE = 64

# leased_at is part of the key: a new frontier file for the same rows has a second job `shop-1`.
TABLE = """
    CREATE TABLE IF NOT EXISTS visits (
        job TEXT NOT NULL, token INTEGER NOT NULL, site TEXT NOT NULL, url TEXT NOT NULL,
        fingerprint INTEGER NOT NULL, route TEXT NOT NULL, lane TEXT NOT NULL, worker TEXT NOT NULL,
        leased_at REAL NOT NULL, attempt INTEGER NOT NULL, depth INTEGER NOT NULL,
        parent TEXT NOT NULL, found_at REAL NOT NULL, proxy TEXT NOT NULL, status INTEGER NOT NULL,
        took REAL NOT NULL, size INTEGER NOT NULL, verdict TEXT NOT NULL, outcome TEXT NOT NULL,
        why TEXT NOT NULL, records INTEGER NOT NULL, children INTEGER NOT NULL, moved_to TEXT NOT NULL,
        UNIQUE (job, token, leased_at))
"""
"""Created whenever a file is opened for writing: files of older versions lack it."""

_statements: dict[int, str] = {}


def insert(connection: sqlite3.Connection, visits: Sequence[VisitRow]) -> None:
    for start in range(0, len(visits), _AT_ONCE):
        chunk = visits[start : start + _AT_ONCE]
        values = [value for visit in chunk for value in msgspec.structs.astuple(visit)]
        try:
            connection.execute(_insertion(len(chunk)), values)
        except UnicodeEncodeError:
            connection.execute(_insertion(len(chunk)), [whole(v) if isinstance(v, str) else v for v in values])


def _insertion(count: int) -> str:
    """One statement for all rows, as for the records."""
    if count not in _statements:
        group = "(" + ",".join("?" * len(VisitRow.__struct_fields__)) + ")"
        _statements[count] = (
            f"INSERT INTO visits ({_COLUMNS}) VALUES {','.join([group] * count)}"
            " ON CONFLICT (job, token, leased_at) DO NOTHING"
        )
    return _statements[count]


def story(connection: sqlite3.Connection, fingerprints: Sequence[int], url: str, limit: int) -> list[VisitRow]:
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM visits"
        " WHERE fingerprint IN (SELECT value FROM json_each(?1)) OR (url = ?2 AND ?2 <> '')"
        " ORDER BY leased_at DESC, token DESC LIMIT ?3",
        (json.dumps(list(fingerprints)), whole(url), limit),
    ).fetchall()
    names = VisitRow.__struct_fields__
    return [VisitRow(**dict(zip(names, row, strict=True))) for row in reversed(found)]


def rows(connection: sqlite3.Connection, urls: Sequence[str], limit: int) -> list[Row]:
    found = connection.execute(
        "SELECT site, kind, key, url, seen_at, data FROM records"
        " WHERE url IN (SELECT value FROM json_each(?)) ORDER BY rowid LIMIT ?",
        (json.dumps([whole(url) for url in urls]), limit),
    )
    return [Row(*row) for row in found]
