"""Status and upgrade of the sink's schema."""

import time
from datetime import UTC, datetime

import msgspec

from trotline.adapters.postgres import migrate, row_estimates
from trotline.adapters.postgres.partition_periods import HISTORY, VISITS, Period, named
from trotline.adapters.postgres.partitions import OTHER, Partitions
from trotline.adapters.postgres.pool import Connection, Connections
from trotline.adapters.postgres.sink_url import Address
from trotline.model.schema import DIVIDE, KEEP, PartitionPlan, Retention, SchemaStatus, SchemaUpgrade
from trotline.model.time import Moment, Seconds


async def upgrade(connections: Connections, address: Address) -> SchemaUpgrade:
    applied = await migrate.upgrade(connections, address)
    made = await Partitions(connections, address).make_ahead(time.time())
    made += await Partitions(connections, address, HISTORY).make_ahead(time.time())
    return SchemaUpgrade(
        version=migrate.NEWEST,
        applied=tuple(f"{migration.number:03} {migration.name}" for migration in applied),
        partitions=tuple(made),
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
    tables = await row_estimates.tables(connection, address)
    return msgspec.structs.replace(
        bare,
        records=next((table.rows for table in tables if table.name == "records"), 0),
        bytes=sum(table.bytes for table in tables),
        partitions=tuple(table.name for table in tables if table.partition),
        tables=tuple(tables),
    )


async def retention(connections: Connections, address: Address, now: Moment) -> Retention:
    async with connections.transaction() as connection:
        found = await _status(connection, address)
    sizes = {table.name: table for table in found.tables}
    plans = []
    for table, keep in ((VISITS, address.keep), (HISTORY, address.keep_history)):
        over = set(await Partitions(connections, address, table).expired(now)) if found.version else set()
        plans += [
            PartitionPlan(
                table=table,
                name=name,
                rows=size.rows,
                bytes=size.bytes,
                does=address.retire if name in over else KEEP,
                expires_at=_expires_at(period, keep),
            )
            for name, size in sizes.items()
            if name.startswith(f"{table}_") and (period := named(name)) is not None
        ]
    if (waiting := sizes.get(OTHER)) is not None and waiting.rows != 0:
        plans.append(
            PartitionPlan(
                table=HISTORY, name=OTHER, rows=waiting.rows, bytes=waiting.bytes, does=DIVIDE, expires_at=None
            )
        )
    return Retention(place=address.public, parquet=address.parquet, partitions=tuple(plans))


def _expires_at(period: Period, keep: Seconds) -> Moment | None:
    """When it is retired; None: never."""
    if not keep:
        return None
    return datetime(period.end.year, period.end.month, period.end.day, tzinfo=UTC).timestamp() + keep
