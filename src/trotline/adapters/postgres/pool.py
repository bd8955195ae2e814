"""A few connections of one process, lent for a transaction at a time.

Nothing lives longer than a transaction: no prepared statement, no session setting, no session lock. So it makes no
difference whether the server or a pgbouncer in transaction mode is at the other end.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from trotline.adapters.postgres.sink_url import Address
from trotline.errors import SettingsError
from trotline.model.time import Seconds

Connection = Any
"""asyncpg comes without types."""

_CONNECT_WITHIN: Seconds = 10.0
_LOCK_WITHIN: Seconds = 10.0
_IDLE: Seconds = 60.0
"""A connection that nobody used for so long is given back: others may be waiting for one."""
_FIRST_WAIT: Seconds = 0.05
_LONGEST_WAIT: Seconds = 2.0
_MARGIN: Seconds = 5.0
"""The server ends a statement by itself; only if it is gone do we have to."""
_FULL_OR_STARTING = (asyncpg.TooManyConnectionsError, asyncpg.CannotConnectNowError)


class Connections:
    def __init__(self, address: Address, name: str = "trotline") -> None:
        self._address = address
        self._name = name
        self._free: list[Connection] = []
        self._turns = asyncio.Semaphore(address.pool)
        self._retiring: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def transaction(
        self, *, within: Seconds = 0.0, lock: Seconds = 0.0, statements: int = 1
    ) -> AsyncIterator[Connection]:
        """A transaction that is committed, and durable, when the block ends; an error leaves nothing of it.

        `within`: the longest statement, if it is not what the address says; `lock`: the longest wait for somebody
        else's lock; `statements`: how many long ones to expect.
        """
        within = within or self._address.timeout
        lock = lock or min(_LOCK_WITHIN, within)
        async with self._turns:
            connection = await self._take()
            try:
                async with asyncio.timeout((within + lock) * max(1, statements) + _MARGIN):
                    await connection.execute(_begin(within, lock))
                    yield connection
                    await connection.execute("COMMIT")
            except BaseException:
                # It may hold half a transaction, or an answer that nobody waits for any more.
                connection.terminate()
                raise
            self._give_back(connection)

    async def close(self) -> None:
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
            # A server that was restarted has hung up on us meanwhile.
            if not connection.is_closed():
                return connection
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
        """A server that starts, or that has no room, is waited for: it will not be long, and a worker that gave up
        would have to be started again by somebody."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._address.patience
        wait = _FIRST_WAIT
        while True:
            try:
                return await dial(self._address, self._name)
            except _FULL_OR_STARTING:
                if clock() >= deadline:
                    raise
            await asyncio.sleep(wait)
            wait = min(_LONGEST_WAIT, wait * 2)


async def dial(address: Address, name: str) -> Connection:
    """A connection of one's own; `name` is what the server's administrator sees."""
    try:
        return await _dial(address, name)
    except ValueError as error:
        if isinstance(error, asyncpg.InterfaceError):
            raise
        # Of a host or an option that no server could have; trying again does not help.
        raise SettingsError(f"the sink {address.public} cannot be used: {error}", hint="Correct its URL.") from error


async def _dial(address: Address, name: str) -> Connection:
    return await asyncpg.connect(
        address.dsn,
        password=None if address.password is None else address.password.reveal(),
        timeout=_CONNECT_WITHIN,
        # Named statements would stay behind in a connection that pgbouncer gives to somebody else. Preparing
        # a statement for each batch costs less than can be measured (docs/decisions/045-postgresql-sink.md).
        statement_cache_size=0,
        server_settings={} if "application_name=" in address.dsn else {"application_name": name},
    )


async def end(connection: Connection) -> None:
    try:
        await connection.close(timeout=2.0)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
        connection.terminate()


def _begin(statement: Seconds, lock: Seconds) -> str:
    """One round trip. LOCAL: they end with the transaction, whoever has the connection next."""
    return (
        "BEGIN ISOLATION LEVEL READ COMMITTED;"
        f"SET LOCAL statement_timeout = {int(statement * 1000)}; SET LOCAL lock_timeout = {int(lock * 1000)};"
        f"SET LOCAL idle_in_transaction_session_timeout = {int((statement + lock) * 1000)};"
        # Where it is off, "stored" would not mean stored.
        "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"
    )
