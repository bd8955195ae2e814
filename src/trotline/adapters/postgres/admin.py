"""Status and upgrade of the sink's schema."""

import time

import msgspec

from trotline.adapters.postgres import migrate
from trotline.adapters.postgres.partitions import Partitions
from trotline.adapters.postgres.pool import Connection, Connections
from trotline.adapters.postgres.sink_url import Address
from trotline.model.schema import SchemaStatus, SchemaUpgrade


async def upgrade(connections: Connections, address: Address) -> SchemaUpgrade:
    applied = await migrate.upgrade(connections, address)
    made = await Partitions(connections, address).make_ahead(time.time())
    return SchemaUpgrade(
        version=migrate.NEWEST,
        applied=tuple(f"{migration.number:03} {migration.name}" for migration in applied),
        partitions=tuple(period.name for period in made),
    )


async def status(connections: Connections, address: Address) -> SchemaStatus:
    """Read-only: creates no tables."""
    async with connections.transaction() as connection:
        return await _status(connection, address)


async def _status(connection: Connection, address: Address) -> SchemaStatus:
    bare = SchemaStatus(
        place=address.public,
        schema=address.schema,
        server=str(await connection.fetchval("SELECT split_part(version(), ' on ', 1)")),
        version=await migrate.version(connection, address),
        newest=migrate.NEWEST,
    )
    if not bare.version:
        return bare
    tables = await connection.fetch(
        "SELECT relname, greatest(reltuples, pg_stat_get_live_tuples(pg_class.oid))::float8,"
        " pg_total_relation_size(pg_class.oid), relispartition FROM pg_class"
        " JOIN pg_namespace AS space ON space.oid = relnamespace WHERE nspname = $1 AND relkind IN ('r', 'p')"
        " ORDER BY relname",
        address.schema,
    )
    return msgspec.structs.replace(
        bare,
        records=max([0, *(int(rows) for name, rows, _, _ in tables if name == "records")]),
        bytes=sum(size for _, _, size, _ in tables),
        partitions=tuple(name for name, _, _, is_partition in tables if is_partition),
    )
