"""What becomes of a partition when its time is over: dropped, detached, or a Parquet file."""

import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import asyncpg

from trotline.adapters.parquet_table import write_table
from trotline.adapters.postgres.partition_periods import HISTORY
from trotline.adapters.postgres.pool import Connection, Connections
from trotline.adapters.postgres.row_columns import VISIT_TYPES
from trotline.adapters.postgres.sink_url import DETACH, PARQUET, Address
from trotline.model.time import Seconds

log = logging.getLogger("trotline.postgres")

_LOCK_WITHIN: Seconds = 1.0
"""Retiring a partition needs an exclusive lock on the table; while we wait for it, all writers wait, too."""
_READ_WITHIN: Seconds = 3600.0
_COUNT_WITHIN: Seconds = 60.0
"""Rows are counted again under that lock."""
_AT_ONCE = 5_000
_KINDS = {"text": "text", "bigint": "int", "integer": "int", "double precision": "float", "moment": "moment"}
_HISTORY_TYPES = {
    "site": "text", "kind": "text", "key": "text", "data": "jsonb", "url": "text", "since": "moment",
    "seen_at": "moment", "replaced_at": "moment", "job": "text",
}  # fmt: skip


async def retire(connections: Connections, address: Address, table: str, name: str) -> bool:
    """False: it is in use, or another coordinator was faster; next time."""
    try:
        rows = await _to_parquet(connections, address, table, name) if address.retire == PARQUET else None
        async with connections.transaction(within=_COUNT_WITHIN, lock=_LOCK_WITHIN) as connection:
            await _end(connection, address, table, name, rows)
    except _MoreRows:
        log.info("postgres.partition.busy %s rows were added while its file was written", name)
        return False
    except (asyncpg.LockNotAvailableError, asyncpg.UndefinedTableError) as error:
        log.info("postgres.partition.busy %s %s", name, error)
        return False
    return True


async def _end(connection: Connection, address: Address, table: str, name: str, rows: int | None) -> None:
    parent, partition = f"{address.quoted}.{table}", f"{address.quoted}.{name}"
    await connection.execute(f"ALTER TABLE {parent} DETACH PARTITION {partition}")
    if address.retire == DETACH:
        # Renamed: a late row may need a new partition of this name.
        await connection.execute(f"ALTER TABLE {partition} RENAME TO retired_{name}_{int(time.time())}")
        return
    if rows is not None and rows != await connection.fetchval(f"SELECT count(*) FROM {partition}"):
        raise _MoreRows
    await connection.execute(f"DROP TABLE {partition}")


async def _to_parquet(connections: Connections, address: Address, table: str, name: str) -> int:
    types = _HISTORY_TYPES if table == HISTORY else VISIT_TYPES
    columns = {column: _KINDS.get(kind, "text") for column, kind in types.items()}
    partition = f"{address.quoted}.{name}"
    async with connections.transaction(within=_READ_WITHIN) as connection:
        oid = await connection.fetchval("SELECT $1::regclass::oid::bigint", f"{address.quoted}.{name}")
        shown = ", ".join(_shown(column, kind) for column, kind in columns.items())
        cursor = await connection.cursor(f"SELECT {shown} FROM {partition}")
        path, rows = await write_table(address.parquet, f"{address.schema}.{name}", f"{oid}", columns, _batches(cursor))
    log.info("postgres.partition.written %s %s rows to %s", name, rows, path)
    return rows


def _shown(column: str, kind: str) -> str:
    if kind == "moment":
        return f"extract(epoch FROM {column})::float8"
    return f"{column}::text" if kind == "text" else column


async def _batches(cursor: Any) -> AsyncIterator[list[Any]]:
    while rows := await cursor.fetch(_AT_ONCE):
        yield rows


class _MoreRows(Exception):
    """The partition has more rows than its file."""
