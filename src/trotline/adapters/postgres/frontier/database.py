"""The connections of a frontier in PostgreSQL, and its transactions.

Works with pgbouncer in transaction mode: settings and locks end with the transaction. Prepared statements are the
exception, which are used where no pooler is in between (`?prepare=yes`: in any case).
"""

import asyncio
import random
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import asyncpg

from trotline.adapters.postgres.frontier import schema
from trotline.adapters.postgres.frontier.errors import plain_errors
from trotline.adapters.postgres.frontier.storable_text import Session
from trotline.adapters.postgres.pool import Connection, Connections, roll_back
from trotline.adapters.postgres.sink_url import Address
from trotline.errors import FrontierError, FrontierTooNew, TrotlineError
from trotline.model.time import Moment, Seconds

T = TypeVar("T")
NAME = "trotline frontier"
"""The application_name of its connections."""
CLOCK = "extract(epoch FROM clock_timestamp())::float8"
"""The server's time. Not now(): that is when the transaction began."""
_ATTEMPTS = 6
"""Of a transaction that met a deadlock."""
_AGAIN = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
_LOCK_WITHIN: Seconds = 10.0
_IDLE_WITHIN: Seconds = 10.0
"""A client that stops in the middle of a transaction loses its locks after this."""
_MARGIN: Seconds = 5.0
"""The server enforces its timeouts; this is for a server that is gone."""
_PLANS = (
    "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;"
    "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off;"
)
"""Plans must not follow statistics: tables are empty when they are analysed, and full a minute later."""


