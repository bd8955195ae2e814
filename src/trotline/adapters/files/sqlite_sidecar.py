"""The SQLite file next to a file of rows, and the one thread that uses both."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from trotline.adapters import row_counts
from trotline.adapters.files.file_paths import Place
from trotline.adapters.replaced_file_check import Presence, rows_gone
from trotline.adapters.sink_file_errors import plain_errors
from trotline.adapters.sqlite_wal import write_ahead
from trotline.errors import SinkFileFails, SinkTooNew
from trotline.model.row_counts import Stored
from trotline.model.time import Moment, Seconds

T = TypeVar("T")
VERSION = 1


class Sidecar:
    """Opened at the first use. `application`: the application_id of the file; `before_create` may raise. `job` and its
    start: the job whose records are counted."""

    def __init__(
        self,
        place: Place,
        tables: Sequence[str],
        application: int,
        before_create: Callable[[], None],
        job: tuple[str, Moment] = ("", 0.0),
        patience: Seconds = 30.0,
    ) -> None:
        self.place = place
        self._job = job
        self._tables = tables
        self._application = application
        self._before_create = before_create
        self._patience = patience
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="trotline-sink")
        self._connection: sqlite3.Connection | None = None
        self._presence = Presence(place.index, lambda _: rows_gone(place.file))
        self._closed = False

    async def do(self, operation: Callable[[], T]) -> T:
        """Run in the sidecar's thread: an fsync never blocks the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._guarded, operation)

    async def close(self) -> None:
        """May be repeated."""
        if self._closed:
            return
        self._closed = True
        await self.do(self._let_go)
        self._thread.shutdown(wait=False)

    @contextmanager
    def transaction(self, how: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """A transaction; IMMEDIATE also locks out other writers."""
        connection = self.opened()
        connection.execute(f"BEGIN {how}")
        try:
            yield connection
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def add(self, counts: Stored) -> None:
        """Count the job's records, inside the transaction that stores them."""
        row_counts.add(self.opened(), *self._job, counts)

    def counted(self) -> Stored:
        return row_counts.read(self.opened(), *self._job)

    def opened(self) -> sqlite3.Connection:
        # Before a new connection, too: it would create the file again.
        self._presence.check()
        if self._connection is None:
            self.place.prepare()
            try:
                self._connection = self._connect()
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", 0) not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                    raise
                raise self._damaged() from error
            self._presence.check()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.place.index, timeout=self._patience, isolation_level=None, check_same_thread=False
        )
        try:
            write_ahead(connection, self._patience)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA temp_store = MEMORY")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        [version] = connection.execute("PRAGMA user_version").fetchone()
        [application] = connection.execute("PRAGMA application_id").fetchone()
        if version > VERSION:
            raise SinkTooNew(
                f"{self.place.index} was written by a newer Trotline (format {version}; this one knows {VERSION})",
                hint="Upgrade Trotline, or choose another file name.",
            )
        if version == 0:
            self._before_create()
            for statement in self._tables:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {self._application}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        elif application != self._application:
            raise self._damaged()
        connection.execute(row_counts.TABLE)
        connection.execute("COMMIT")

    def _guarded(self, operation: Callable[[], T]) -> T:
        try:
            with plain_errors(self.place.file):
                return operation()
        except BaseException:
            # The connection may be inside a transaction: the next operation uses a new one.
            self._let_go()
            raise

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _damaged(self) -> SinkFileFails:
        return SinkFileFails(
            f"cannot store rows in {self.place.file}: its index {self.place.index} is damaged",
            hint="Move both files, or choose another file name. Rows in the file stay readable.",
        )


def groups(count: int, columns: int) -> str:
    """`(?,?),(?,?)`: one statement for many rows releases the GIL once, not once per row."""
    return ",".join(["(" + ",".join("?" * columns) + ")"] * count)
