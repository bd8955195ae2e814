"""A small connection pool, for one transaction at a time.

Works with pgbouncer in transaction mode: nothing lives longer than a transaction, no prepared statement, session
setting or session lock.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

import asyncpg
import msgspec

from trotline.adapters.postgres.connect_patience import ConnectPatience
from trotline.adapters.postgres.sink_url import Address
from trotline.errors import SettingsError, TrotlineError
from trotline.model.time import Seconds

Connection = Any
"""asyncpg has no types."""

_CONNECT_WITHIN: Seconds = 10.0
_LOCK_WITHIN: Seconds = 10.0
_IDLE: Seconds = 60.0
"""Idle connections are closed after this: other clients may need them."""
_FIRST_WAIT: Seconds = 0.05
_LONGEST_WAIT: Seconds = 2.0
_MARGIN: Seconds = 5.0
"""The server enforces statement timeouts; this is for a server that is gone."""
_STATEMENTS = 500
"""Prepared statements of a connection, where they are allowed."""
_TROUBLE = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""Of a connection."""
_FULL_OR_STARTING = (asyncpg.TooManyConnectionsError, asyncpg.CannotConnectNowError)


class Connections:
    def __init__(self, address: Address, name: str = "trotline") -> None:
        self._address = address
        self._name = name
        self._free: list[Connection] = []
        self._turns = asyncio.Semaphore(address.pool)
        self._patience = _PATIENCE.setdefault((address.dsn, address.patience), ConnectPatience(address.patience))
        self._retiring: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self.users = 1
        """`close` by the last one closes them; see `shared`."""
        self.broken = 0
        """Connections that failed. After that the server may be another one."""

    @property
    def direct(self) -> bool:
        """They lead to a server, not to a pooler, as far as is known."""
        return bool(self._address.prepare)

    @asynccontextmanager
    async def transaction(
        self, *, within: Seconds = 0.0, lock: Seconds = 0.0, statements: int = 1
    ) -> AsyncIterator[Connection]:
        """A durable transaction; rolled back after an error.

        `within`: statement timeout, by default that of the address; `lock`: lock timeout; `statements`: how many long
        ones to expect.
        """
        within = within or self._address.timeout
        lock = lock or min(_LOCK_WITHIN, within)
        async with self.session() as connection, asyncio.timeout((within + lock) * max(1, statements) + _MARGIN):
            try:
                await connection.execute(_begin(within, lock))
                yield connection
                await connection.execute("COMMIT")
            except BaseException:
                # It may be inside a transaction.
                connection.terminate()
                raise

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Connection]:
        """A connection, outside of a transaction. The caller leaves it so, or it is closed."""
        async with self._turns:
            connection = await self._take()
            try:
                yield connection
            except BaseException as error:
                if not connection.is_closed() and not connection.is_in_transaction() and _is_answer(error):
                    self._give_back(connection)
                else:
                    # It may be inside a transaction, or have an unread answer.
                    self.broken += not isinstance(error, asyncio.CancelledError)
                    connection.terminate()
                raise
            self._give_back(connection)

    async def close(self) -> None:
        self.users -= 1
        if self.users > 0:
            return
        if self._retiring is not None:
            self._retiring.cancel()
        free, self._free = self._free, []
        for connection in free:
            await end(connection)
        if self._closing:
            await asyncio.wait(self._closing)

    async def _take(self) -> Connection:
        while self._free:
            connection = self._free.pop()
            # Closed after a restart of the server.
            if not connection.is_closed():
                return connection
            self.broken += 1
        return await self._connect()

    def _give_back(self, connection: Connection) -> None:
        self._free.append(connection)
        if self._retiring is not None:
            self._retiring.cancel()
        self._retiring = asyncio.get_running_loop().call_later(_IDLE, self._retire)

    def _retire(self) -> None:
        free, self._free = self._free, []
        for connection in free:
            task = asyncio.get_running_loop().create_task(end(connection))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _connect(self) -> Connection:
        """Retries while the server is starting or has no free connection."""
        clock = asyncio.get_running_loop().time
        wait = _FIRST_WAIT
        while True:
            try:
                connection = await self._dial()
            except _FULL_OR_STARTING:
                left = self._patience.left(clock())
                if not left:
                    raise
            else:
                self._patience.reset()
                return connection
            await asyncio.sleep(min(wait, left))
            wait = min(_LONGEST_WAIT, wait * 2)

    async def _dial(self) -> Connection:
        if self._address.prepare is None:
            direct = _DIRECT.get(self._address.dsn)
            if direct is None:
                direct = _DIRECT[self._address.dsn] = await _is_direct(self._address, self._name)
            self._address = msgspec.structs.replace(self._address, prepare=direct)
        return await dial(self._address, self._name)


