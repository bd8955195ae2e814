"""Schema migrations: migrations/NNN_name.sql, applied in order, once each."""

from importlib.resources import files
from typing import NamedTuple

from trotline.adapters.postgres.pool import Connection, Connections
from trotline.adapters.postgres.sink_url import Address
from trotline.errors import SinkTooNew, SinkTooOld
from trotline.model.time import Seconds

_MIGRATE_WITHIN: Seconds = 600.0
_LOCK_WITHIN: Seconds = 60.0


class Migration(NamedTuple):
    number: int
    name: str
    sql: str
    """{schema} is a placeholder."""


def migrations() -> list[Migration]:
    folder = files("trotline.adapters.postgres") / "migrations"
    found = []
    for file in folder.iterdir():
        number, _, name = file.name.removesuffix(".sql").partition("_")
        if file.name.endswith(".sql") and number.isdecimal():
            found.append(Migration(int(number), name, file.read_text("utf-8")))
    return sorted(found)


NEWEST = max(migration.number for migration in migrations())


async def version(connection: Connection, address: Address) -> int:
    """The last applied migration; 0: no tables."""
    # From the catalog: to_regclass may use the connection's cache.
    known = await connection.fetchval(
        "SELECT 1 FROM pg_class JOIN pg_namespace AS space ON space.oid = relnamespace"
        " WHERE nspname = $1 AND relname = 'schema_version'",
        address.schema,
    )
    if known is None:
        return 0
    return int(await connection.fetchval(f"SELECT coalesce(max(version), 0) FROM {address.quoted}.schema_version"))


async def upgrade(connections: Connections, address: Address) -> list[Migration]:
    """Apply the missing migrations, in one transaction, and return them. Concurrent calls wait, and then find none."""
    async with connections.transaction(within=_MIGRATE_WITHIN, lock=_LOCK_WITHIN) as connection:
        await take_turns(connection, address, "migrate")
        found = await version(connection, address)
        _not_newer(found, address)
        missing = [migration for migration in migrations() if migration.number > found]
        if not found:
            await _make_schema(connection, address)
        for migration in missing:
            await connection.execute(migration.sql.replace("{schema}", address.quoted))
            await connection.execute(
                f"INSERT INTO {address.quoted}.schema_version (version, name) VALUES ($1, $2)",
                migration.number,
                migration.name,
            )
    return missing


async def has_tables(connections: Connections, address: Address) -> bool:
    """Do the tables exist? Raises if they are of another version."""
    async with connections.transaction() as connection:
        found = await version(connection, address)
    _not_newer(found, address)
    if 0 < found < NEWEST:
        raise SinkTooOld(
            f"the tables in {address.public} are of version {found}, and this Trotline needs {NEWEST}",
            hint="Run once, while the workers may go on: trotline db upgrade --sink URL",
        )
    return found > 0


async def prepare(connections: Connections, address: Address) -> None:
    """Before the first write: create the tables if there are none."""
    if not await has_tables(connections, address):
        await upgrade(connections, address)


async def take_turns(connection: Connection, address: Address, what: str) -> None:
    """An advisory lock until the end of the transaction."""
    await connection.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"trotline {address.schema} {what}"
    )


def _not_newer(found: int, address: Address) -> None:
    if found > NEWEST:
        raise SinkTooNew(
            f"the tables in {address.public} are of a newer Trotline (version {found}; this one knows {NEWEST})",
            hint="Upgrade Trotline, or use another schema: ?schema=NAME",
        )


async def _make_schema(connection: Connection, address: Address) -> None:
    # IF NOT EXISTS would need the privilege to create a schema even if it exists.
    if await connection.fetchval("SELECT 1 FROM pg_namespace WHERE nspname = $1", address.schema) is None:
        await connection.execute(f"CREATE SCHEMA {address.quoted}")
    await connection.execute(
        f"CREATE TABLE {address.quoted}.schema_version"
        " (version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
