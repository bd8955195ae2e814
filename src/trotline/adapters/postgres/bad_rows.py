"""Which rows of a batch are the ones that the server refuses."""

from collections.abc import Sequence
from typing import Any

import asyncpg

from trotline.adapters.postgres.errors import is_of_a_row, said
from trotline.adapters.postgres.pool import Connection, Connections

Columns = Sequence[Sequence[Any]]


async def find_faults(
    connections: Connections, statement: str, parts: Sequence[Columns], others: Sequence[Any] = ()
) -> list[dict[int, str]]:
    """For each part, the places of the bad rows, with the server's reason. Nothing is stored: all is taken back.

    By halves: the error does not say which row it was. One bad row of 500 takes 20 attempts. What is good stays until
    the end, so that of two rows that cannot live together the second is found.
    """
    count = sum(len(columns[0]) for columns in parts)
    async with connections.transaction(statements=2 * count) as connection:
        # A rule that is looked at when the transaction ends would find nothing to look at.
        await connection.execute("SET CONSTRAINTS ALL IMMEDIATE; SAVEPOINT before")
        found = [await _among(connection, statement, columns, others, 0, len(columns[0])) for columns in parts]
        await connection.execute("ROLLBACK TO SAVEPOINT before")
    return found


async def _among(
    connection: Connection,
    statement: str,
    columns: Columns,
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


async def _attempt(connection: Connection, statement: str, columns: Columns, others: Sequence[Any]) -> str:
    """Why the server refuses these rows; empty if it takes them."""
    await connection.execute("SAVEPOINT attempt")
    try:
        await connection.execute(statement, *columns, *others)
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        if not is_of_a_row(error):
            raise
        await connection.execute("ROLLBACK TO SAVEPOINT attempt")
        return said(error)
    await connection.execute("RELEASE SAVEPOINT attempt")
    return ""