_DIRECT: dict[str, bool] = {}
"""What this process found out about servers: asking takes a connection of its own."""
_PATIENCE: dict[tuple[str, Seconds], ConnectPatience] = {}
"""Of servers, for a dashboard opens its jobs again and again while one is full."""
_SHARED: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Connections]] = WeakKeyDictionary()


def shared(url: str, address: Address, name: str) -> Connections:
    """The connections of this process to this URL: a dashboard that looks at fifty jobs needs no fifty connections.
    For callers in an event loop: another loop has others."""
    known = _SHARED.setdefault(asyncio.get_running_loop(), {})
    found = known.get(url)
    if found is None or found.users <= 0:
        found = known[url] = Connections(address, name)
    else:
        found.users += 1
    return found


async def _is_direct(address: Address, name: str) -> bool:
    """Is it a server, and not a pooler? That announces a number of its own instead of the server process's."""
    connection = await dial(address, name)
    try:
        # A pooler answers when the server has a connection for it, by default within two minutes.
        real = await connection.fetchval("SELECT pg_backend_pid()", timeout=_CONNECT_WITHIN)
        return bool(connection.get_server_pid() == real)
    finally:
        await end(connection)


async def dial(address: Address, name: str) -> Connection:
    """A new connection; `name`: its application_name."""
    try:
        return await _dial(address, name)
    except ValueError as error:
        if isinstance(error, asyncpg.InterfaceError):
            raise
        # An invalid host or option: retrying does not help.
        raise SettingsError(f"{address.public} cannot be used: {error}", hint="Correct its URL.") from error


async def _dial(address: Address, name: str) -> Connection:
    return await asyncpg.connect(
        address.dsn,
        password=None if address.password is None else address.password.current(),
        timeout=_CONNECT_WITHIN,
        # Named statements would remain in a connection that pgbouncer gives to another client. For the sink, preparing
        # a statement for each batch costs less than can be measured (docs/decisions/045-postgresql-sink.md).
        statement_cache_size=_STATEMENTS if address.prepare else 0,
        max_cached_statement_lifetime=0,
        server_settings={} if "application_name=" in address.dsn else {"application_name": name},
    )


def _is_answer(error: BaseException) -> bool:
    """Did the server answer, so that the connection can be used again?"""
    return isinstance(error, asyncpg.PostgresError | TrotlineError)


async def end(connection: Connection) -> None:
    try:
        await connection.close(timeout=2.0)
    except _TROUBLE:
        connection.terminate()


async def roll_back(connection: Connection) -> None:
    """After an error, which says what has happened. A connection that is broken as well is closed."""
    try:
        await connection.execute("ROLLBACK")
    except _TROUBLE:
        connection.terminate()


def _begin(statement: Seconds, lock: Seconds) -> str:
    """One round trip. LOCAL: the settings end with the transaction."""
    return (
        "BEGIN ISOLATION LEVEL READ COMMITTED;"
        f"SET LOCAL statement_timeout = {int(statement * 1000)}; SET LOCAL lock_timeout = {int(lock * 1000)};"
        f"SET LOCAL idle_in_transaction_session_timeout = {int((statement + lock) * 1000)};"
        # With "off" a commit would not be durable.
        "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"
    )
