"""Waiting for work: workers that wait are notified by those that add or end tasks.

A notification is sent in a transaction of its own after the commit, and only if a worker waits: NOTIFY takes one lock
for the whole database at commit. One that is lost (behind pgbouncer LISTEN does not work) costs time: workers poll.
"""

import asyncio
import contextlib

import asyncpg

from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.errors import plain_errors
from trotline.adapters.postgres.pool import Connection, dial, end
from trotline.errors import TrotlineError
from trotline.model.time import Seconds

POLL: Seconds = 1.0
IDLE_POLL: Seconds = 15.0
_GAP: Seconds = 0.02
"""Between two notifications of one process."""
_PAUSE: Seconds = 1.0
_LOST = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError, TrotlineError)


class Wakeups:
    """Listens after the first wait, and sends."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._came = asyncio.Event()
        self._listening = asyncio.Event()
        self._listener: asyncio.Task[None] | None = None
        self._sender: asyncio.Task[None] | None = None
        self._wanted: set[int] = set()
        self._poll = POLL / 2

    def forget(self) -> None:
        """Clear earlier wake-ups."""
        self._came.clear()

    async def listen(self, job: int, patience: Seconds) -> None:
        """Listen for this job; returns when the server has confirmed it, or after `patience`."""
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen(job))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._listening.wait()

    async def wait(self, seconds: Seconds) -> bool:
        """Wait for a wake-up or a timeout. Where wake-ups arrive, and none came, twice as long each time. False: there
        is no need to look, as it would have come."""
        trusted = self._listening.is_set() and self._database.direct
        self._poll = min(IDLE_POLL, 2 * self._poll) if trusted else POLL
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, self._poll)):
                await self._came.wait()
        return self._came.is_set() or not trusted or self._poll <= POLL

    def found(self) -> None:
        """There was work: it may go on."""
        self._poll = POLL / 2

    def notify(self, job: int) -> None:
        """Soon, in the background."""
        self._came.set()
        self._wanted.add(job)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())

    async def close(self) -> None:
        if self._sender is not None:
            await asyncio.wait([self._sender], timeout=1.0)
        for task in (self._listener, self._sender):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        self._listener = self._sender = None

    def _channel(self, job: int) -> str:
        return f"trotline_{self._database.lock_class() & 0xFFFFFFFF:08x}_{job}"

    async def _send(self) -> None:
        while self._wanted:
            jobs, self._wanted = sorted(self._wanted), set()
            # A lost one is harmless: waiting workers poll.
            with contextlib.suppress(TrotlineError):
                async with self._database.transaction(durable=False) as db:
                    for job in jobs:
                        await db.execute("SELECT pg_notify($1, '')", self._channel(job))
            await asyncio.sleep(_GAP)

    async def _listen(self, job: int) -> None:
        while True:
            try:
                with plain_errors(self._database.address):
                    connection = await dial(self._database.address, "trotline frontier wake-ups")
                try:
                    await self._receive(connection, job)
                finally:
                    await end(connection)
            except _LOST:
                # Retried silently: the lease calls report the error.
                self._listening.clear()
                self._came.set()
                await asyncio.sleep(_PAUSE)

    async def _receive(self, connection: Connection, job: int) -> None:
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        await connection.add_listener(self._channel(job), lambda *_: self._came.set())
        self._listening.set()
        await lost.wait()
        raise OSError("the connection for notifications was closed")
