"""Finds the rows of a batch that the server rejects."""

from collections.abc import Sequence
from typing import Any

import asyncpg

from trotline.adapters.postgres.errors import is_of_a_row, said
from trotline.adapters.postgres.pool import Connection, Connections

Columns = Sequence[Sequence[Any]]


async def find_faults(
    connections: Connections, statement: str, parts: Sequence[Columns], others: Sequence[Any] = ()
) -> list[dict[int, str]]:
    """For each part, the positions of the bad rows, with the server's reason. Everything is rolled back.

    By bisection, as the error does not identify the row: one bad row of 500 takes 20 attempts. Good rows stay until the
    end, so that of two conflicting rows the second is found.
    """
    count = sum(len(columns[0]) for columns in parts)
    async with connections.transaction(statements=2 * count) as connection:
        # Deferred constraints would be checked after the rollback.
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
    """Why the server rejects these rows; empty if it accepts them."""
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
