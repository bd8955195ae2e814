"""Does the server take writes? For `trotline doctor`: a full disk and a read-only standby answer every question.

A row in a temporary table would stay in the memory of the session, and a row in an old table may find room in it. So a
new table grows by a megabyte, which is rolled back. The transaction itself is committed: that is written and synced,
and waits for the standby of a server that has a synchronous one.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trotline.adapters.postgres.pool import Connection
from trotline.adapters.postgres.sink_url import Address
from trotline.errors import FrontierUnreachable, SinkUnreachable
from trotline.model.time import Seconds

WITHIN: Seconds = 10.0
"""A small write that takes longer would hold up all workers."""
_NAME = "trotline_write_check"
_MAY_CREATE = """
SELECT (SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = $1) AS in_schema,
    has_database_privilege(current_database(), 'CREATE') AS a_schema,
    has_database_privilege(current_database(), 'TEMPORARY') AS for_itself
"""
_A_MEGABYTE = "INSERT INTO {table} SELECT repeat('x', 1000) FROM generate_series(1, 1000)"
"""No value is so long that it would be compressed."""


@asynccontextmanager
async def in_time(address: Address, error: type[FrontierUnreachable] | type[SinkUnreachable]) -> AsyncIterator[None]:
    """Around the transaction of `try_write`."""
    try:
        async with asyncio.timeout(WITHIN):
            yield
    except TimeoutError as slow:
        raise error(
            f"{address.public} has not finished a small write within {WITHIN:.0f} s",
            hint="Is its disk very slow, does another session hold a lock (pg_stat_activity), or does it wait for a "
            "standby that is down (synchronous_standby_names)?",
        ) from slow


async def try_write(db: Connection, address: Address) -> None:
    """In the caller's transaction, which is to be committed. Nothing is left behind."""
    await db.execute("SAVEPOINT write_check")
    table = await _new_table(db, address)
    if table:
        await db.execute(_A_MEGABYTE.format(table=table))
    await db.execute("ROLLBACK TO SAVEPOINT write_check")


async def _new_table(db: Connection, address: Address) -> str:
    """Its name; empty: this user may create none. Without a line in the write-ahead log: standbys do not get it."""
    may = await db.fetchrow(_MAY_CREATE, address.schema)
    if may["in_schema"] is None and may["a_schema"]:
        await db.execute(f"CREATE SCHEMA {address.quoted}")
    elif not may["in_schema"]:
        if may["for_itself"]:
            # It is on the disk of the database, too, if the server has no other one for temporary tables.
            await db.execute(f"CREATE TEMPORARY TABLE {_NAME} (x text)")
        return _NAME if may["for_itself"] else ""
    await db.execute(f"CREATE UNLOGGED TABLE {address.quoted}.{_NAME} (x text)")
    return f"{address.quoted}.{_NAME}"
