"""Reads a user's own table in PostgreSQL, row by row."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg

from trotline.adapters.postgres.pool import dial, end
from trotline.adapters.postgres.sink_url import parse
from trotline.errors import SettingsError

_AT_ONCE = 500


async def rows(url: str, table: str) -> AsyncIterator[dict[str, Any]]:
    """All rows of one snapshot."""
    address = parse(url)
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))
    try:
        connection = await dial(address, "trotline push")
        try:
            async with connection.transaction(readonly=True, isolation="repeatable_read"):
                found = connection.cursor(f"SELECT * FROM {quoted}", prefetch=_AT_ONCE)
                async for row in found:
                    yield dict(row)
        finally:
            await end(connection)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        raise SettingsError(
            f"table {table} of {address.public} cannot be read: {error}", hint="Check its name, its schema and the URL."
        ) from error
