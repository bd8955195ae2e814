"""The ledger in the sink's file.

No index by identity or URL: two of them would cost the crawl 18 instead of 4 microseconds a visit, and a table scan
takes only 20 milliseconds for 100,000 visits.
"""

import json
import sqlite3
from collections.abc import Sequence

import msgspec

from trotline.model.record_row import Row, whole
from trotline.model.visit_row import VisitRow

_COLUMNS = ", ".join(VisitRow.__struct_fields__)
_TYPES = {str: "TEXT", int: "INTEGER", float: "REAL"}
_AT_ONCE = 64

_statements: dict[int, str] = {}


def prepare(connection: sqlite3.Connection) -> None:
    """Create the table, or the columns that a file of an older version lacks."""
    columns = {field.name: _column(field) for field in msgspec.structs.fields(VisitRow)}
    # leased_at is part of the key: a new frontier file for the same rows has a second job `shop-1`.
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS visits ({', '.join(columns.values())}, UNIQUE (job, token, leased_at))"
    )
    existing = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info('visits')")}
    for name, column in columns.items():
        if name not in existing:
            connection.execute(f"ALTER TABLE visits ADD COLUMN {column}")


def _column(field: msgspec.structs.FieldInfo) -> str:
    """With its default, which older versions need to write to a file of this one."""
    default = "" if field.required else f" DEFAULT {field.default!r}"
    return f"{field.name} {_TYPES[field.type]} NOT NULL{default}"


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
