"""One view per kind of record, for queries like `SELECT title, price FROM product`.

Field names come from pages: they are only used as quoted identifiers and quoted JSON paths.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import closing

MOST_COLUMNS = 200
LONGEST_NAME = 100
_TAKEN = {
    "records", "history", "fields", "visits", "row_counts", "things", "merged", "merge_sources", "merge_keys",
    "merge_links", "merge_verdicts", "merge_state",
}  # fmt: skip
_ENVELOPE = {
    "_site": "site",
    "_key": "key",
    "_url": "url",
    "_seen_at": "strftime('%Y-%m-%dT%H:%M:%fZ', seen_at, 'unixepoch')",
}


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def is_keyword(name: str) -> bool:
    """Must a name of letters, digits and underscores be quoted? Tested with SQLite itself."""
    with closing(sqlite3.connect(":memory:")) as db:
        try:
            db.execute(f"WITH {name} AS (SELECT 1) SELECT * FROM {name}")
        except sqlite3.OperationalError:
            return True
    return False


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _path(name: str) -> str:
    return literal('$."' + name + '"')


def can_be_column(name: str) -> bool:
    """False for names that an SQLite JSON path cannot contain; they are still in `records.data`."""
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and not set(name) & {'"', "\\"}


def view_name(kind: str) -> str | None:
    """The view's name, or None for a kind that cannot be one."""
    if not can_be_column(kind):
        return None
    if kind.lower() in _TAKEN or kind.lower().startswith("sqlite_"):
        return f"{kind}_rows" if not kind.lower().startswith("sqlite_") else f"rows_{kind}"
    return kind


def view_sql(kind: str, names: Iterable[str]) -> str | None:
    """The CREATE VIEW statement for `kind`, with `names` as columns in that order."""
    view = view_name(kind)
    if view is None:
        return None
    columns: dict[str, str] = {}
    for name in names:
        if can_be_column(name) and len(columns) < MOST_COLUMNS:
            _add(columns, name, f"json_extract(data, {_path(name)})")
    shown = ", ".join(f"{expression} AS {identifier(name)}" for name, expression in (columns | _ENVELOPE).items())
    return f"CREATE VIEW {identifier(view)} AS SELECT {shown} FROM records WHERE kind = {literal(kind)}"


def _add(columns: dict[str, str], name: str, expression: str) -> None:
    # Names are case-insensitive: Title and title would be one column.
    known = {column.lower() for column in columns} | _ENVELOPE.keys()
    free, number = name, 2
    while free.lower() in known:
        free, number = f"{name}_{number}", number + 1
    columns[free] = expression
