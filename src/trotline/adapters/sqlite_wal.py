"""WAL mode for SQLite files that several processes share: readers do not wait for writers."""

import sqlite3
import time

from trotline.model.time import Seconds

AGAIN: Seconds = 0.01


def write_ahead(connection: sqlite3.Connection, patience: Seconds) -> None:
    """Switch the file to a write-ahead log.

    Retried here, as a connection's timeout does not apply: while one process switches a new file, SQLite raises
    "locked" in the others at once.
    """
    until = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            # Blocking is fine: another process holds the lock for milliseconds.
            time.sleep(AGAIN)
        else:
            return
