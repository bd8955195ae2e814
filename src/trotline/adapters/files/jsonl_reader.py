"""Reads a file of JSON lines while workers write it: what is committed, and no killed writer's successor cuts off."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from trotline.adapters.files.file_paths import Place

_AT_ONCE = 1 << 16


class CommittedLines:
    """Each line once, in the order of the file; a record that was stored again with other data is another line."""

    def __init__(self, path: str | Path) -> None:
        self._place = Place(path)
        self._file: BinaryIO | None = None
        self._read = 0

    def new(self) -> Iterator[bytes]:
        """What was committed since the last call, in pieces that need not end with a line."""
        if self._file is None:
            if not self._place.file.exists():
                return
            self._file = self._place.file.open("rb")
        # One rewritten by `finish` has another inode. Ours is complete then, and is not written to any more.
        until = self._committed() if self._is_current(self._file) else os.fstat(self._file.fileno()).st_size
        while self._read < until and (piece := self._file.read(min(_AT_ONCE, until - self._read))):
            self._read += len(piece)
            yield piece

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _is_current(self, file: BinaryIO) -> bool:
        try:
            return os.path.samestat(self._place.file.stat(), os.fstat(file.fileno()))
        except FileNotFoundError:
            return False

    def _committed(self) -> int:
        if not self._place.index.exists():
            return 0
        with closing(sqlite3.connect(f"{self._place.index.as_uri()}?mode=ro", uri=True)) as index:
            try:
                row = index.execute("SELECT length, pending FROM state").fetchone()
            except sqlite3.OperationalError:
                # Its tables are not there yet, or it is locked: the next call reads it.
                return 0
        # Pending: the length of the file that will be moved in. The old one is read after that.
        return 0 if row is None or row[1] else int(row[0] or 0)