class Database:
    """A frontier's schema on a server."""

    def __init__(
        self, address: Address, *, now: Callable[[], Moment] | None = None, connections: Connections | None = None
    ) -> None:
        """`now`: a clock instead of the server's, for tests. `connections`: those to use, and to close."""
        self.address = address
        self.place = address.public
        self.given_now = now
        self._connections = connections or Connections(address, NAME)
        self._closed = False
        self._ready: asyncio.Lock | None = asyncio.Lock()
        """None: the tables exist."""

    @property
    def direct(self) -> bool:
        """Notifications arrive: behind a pooler they do not."""
        return self._connections.direct

    @property
    def generation(self) -> int:
        """Counts connections that broke: after a failover the server may have lost state."""
        return self._connections.broken

    async def exists(self) -> bool:
        """Are the tables there? For those who only read: they create nothing."""
        if self._ready is not None:
            with plain_errors(self.address):
                async with self._connections.transaction() as db:
                    if not await self._is_current(db):
                        return False
            self._ready = None
        return True

    async def now(self, db: Connection) -> Moment:
        """The server's time."""
        return float(await db.fetchval(f"SELECT {CLOCK}")) if self.given_now is None else self.given_now()

    @asynccontextmanager
    async def transaction(
        self, *, durable: bool = True, plans: bool = False, first: str = "", view: bool = False, create: bool = True
    ) -> AsyncIterator[Connection]:
        """A transaction; rolled back after an error.

        `durable`: survives a crash of the server. `plans`: of the statements of workers, for which indexes are always
        right. `first`: SQL without parameters that is sent with BEGIN. `view`: read only, all statements at one moment.
        `create`: the tables, if they are missing.
        """
        if self._ready is not None and create:
            await self._prepare()
        with plain_errors(self.address):
            async with self._connections.session() as db, asyncio.timeout(self.address.timeout * 3 + _MARGIN):
                await db.execute(self._begin(durable, plans, view) + first)
                try:
                    yield Session(db)
                except (TrotlineError, asyncpg.PostgresError):
                    # The connection is in order, in most cases: it goes back.
                    await roll_back(db)
                    raise
                await db.execute("COMMIT")

    async def run(self, step: Callable[[Connection], Awaitable[T]], *, durable: bool = True, first: str = "") -> T:
        """A worker's transaction; repeated after a deadlock."""
        for attempt in range(_ATTEMPTS):
            try:
                async with self.transaction(durable=durable, plans=True, first=first) as db:
                    return await step(db)
            except FrontierError as error:
                if not isinstance(error.__cause__, _AGAIN) or attempt == _ATTEMPTS - 1:
                    raise
            await asyncio.sleep(random.uniform(0.0, 0.01 * 2**attempt))  # noqa: S311 - spreads retries
        raise AssertionError("unreachable")

    async def vacuum(self, *tables: str) -> None:
        """Outside of a transaction, and without waiting for another vacuum."""
        with plain_errors(self.address):
            for table in tables:
                async with self._connections.session() as db:
                    await db.execute(f"VACUUM (SKIP_LOCKED, TRUNCATE false, PARALLEL 0) {self.address.quoted}.{table}")

    def lock_shared(self, job: int) -> str:
        """SQL: the job is not judged finished during this transaction."""
        return f"SELECT pg_advisory_xact_lock_shared({self.lock_class()}, {job});"

    def lock_alone(self, job: int) -> str:
        """SQL: no other transaction adds or ends tasks of the job."""
        return f"SELECT pg_advisory_xact_lock({self.lock_class()}, {job});"

    def lock_class(self, what: str = "job") -> int:
        """The first number of an advisory lock."""
        return zlib.crc32(f"trotline {self.address.schema} {what}".encode()) - (1 << 31)

    async def close(self) -> None:
        # Once: other users of the same connections count on theirs.
        if not self._closed:
            self._closed = True
            await self._connections.close()

    def _begin(self, durable: bool, plans: bool, view: bool) -> str:
        within = int(self.address.timeout * 1000)
        lock = int(min(_LOCK_WITHIN, self.address.timeout) * 1000)
        level = "REPEATABLE READ READ ONLY" if view else "READ COMMITTED"
        # Before its snapshot, which LOCK does not take: a table that is rewritten later would be empty (rotation.py).
        whole = "LOCK TABLE meta IN ACCESS SHARE MODE;" if view else ""
        return (
            f"BEGIN ISOLATION LEVEL {level}; SET LOCAL search_path = {self.address.quoted};"
            f"SET LOCAL statement_timeout = {within}; SET LOCAL lock_timeout = {lock};"
            f"SET LOCAL idle_in_transaction_session_timeout = {int(min(_IDLE_WITHIN, self.address.timeout) * 1000)};"
            f"SET LOCAL synchronous_commit = {'on' if durable else 'off'};{_PLANS if plans else ''}{whole}"
        )

    async def _prepare(self) -> None:
        if (lock := self._ready) is None:
            return
        async with lock:
            if self._ready is None:
                return
            with plain_errors(self.address):
                async with self._connections.transaction() as db:
                    if not await self._is_current(db):
                        await self._create(db)
            self._ready = None

    async def _create(self, db: Connection) -> None:
        key = f"trotline {self.address.schema} tables"
        await db.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", key)
        if await self._is_current(db):
            return
        # IF NOT EXISTS would need the privilege to create a schema even if it exists.
        if await db.fetchval("SELECT 1 FROM pg_namespace WHERE nspname = $1", self.address.schema) is None:
            await db.execute(f"CREATE SCHEMA {self.address.quoted}")
        await db.execute(f"SET LOCAL search_path = {self.address.quoted}")
        await db.execute(schema.TABLES)

    async def _is_current(self, db: Connection) -> bool:
        known = await db.fetchval(
            "SELECT 1 FROM pg_class JOIN pg_namespace AS space ON space.oid = relnamespace"
            " WHERE nspname = $1 AND relname = 'meta'",
            self.address.schema,
        )
        if known is None:
            return False
        found = int(await db.fetchval(f"SELECT max(version) FROM {self.address.quoted}.meta"))
        if found > schema.VERSION:
            raise FrontierTooNew(
                f"the frontier {self.place} was created by a newer Trotline (format {found}, this one knows"
                f" {schema.VERSION})",
                hint="Upgrade Trotline, or name another schema: ?schema=NAME",
            )
        if found < schema.VERSION:
            raise FrontierError(
                f"the frontier {self.place} was created by an older Trotline (format {found}, this one needs"
                f" {schema.VERSION})",
                hint="Finish its jobs with that version, or name another schema: ?schema=NAME",
            )
        return True
