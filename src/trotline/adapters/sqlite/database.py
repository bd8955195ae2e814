"""One SQLite file: opened, checked, and shared with other processes."""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from trotline.adapters import host_process
from trotline.adapters.replaced_file_check import Presence, frontier_gone
from trotline.adapters.sqlite import schema
from trotline.adapters.sqlite_wal import write_ahead
from trotline.errors import FrontierError, FrontierFileFails, FrontierTooNew
from trotline.model.time import Moment

T = TypeVar("T")
MEMORY = ":memory:"
"""The path of an in-memory database."""
BUSY = 30.0
"""Seconds to wait for another process's transaction."""


class Database:
    """A frontier file, used by one event loop.

    Statements run in the loop's own thread: in another one each of them would wait milliseconds for the GIL of a busy
    loop. Only waits for the disk or for another process run in a thread; with `inline` not even those, for
    deterministic simulations.
    """

    def __init__(self, path: str, *, now: Callable[[], Moment] | None = None, inline: bool = False) -> None:
        self.path = path
        self.shared = path != MEMORY
        """Other processes may have the file open, too."""
        self._thread = None if inline else ThreadPoolExecutor(1, thread_name_prefix="trotline-frontier")
        self._tx = asyncio.Lock()
        self._offset = 0.0
        self._given_now = now
        with self._plain_errors():
            self.connection = _connect(path)
            self._prepare()
        self._presence = Presence(path, frontier_gone)
        self._look()

    def now(self) -> Moment:
        """The file's time: the host's uptime clock plus the offset that the file's first user wrote down."""
        return self._given_now() if self._given_now else host_process.uptime() + self._offset

    async def write(self, step: Callable[[sqlite3.Connection], T], *, durable: bool = True) -> T:
        """Run `step` in a transaction, which survives a crash of the process, and with `durable` a power failure.

        A cancelled caller returns at once, while its transaction is completed.
        """
        if self._thread is None:
            with self._plain_errors(), self._transaction() as db:
                return step(db)
        return await asyncio.shield(asyncio.ensure_future(self._write(step, durable)))

    async def read(self, step: Callable[[sqlite3.Connection], T]) -> T:
        """Run `step` on one consistent view of the file."""
        async with self._tx:
            with self._plain_errors():
                self.connection.execute("BEGIN")
                try:
                    return step(self.connection)
                finally:
                    self.connection.execute("COMMIT")

    async def _write(self, step: Callable[[sqlite3.Connection], T], durable: bool) -> T:
        async with self._tx:
            self._look()
            with self._plain_errors():
                await self._begin(durable)
                try:
                    result = step(self.connection)
                    if durable:
                        await self._in_thread("COMMIT")
                    else:
                        self.connection.execute("COMMIT")
                except BaseException:
                    if self.connection.in_transaction:
                        self.connection.execute("ROLLBACK")
                    raise
                return result

    def _look(self) -> None:
        if self.shared:
            self._presence.check()

    async def _begin(self, durable: bool) -> None:
        # In WAL mode NORMAL only omits the fsync of the commit.
        self.connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self.connection.execute("PRAGMA busy_timeout = 0")
        try:
            self.connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            # Another process writes: wait in a thread.
            self.connection.execute(f"PRAGMA busy_timeout = {int(BUSY * 1000)}")
            await self._in_thread("BEGIN IMMEDIATE")

    async def _in_thread(self, statement: str) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self.connection.execute, statement)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    async def close(self) -> None:
        async with self._tx:
            self.connection.close()
        if self._thread is not None:
            self._thread.shutdown(wait=False)

    def _prepare(self) -> None:
        # No lock if there is nothing to write: another connection of this process may hold it, and wait for the loop
        # that we would block.
        if self._is_ready():
            return
        with self._transaction() as db:
            [version] = db.execute("PRAGMA user_version").fetchone()
            if version > schema.VERSION:
                raise FrontierTooNew(
                    f"{self.path} was written by a newer Trotline (format {version}, this one knows {schema.VERSION})",
                    hint="Upgrade Trotline, or name another file: --frontier sqlite:OTHER.db",
                )
            if 0 < version < schema.VERSION:
                raise FrontierError(
                    f"{self.path} was written by an older Trotline (format {version}, this one knows {schema.VERSION})",
                    hint="Finish the job with that version, or name another file: --frontier sqlite:OTHER.db",
                )
            if version == 0:
                self._create(db)
            self._add_missing(db)
            self._anchor(db)

    def _is_ready(self) -> bool:
        db = self.connection
        [version] = db.execute("PRAGMA user_version").fetchone()
        if version != schema.VERSION:
            return False
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not schema.ADDED_TABLES.keys() <= tables or _missing_columns(db):
            return False
        row = db.execute("SELECT boot, offset FROM anchor").fetchone()
        if not row or row[0] != host_process.boot():
            return False
        self._offset = row[1]
        return True

    def _create(self, db: sqlite3.Connection) -> None:
        if db.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise FrontierFileFails(
                f"{self.path} is a database, but not a frontier's",
                hint="Name another file: --frontier sqlite:OTHER.db",
            )
        for statement in schema.TABLES.split(";"):
            db.execute(statement)
        db.execute(schema.TRIGGER)
        db.execute(f"PRAGMA user_version = {schema.VERSION}")

    def _add_missing(self, db: sqlite3.Connection) -> None:
        for statement in schema.ADDED_TABLES.values():
            db.execute(statement)
        for table, name, form in _missing_columns(db):
            db.execute(f"ALTER TABLE {table} ADD COLUMN {name} {form}")
        for statement in schema.ADDED_INDEXES:
            db.execute(statement)

    def _anchor(self, db: sqlite3.Connection) -> None:
        boot = host_process.boot()
        row = db.execute("SELECT boot, offset FROM anchor").fetchone()
        if row and row[0] == boot:
            self._offset = row[1]
            return
        [latest] = db.execute("SELECT max(seen_at) FROM worker").fetchone()
        # After a reboot time continues from the last heartbeat in the file, even if the wall clock went back.
        self._offset = max(time.time(), latest or 0.0) - host_process.uptime()
        db.execute("INSERT OR REPLACE INTO anchor (id, boot, offset) VALUES (1, ?, ?)", (boot, self._offset))

    @contextlib.contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._explained(error) from error
        except OSError as error:
            raise FrontierFileFails(f"cannot open the frontier {self.path}: {error.strerror}") from error

    def _explained(self, error: sqlite3.Error) -> FrontierError:
        suspended = "Another process holds a lock for too long. Is one suspended (Ctrl-Z) during a write?"
        hints = {
            "locked": suspended,
            # The same, if the lock is one of those of the write-ahead log.
            "locking protocol": suspended,
            "full": "Free some space and run the same command again: nothing accepted is lost.",
            "I/O error": "Check the disk: is it full or unplugged? Then run the same command again: nothing is lost.",
            "not a database": "Name another file: --frontier sqlite:OTHER.db",
            "readonly": "Check the permissions of the file and of its folder.",
            "unable to open": "Check that the folder exists and that you may write in it.",
        }
        text = str(error)
        hint = next((hint for part, hint in hints.items() if part in text), "Check it with: trotline doctor")
        return FrontierFileFails(f"cannot use the frontier {self.path}: {text}", hint=hint)


def _missing_columns(db: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Table, name and type of each added column that the file lacks."""
    missing = []
    for table, columns in schema.ADDED_COLUMNS.items():
        there = {name for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,))}
        missing += [(table, name, form) for name, form in columns.items() if name not in there]
    return missing


def _connect(path: str) -> sqlite3.Connection:
    if path != MEMORY:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        if not Path(path).exists():
            # Tasks contain URLs and headers, possibly with secrets: readable by the owner only.
            Path(path).touch(mode=0o600)
    connection = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
    write_ahead(connection, BUSY)
    # FULL unless a transaction overrides it: admitted tasks survive a power failure. One fsync per batch.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -16384")
    # Fewer checkpoints: a page that changed many times is copied once.
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection
