"""SQLite files that several processes share: those who read wait for nobody."""

import sqlite3
import time

from trotline.model.time import Seconds

AGAIN: Seconds = 0.01


def write_ahead(connection: sqlite3.Connection, patience: Seconds) -> None:
    """Use a write-ahead log from now on, as whoever has the file open does.

    A connection's own timeout does not help here: while one process switches a new file over, SQLite tells the others
    that it is locked, at once.
    """
    until = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            # The holder is another process, for milliseconds: it needs no loop of ours to come to its end.
            time.sleep(AGAIN)
        else:
            return
