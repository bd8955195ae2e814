"""Statements with text from anywhere: what PostgreSQL cannot hold (NUL, half a surrogate pair) is replaced by U+FFFD.

Reasons, names of tallies and of workers, records: all of them can have it, and a statement that is refused would cost
the whole batch. Tasks are stored as bytes, and keep what they have.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from trotline.adapters.postgres.pool import Connection

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class Session:
    """A connection in a transaction."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def execute(self, query: str, *values: Any) -> str:
        return str(await self._connection.execute(query, *storable(values)))

    async def fetch(self, query: str, *values: Any) -> Any:
        return await self._connection.fetch(query, *storable(values))

    async def fetchrow(self, query: str, *values: Any) -> Any:
        return await self._connection.fetchrow(query, *storable(values))

    async def fetchval(self, query: str, *values: Any) -> Any:
        return await self._connection.fetchval(query, *storable(values))

    def get_server_pid(self) -> int:
        """As it was announced; see `pg_backend_pid`."""
        return int(self._connection.get_server_pid())


def storable(values: Iterable[Any]) -> list[Any]:
    """The parameters of a statement; texts, and arrays of texts, so that they can be stored."""
    return [
        stored_text(value) if isinstance(value, str) else _array(value) if isinstance(value, list | tuple) else value
        for value in values
    ]


def stored_text(text: str) -> str:
    """The text as it is stored."""
    return text if text.isascii() and "\0" not in text else _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _array(values: Sequence[Any]) -> Sequence[Any]:
    try:
        whole = "".join(values)
    except TypeError:
        # Numbers or bytes; or texts, of which some are NULL.
        if not any(isinstance(value, str) for value in values):
            return values
    else:
        if not _UNSTORABLE.search(whole):
            return values
    return [stored_text(value) if isinstance(value, str) else value for value in values]
