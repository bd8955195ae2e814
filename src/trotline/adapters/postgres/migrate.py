"""The tables, by numbered migrations: NNN_name.sql in the folder beside this file, applied in order, once each."""

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
    """With {schema} where the schema's name goes."""


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
    """The last migration that was applied; 0: there are no tables."""
    # Asked of the catalog itself: to_regclass may answer from what the connection remembers.
    known = await connection.fetchval(
        "SELECT 1 FROM pg_class JOIN pg_namespace AS space ON space.oid = relnamespace"
        " WHERE nspname = $1 AND relname = 'schema_version'",
        address.schema,
    )
    if known is None:
        return 0
    return int(await connection.fetchval(f"SELECT coalesce(max(version), 0) FROM {address.quoted}.schema_version"))


async def upgrade(connections: Connections, address: Address) -> list[Migration]:
    """Bring the tables up to date; what was done for it. All of it or nothing, and one at a time: whoever else wants
    to do the same waits, and then finds nothing to do."""
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
    """Are they there? Tables of another version are an error: they are left alone."""
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
    """Before the first write: an empty schema gets its tables."""
    if not await has_tables(connections, address):
        await upgrade(connections, address)


async def take_turns(connection: Connection, address: Address, what: str) -> None:
    """Until the end of the transaction nobody else does the same."""
    await connection.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"trotline {address.schema} {what}"
    )


def _not_newer(found: int, address: Address) -> None:
    if found > NEWEST:
        raise SinkTooNew(
            f"the tables in {address.public} were made by a newer Trotline (version {found}; this one knows {NEWEST})",
            hint="Upgrade Trotline, or use another schema: ?schema=NAME",
        )


async def _make_schema(connection: Connection, address: Address) -> None:
    # Asked first: IF NOT EXISTS wants the right to make one even where it is there.
    if await connection.fetchval("SELECT 1 FROM pg_namespace WHERE nspname = $1", address.schema) is None:
        await connection.execute(f"CREATE SCHEMA {address.quoted}")
    await connection.execute(
        f"CREATE TABLE {address.quoted}.schema_version"
        " (version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
