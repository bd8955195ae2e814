"""What an operator should know about a PostgreSQL server before tasks are trusted to it."""

from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.pool import Connection
from trotline.adapters.postgres.write_check import in_time, try_write
from trotline.errors import FrontierError, FrontierUnreachable
from trotline.model.time import Seconds
from trotline.ports.backend import Notice

OLD_SNAPSHOT: Seconds = 60.0
"""A snapshot that is held for longer keeps VACUUM from removing ended tasks: every lease has to pass over them."""
LONG_LOCK: Seconds = 5.0
"""Our own transactions are over sooner: who keeps others waiting for longer has forgotten to end one."""
FEW_CONNECTIONS = 20
"""With fewer free connections a fleet of some workers fills the server."""
_LONGEST_NAME = 60

_SNAPSHOTS = """
SELECT what, extract(epoch FROM clock_timestamp() - since)::float8 AS age FROM (
    SELECT 'session ' || pid || ' (' || coalesce(nullif(application_name, ''), 'no name') || ', '
        || coalesce(state, 'unknown state') || ')' AS what, xact_start AS since
    FROM pg_stat_activity
    WHERE datname = current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
        AND backend_type NOT IN ('autovacuum worker', 'walsender')
    UNION ALL
    SELECT 'prepared transaction ' || gid, prepared FROM pg_prepared_xacts WHERE database = current_database()
) held WHERE since < clock_timestamp() - $1 * interval '1 second' ORDER BY since LIMIT 1
"""
_LOCKS = """
SELECT 'session ' || b.pid || ' (' || coalesce(nullif(b.application_name, ''), 'no name') || ', '
    || coalesce(b.state, 'unknown state') || ')' AS what, b.pid,
    extract(epoch FROM clock_timestamp() - b.xact_start)::float8 AS age
FROM pg_stat_activity b
WHERE b.datname = current_database() AND b.pid <> pg_backend_pid() AND b.backend_type = 'client backend'
    AND b.xact_start < clock_timestamp() - $1 * interval '1 second' AND cardinality(pg_blocking_pids(b.pid)) = 0
    AND (EXISTS (
        SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
        WHERE l.pid = b.pid AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = b.datname)
            AND c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND l.mode IN
                ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    ) OR EXISTS (
        SELECT 1 FROM pg_stat_activity w
        WHERE w.datname = b.datname AND w.wait_event_type = 'Lock' AND b.pid = ANY(pg_blocking_pids(w.pid))
    ))
ORDER BY b.xact_start LIMIT 1
"""
"""A lock of a table is known by itself: between two attempts of our workers nobody waits for it. One of rows is not."""
_MAY_CREATE = """
SELECT quote_ident(current_user) AS who, coalesce(
    (SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = $1),
    has_database_privilege(current_database(), 'CREATE')
) AS may
"""
_SETTINGS = "SELECT name, setting FROM pg_settings WHERE name = ANY($1)"
_CONNECTIONS = """
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS most,
    count(*) FILTER (WHERE coalesce(backend_type, 'client backend') = 'client backend') AS used,
    count(*) FILTER (WHERE backend_type IS NULL AND datname = current_database()) AS hidden
FROM pg_stat_activity
"""
"""Of sessions that this user may not look at, the type is NULL."""
_SLOTS = """
SELECT slot_name FROM pg_replication_slots
WHERE xmin IS NOT NULL AND NOT active AND (slot_type = 'physical' OR database = current_database()) LIMIT 1
"""
_UNSAFE = {
    "fsync": "a crash of the machine can destroy the tables",
    "full_page_writes": "a crash of the machine can destroy the tables",
    "autovacuum": "tables grow without limit, and leases become slow",
}


async def notices(database: Database) -> list[Notice]:
    """Creates nothing. FrontierError: what a run would have to create cannot be, or nothing can be written."""
    exists = await database.exists()
    async with in_time(database.address, FrontierUnreachable), database.transaction(create=False) as db:
        if not exists:
            await _check_may_create(db, database)
        await try_write(db, database.address)
    async with database.transaction(create=False) as db:
        return [
            *await _settings(db, database.place),
            *await _locks(db, database.place),
            *await _snapshots(db, database.place),
            *await _connections(db, database.place),
            *_pooler(db.get_server_pid(), await db.fetchval("SELECT pg_backend_pid()"), database.place),
        ]


async def _check_may_create(db: Connection, database: Database) -> None:
    row = await db.fetchrow(_MAY_CREATE, database.address.schema)
    if row is None or row["may"]:
        return
    schema = database.address.quoted
    raise FrontierError(
        f"the user {row['who']} may not create the tables of a frontier at {database.place}",
        hint=f"As an administrator: CREATE SCHEMA IF NOT EXISTS {schema}; GRANT ALL ON SCHEMA {schema} TO {row['who']}",
    )


async def _settings(db: Connection, place: str) -> list[Notice]:
    found = {row["name"]: row["setting"] for row in await db.fetch(_SETTINGS, list(_UNSAFE))}
    return [
        Notice(f"{place} runs with {name} = off: {harm}", f"Set {name} = on in the server's configuration.")
        for name, harm in _UNSAFE.items()
        if found.get(name) == "off"
    ]


async def _locks(db: Connection, place: str) -> list[Notice]:
    row = await db.fetchrow(_LOCKS, LONG_LOCK)
    if row is None:
        return []
    text = f"{place}: {_short(row['what'])} has held a lock for {row['age']:,.0f} s: workers wait for it"
    return [Notice(text, f"End its transaction: SELECT pg_terminate_backend({row['pid']})")]


async def _snapshots(db: Connection, place: str) -> list[Notice]:
    found = []
    if row := await db.fetchrow(_SNAPSHOTS, OLD_SNAPSHOT):
        text = (
            f"{place}: {_short(row['what'])} has held a snapshot for {row['age']:,.0f} s: VACUUM removes nothing "
            "meanwhile, and leases become slower"
        )
        advice = "End it, or run reports and dumps on a standby (with hot_standby_feedback = off)."
        found.append(Notice(text, advice))
    if slot := await db.fetchval(_SLOTS):
        text = f"{place}: the replication slot {_short(slot)} is not used, and keeps VACUUM from removing anything"
        found.append(Notice(text, "Start its standby, or drop it: SELECT pg_drop_replication_slot('NAME')"))
    return found


async def _connections(db: Connection, place: str) -> list[Notice]:
    row = await db.fetchrow(_CONNECTIONS)
    found, free = [], max(0, row["most"] - row["used"])
    if free < FEW_CONNECTIONS:
        text = f"{place} has {free} of {row['most']} connections left, and a worker process uses up to five"
        found.append(Notice(text, "Raise max_connections, or put pgbouncer (transaction mode) before the server."))
    if row["hidden"]:
        text = (
            f"{place}: this user does not see what {row['hidden']} other sessions do: it is unknown whether one of "
            "them holds a lock or an old snapshot"
        )
        found.append(Notice(text, "Let it look: GRANT pg_read_all_stats TO its user."))
    return found


def _pooler(announced: int, real: int, place: str) -> list[Notice]:
    """A pooler announces a number of its own instead of the server process's."""
    if announced == real:
        return []
    text = f"{place} is a connection pooler: wake-ups do not pass it, and idle workers look for tasks once a second"
    return [Notice(text, "That is fine for most crawls. Name the server itself to be woken at once.")]


def _short(name: str) -> str:
    """Names that others chose."""
    return "".join(char if char.isprintable() else "?" for char in name)[:_LONGEST_NAME]
