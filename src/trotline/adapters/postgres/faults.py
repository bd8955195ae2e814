"""Which rows of a batch are the ones that the server refuses."""

from collections.abc import Sequence
from typing import Any

import asyncpg

from trotline.adapters.postgres.pool import Connection, Connections
from trotline.adapters.postgres.trouble import is_of_a_row, said


async def find_faults(
    connections: Connections, statement: str, columns: Sequence[Sequence[Any]], others: Sequence[Any] = ()
) -> dict[int, str]:
    """The places of the bad rows, with the server's reason. Nothing is stored: every attempt is taken back.

    By halves: the error does not say which row it was. One bad row of 500 takes 20 attempts.
    """
    if not columns or not columns[0]:
        return {}
    count = len(columns[0])
    async with connections.transaction(statements=2 * count) as connection:
        return await _among(connection, statement, columns, others, 0, count)


async def _among(
    connection: Connection,
    statement: str,
    columns: Sequence[Sequence[Any]],
    others: Sequence[Any],
    start: int,
    end: int,
) -> dict[int, str]:
    why = await _attempt(connection, statement, [column[start:end] for column in columns], others)
    if not why:
        return {}
    if end - start == 1:
        return {start: why}
    middle = (start + end) // 2
    return {
        **await _among(connection, statement, columns, others, start, middle),
        **await _among(connection, statement, columns, others, middle, end),
    }


async def _attempt(
    connection: Connection, statement: str, columns: Sequence[Sequence[Any]], others: Sequence[Any]
) -> str:
    """Why the server refuses these rows; empty if it takes them."""
    why = ""
    await connection.execute("SAVEPOINT attempt")
    try:
        await connection.execute(statement, *columns, *others)
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        if not is_of_a_row(error):
            raise
        why = said(error)
    await connection.execute("ROLLBACK TO SAVEPOINT attempt")
    return why
