"""Files that are new to everybody who opens them."""

import sqlite3
import threading
from pathlib import Path

import pytest

from trotline.adapters.sqlite.database import MEMORY, Database
from trotline.adapters.sqlite_wal import write_ahead


@pytest.fixture
def writer(tmp_path: Path) -> sqlite3.Connection:
    """In the middle of something, in a file that has no write-ahead log yet."""
    connection = sqlite3.connect(tmp_path / "new.db", isolation_level=None, check_same_thread=False)
    connection.execute("CREATE TABLE page (url TEXT)")
    connection.execute("BEGIN IMMEDIATE")
    return connection


def test_who_comes_while_another_one_writes_waits(writer: sqlite3.Connection, tmp_path: Path) -> None:
    second = sqlite3.connect(tmp_path / "new.db", timeout=30.0, isolation_level=None)
    threading.Timer(0.2, writer.execute, ["COMMIT"]).start()

    write_ahead(second, 30.0)

    assert second.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    second.close()
    writer.close()


def test_and_not_for_ever(writer: sqlite3.Connection, tmp_path: Path) -> None:
    second = sqlite3.connect(tmp_path / "new.db", timeout=0.0, isolation_level=None)

    with pytest.raises(sqlite3.OperationalError, match="locked"):
        write_ahead(second, 0.05)

    second.close()
    writer.close()


@pytest.mark.parametrize("text", ["database is locked", "locking protocol"])
def test_whoever_meets_a_lock_that_is_kept_is_told_of_suspended_processes(text: str) -> None:
    """SQLite waits ten seconds for a lock of the write-ahead log: the message is all that can be tested quickly."""
    database = Database(MEMORY, inline=True)
    error = database._explained(sqlite3.OperationalError(text))
    database.connection.close()
    assert "Is one suspended" in error.hint
