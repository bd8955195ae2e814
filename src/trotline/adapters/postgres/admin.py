"""What an operator asks of the sink's database: is it up to date, bring it up to date."""

import time

import msgspec

from trotline.adapters.postgres import migrate
from trotline.adapters.postgres.partitions import Partitions
from trotline.adapters.postgres.pool import Connection, Connections
from trotline.adapters.postgres.sink_url import Address


class Upgraded(msgspec.Struct, frozen=True):
    version: int
    applied: tuple[str, ...]
    """Migrations that were missing: "002 visits"."""
    partitions: tuple[str, ...]
    """Made ahead."""


class Status(msgspec.Struct, frozen=True):
    place: str
    schema: str
    server: str
    version: int
    """0: there are no tables."""
    newest: int
    records: int = 0
    """About; as the server's statistics have it."""
    bytes: int = 0
    """Of all tables and indexes of the schema."""
    partitions: tuple[str, ...] = ()


async def upgrade(connections: Connections, address: Address) -> Upgraded:
    applied = await migrate.upgrade(connections, address)
    made = await Partitions(connections, address).make_ahead(time.time())
    return Upgraded(
        version=migrate.NEWEST,
        applied=tuple(f"{migration.number:03} {migration.name}" for migration in applied),
        partitions=tuple(period.name for period in made),
    )


async def status(connections: Connections, address: Address) -> Status:
    """Looking changes nothing: no tables are made."""
    async with connections.transaction() as connection:
        return await _status(connection, address)


async def _status(connection: Connection, address: Address) -> Status:
    bare = Status(
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
