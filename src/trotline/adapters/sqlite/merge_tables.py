"""The tables of a merge in the sink's SQLite file, and the views for people."""

import sqlite3

from trotline.adapters.sqlite.sink_sql_views import MOST_COLUMNS, can_be_column, identifier, literal

_TABLES = (
    """CREATE TABLE IF NOT EXISTS merge_sources (
        id INTEGER PRIMARY KEY, site TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
        seen_at REAL NOT NULL, changes INTEGER NOT NULL, rule INTEGER NOT NULL,
        -- The id of the thing's first source, as a number: most sources are their own.
        thing INTEGER NOT NULL,
        -- 8 bytes each: an index of merge_keys by source would cost as much as the table.
        keys BLOB NOT NULL, UNIQUE (site, kind, key))""",
    "CREATE INDEX IF NOT EXISTS merge_sources_of ON merge_sources (thing, site) WHERE thing <> id",
    """CREATE TABLE IF NOT EXISTS merge_keys (
        key INTEGER NOT NULL, source INTEGER NOT NULL, PRIMARY KEY (key, source)) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS merge_links (
        a INTEGER NOT NULL, b INTEGER NOT NULL, score REAL NOT NULL, PRIMARY KEY (a, b)) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS merge_links_of ON merge_links (b)",
    """CREATE TABLE IF NOT EXISTS merge_verdicts (
        a INTEGER NOT NULL, b INTEGER NOT NULL, same INTEGER NOT NULL, PRIMARY KEY (a, b)) WITHOUT ROWID""",
    "CREATE TABLE IF NOT EXISTS merge_state (version INTEGER NOT NULL, rule INTEGER NOT NULL)",
    "INSERT INTO merge_state SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM merge_state)",
    """CREATE TABLE IF NOT EXISTS things (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, data TEXT NOT NULL, provenance TEXT NOT NULL,
        sources INTEGER NOT NULL, sites TEXT NOT NULL, first_seen_at REAL NOT NULL, seen_at REAL NOT NULL)""",
    """CREATE VIEW IF NOT EXISTS merged AS
        SELECT t.id AS thing, s.kind, s.site, s.key, r.url, t.sources AS sources_of_thing, r.data AS data_of_source,
            t.data AS data_of_thing
        FROM merge_sources AS s JOIN things AS t ON t.id = printf('%016x', s.thing)
            LEFT JOIN records AS r ON r.site = s.site AND r.kind = s.kind AND r.key = s.key""",
)
_OF_THINGS = {
    "_thing": "id",
    "_sources": "sources",
    "_sites": "sites",
    "_provenance": "provenance",
    "_seen_at": "strftime('%Y-%m-%dT%H:%M:%fZ', seen_at, 'unixepoch')",
}


def exist(connection: sqlite3.Connection) -> bool:
    """As they are today: tables of another form hold nothing that could be used."""
    asked = "SELECT 1 FROM pragma_table_info('merge_sources') WHERE name = 'changes'"
    return connection.execute(asked).fetchone() is not None


def prepare(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if not exist(connection):
        # All but what people decided can be computed again.
        connection.execute("DROP VIEW IF EXISTS merged")
        for table in ("merge_sources", "merge_keys", "merge_links", "merge_state", "things"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute("COMMIT")


def refresh_views(connection: sqlite3.Connection) -> None:
    """One view per kind, with a column for each field: `SELECT title, price, _sites FROM merged_product`."""
    connection.execute("BEGIN IMMEDIATE")
    fields: dict[str, list[str]] = {}
    for kind, name in connection.execute("SELECT kind, name FROM fields ORDER BY number"):
        fields.setdefault(kind, []).append(name)
    known = dict(connection.execute("SELECT lower(name), sql FROM sqlite_master WHERE type IN ('view', 'table')"))
    for kind, names in fields.items():
        if not can_be_column(f"merged_{kind}"):
            continue
        view = identifier(f"merged_{kind}")
        sql = _view(view, kind, names)
        existing = known.get(f"merged_{kind}".lower())
        if existing is not None and not existing.startswith("CREATE VIEW"):
            continue
        if existing != sql:
            connection.execute(f"DROP VIEW IF EXISTS {view}")
            connection.execute(sql)
    connection.execute("COMMIT")


def _view(view: str, kind: str, names: list[str]) -> str:
    columns: dict[str, str] = {}
    taken = set(_OF_THINGS)
    for name in names:
        # Names are case-insensitive: a second Title would be the same column. It is still in things.data.
        if can_be_column(name) and name.lower() not in taken and len(columns) < MOST_COLUMNS:
            path = literal('$."' + name + '"')
            columns[name] = f"json_extract(data, {path})"
            taken.add(name.lower())
    shown = ", ".join(f"{expression} AS {identifier(name)}" for name, expression in (columns | _OF_THINGS).items())
    return f"CREATE VIEW {view} AS SELECT {shown} FROM things WHERE kind = {literal(kind)}"
