"""Validators in a small SQLite file next to the frontier's."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from trotline.adapters.sqlite_wal import write_ahead
from trotline.errors import ValidatorsTooNew, ValidatorsUnreachable
from trotline.model.http_validator import Validator
from trotline.model.time import Seconds
from trotline.rules.file_errors import explain
from trotline.rules.urls import fingerprint

T = TypeVar("T")

VERSION = 1
APPLICATION = 0x54524C56
"""Marks the file as validators, to distinguish it from other databases."""

# One row per page: a page that is read for another sink replaces it, so the table does not grow.
_TABLE = """
    CREATE TABLE validator (
        page INTEGER PRIMARY KEY, copy INTEGER NOT NULL, etag TEXT NOT NULL, modified TEXT NOT NULL)
"""
_RECALL = "SELECT etag, modified FROM validator WHERE page = ? AND copy = ?"
_REMEMBER = "INSERT OR REPLACE INTO validator (page, copy, etag, modified) VALUES (?, ?, ?, ?)"


class SqliteValidators:
    """Keeps V1 to V3 in the file at `path`, which several processes may share. Implements the Validators port.

    `copy` identifies what the validators are valid for: the sink, and the code that filled it.
    """

    def __init__(self, path: str | Path, spider: str, *, copy: str = "", patience: Seconds = 30.0) -> None:
        self.path = Path(path)
        self._copy = fingerprint(spider, copy)
        with self._plain_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Two connections: reads must not wait for a write that waits for the disk.
            self._writer = self._connect(patience)
            self._prepare()
            self._reader = self._connect(patience)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="trotline-validators")

    async def recall(self, page: int) -> Validator | None:
        with self._plain_errors():
            row = self._reader.execute(_RECALL, (page, self._copy)).fetchone()
        return Validator(*row) if row else None

    async def remember(self, seen: Sequence[tuple[int, Validator]]) -> None:
        rows = [(page, self._copy, validator.etag, validator.modified) for page, validator in seen]
        if rows:
            await self._write(lambda: self._writer.executemany(_REMEMBER, rows))

    async def forget(self) -> None:
        """Delete all: the next requests are unconditional."""
        await self._write(lambda: self._writer.execute("DELETE FROM validator"))

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._writer.close)
        self._reader.close()
        self._thread.shutdown(wait=False)

    async def _write(self, operation: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._in_transaction, operation)

    def _in_transaction(self, operation: Callable[[], T]) -> T:
        with self._plain_errors():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                result = operation()
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            return result

    def _connect(self, patience: Seconds) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=patience, isolation_level=None, check_same_thread=False)
        try:
            write_ahead(connection, patience)
            # NORMAL: after a power failure the last ones may be lost, and those pages are fetched again.
            connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _prepare(self) -> None:
        try:
            self._in_transaction(self._make_or_check)
        except BaseException:
            self._writer.close()
            raise

    def _make_or_check(self) -> None:
        [version] = self._writer.execute("PRAGMA user_version").fetchone()
        [application] = self._writer.execute("PRAGMA application_id").fetchone()
        if application == APPLICATION:
            if version > VERSION:
                raise ValidatorsTooNew(
                    f"{self.path} was written by a newer Trotline (format {version}; this one knows {VERSION})",
                    hint="Upgrade Trotline, or delete that file: every page is then fetched whole once.",
                )
            return
        if self._writer.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise ValidatorsUnreachable(
                f"{self.path} is a database, but not one of Trotline's validators",
                hint="Move that file, or name another frontier: --frontier sqlite:OTHER.db",
            )
        self._writer.execute(_TABLE)
        self._writer.execute(f"PRAGMA application_id = {APPLICATION}")
        self._writer.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            what, hint = explain(error)
            raise ValidatorsUnreachable(f"cannot use the validators in {self.path}: {what}", hint=hint) from error
