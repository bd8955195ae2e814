"""Reads a user's own table in an SQLite file, row by row."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

from trotline.errors import SettingsError

_AT_ONCE = 500


async def rows(path: str, table: str) -> AsyncIterator[dict[str, Any]]:
    """Every row, in the order of the file."""
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))
    try:
        with closing(_opened(path)) as db:
            found = await asyncio.to_thread(db.execute, f"SELECT * FROM {quoted}")
            while some := await asyncio.to_thread(found.fetchmany, _AT_ONCE):
                for row in some:
                    yield dict(row)
    except sqlite3.Error as error:
        raise SettingsError(f"table {table} of {path} cannot be read: {error}", hint="Check its name.") from error


def _opened(path: str) -> sqlite3.Connection:
    if not Path(path).is_file():
        raise SettingsError(f"there is no file {path}", hint="Name the one that has the table: --at sqlite:PATH")
    db = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
    db.row_factory = sqlite3.Row
    return db
