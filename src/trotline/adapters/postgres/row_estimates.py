"""How many rows the tables of a schema have, about: from the density that the last VACUUM or ANALYZE found, or from a
sample.

Not from the cumulative statistics: after a crash of the server they begin at 0.
"""

from typing import Any

from trotline.adapters.postgres.pool import Connection
from trotline.adapters.postgres.sink_url import Address
from trotline.model.schema import TableSize

_SAMPLED = 100
"""Pages that are read of a table that was never analysed; a smaller one is counted."""
_TABLES = """
SELECT relname, reltuples::float8, relpages, pg_total_relation_size(pg_class.oid) AS bytes, relispartition,
    pg_relation_size(pg_class.oid) / current_setting('block_size')::int AS pages,
    has_table_privilege(pg_class.oid, 'SELECT') AS readable
FROM pg_class JOIN pg_namespace AS space ON space.oid = relnamespace
WHERE nspname = $1 AND relkind IN ('r', 'p') ORDER BY relname
"""


async def tables(connection: Connection, address: Address) -> list[TableSize]:
    return [
        TableSize(
            name=found["relname"],
            rows=await _rows(connection, address, found),
            bytes=found["bytes"],
            partition=found["relispartition"],
        )
        for found in await connection.fetch(_TABLES, address.schema)
    ]


async def _rows(connection: Connection, address: Address, found: Any) -> int | None:
    if not found["pages"]:
        return 0
    if found["relpages"] and found["reltuples"] > 0:
        return int(found["reltuples"] * found["pages"] / found["relpages"])
    if not found["readable"]:
        return None
    share = min(100.0, 100.0 * _SAMPLED / found["pages"])
    name = found["relname"].replace('"', '""')
    rows = await connection.fetchval(f'SELECT count(*) FROM {address.quoted}."{name}" TABLESAMPLE SYSTEM ({share})')
    return int(rows * 100.0 / share)
