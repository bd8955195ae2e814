"""Errors of sinks in local files: those of SQLite and of the disk, with what to do about them."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trotline.errors import SinkFileFails
from trotline.rules.file_errors import explain


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        what, hint = explain(error)
        raise SinkFileFails(f"cannot store rows in {path}: {what}", hint=hint) from error
