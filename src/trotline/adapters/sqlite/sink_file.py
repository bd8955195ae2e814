"""The sink's SQLite file: schema, connections, snapshots."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from trotline.adapters import row_counts
from trotline.adapters.sink_file_errors import plain_errors
from trotline.adapters.sqlite import ledger
from trotline.adapters.sqlite_wal import write_ahead
from trotline.errors import SinkFileFails, SinkTooNew
from trotline.model.record_row import Row
from trotline.model.time import Seconds

VERSION = 1
APPLICATION = 0x54524C53
"""Marks the file as a sink, to distinguish it from other databases."""

# With rowid: rows of this size in a WITHOUT ROWID table cost three times as much to write.
_SCHEMA = """
    CREATE TABLE records (
        site TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, url TEXT NOT NULL,
        seen_at REAL NOT NULL, first_seen_at REAL NOT NULL, changed_at REAL NOT NULL,
        data TEXT NOT NULL, changes INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (site, kind, key));
    CREATE TABLE history (
        site TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
        since REAL NOT NULL, seen_at REAL NOT NULL, data TEXT NOT NULL);
    CREATE INDEX history_of ON history (site, kind, key);
    CREATE TRIGGER keep_history AFTER UPDATE OF data ON records WHEN old.data <> new.data BEGIN
        INSERT INTO history VALUES (old.site, old.kind, old.key, old.changed_at, old.seen_at, old.data);
    END;
    CREATE TABLE fields (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (kind, name));
"""


def connect(path: Path, patience: Seconds) -> sqlite3.Connection:
    if path.is_dir():
        raise SinkFileFails(f"cannot store rows in {path}: it is a folder", hint="Name a file in it.")
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
    try:
        write_ahead(connection, patience)
        # FULL: the frontier settles a page after this; records of settled pages must survive a power failure.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if not _known(connection, path):
        # executescript would commit first, and another process could create the tables at the same time.
        for statement in _statements_of(_SCHEMA):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    # Files of older versions may lack these tables, or columns of them.
    if connection.execute("SELECT 1 FROM pragma_table_info('records') WHERE name = 'changes'").fetchone() is None:
        connection.execute("ALTER TABLE records ADD COLUMN changes INTEGER NOT NULL DEFAULT 0")
    ledger.prepare(connection)
    connection.execute(row_counts.TABLE)
    connection.execute("COMMIT")


def _statements_of(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _known(connection: sqlite3.Connection, path: Path) -> bool:
    """True: a sink of this version. False: an empty file."""
    [version] = connection.execute("PRAGMA user_version").fetchone()
    [application] = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION:
        if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise SinkFileFails(
                f"cannot store rows in {path}: it is a database, but not one of Trotline's sinks",
                hint="Choose another file name, or move that file.",
            )
        return False
    if version > VERSION:
        raise SinkTooNew(
            f"{path} was written by a newer Trotline (format {version}; this one knows {VERSION})",
            hint="Upgrade Trotline, or choose another file name.",
        )
    return True


class Snapshot:
    """A snapshot of the rows, in the order they were first stored. Can be iterated more than once."""

    def __init__(self, connection: sqlite3.Connection, kind: str | None, site: str | None) -> None:
        self._connection = connection
        self._chosen = (kind, site)

    def __iter__(self) -> Iterator[Row]:
        wanted = "SELECT site, kind, key, url, seen_at, data FROM records"
        wanted += " WHERE kind = ifnull(?1, kind) AND site = ifnull(?2, site) ORDER BY rowid"
        for row in self._connection.execute(wanted, self._chosen):
            yield Row(*row)

    def counts(self) -> dict[str, int]:
        """Rows by kind, without the filters."""
        return dict(self._connection.execute("SELECT kind, count(*) FROM records GROUP BY kind ORDER BY min(rowid)"))


@contextmanager
def reading(path: str | Path) -> Iterator[sqlite3.Connection]:
    """Read-only, in one transaction, also while a crawl writes."""
    path = Path(path)
    if not path.is_file():
        raise SinkFileFails(f"there are no rows at {path}: no such file", hint="Run the spider first.")
    with plain_errors(path), closing(sqlite3.connect(path, timeout=30.0, isolation_level=None)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        if not _known(connection, path):
            raise SinkFileFails(f"there are no rows at {path}: the file is empty", hint="Run the spider first.")
        yield connection


@contextmanager
def snapshot(path: str | Path, kind: str | None = None, site: str | None = None) -> Iterator[Snapshot]:
    with reading(path) as connection:
        yield Snapshot(connection, kind, site)


def read_records(path: str | Path, kind: str | None = None, site: str | None = None) -> Iterator[Row]:
    with snapshot(path, kind, site) as rows:
        yield from rows


def count_records(path: str | Path) -> dict[str, int]:
    with snapshot(path) as rows:
        return rows.counts()


def writing_jobs(path: str | Path) -> set[str]:
    """The jobs that have stored rows or visits. Files of older versions lack tables; then those of the others."""
    with reading(path) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        queries = [query for table, query in row_counts.JOBS.items() if table in there]
        return {job for query in queries for (job,) in connection.execute(query)}
