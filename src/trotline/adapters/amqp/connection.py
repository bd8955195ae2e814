"""Connections to RabbitMQ: opened when they are needed, and again after an error."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import aiormq
from aiormq.abc import AbstractChannel

from trotline.adapters.amqp.broker_url import Address
from trotline.adapters.amqp.errors import LIBRARY, explained
from trotline.adapters.amqp.transport import Transport
from trotline.errors import FrontierError
from trotline.model.time import Seconds

T = TypeVar("T")

CONNECT: Seconds = 5.0
ANSWER: Seconds = 10.0
"""A server that blocks publishers, as its memory or disk is short, does not answer either."""
HEARTBEAT = 10
OLDEST = (3, 10)
"""The oldest RabbitMQ whose quorum queues can dead-letter without loss."""

# It reports each lost connection, and its connections by their URL: we do that ourselves.
logging.getLogger("aiormq").setLevel(logging.CRITICAL)


class Line:
    """A connection with one channel. After any error both are closed, and opened again by the next call."""

    def __init__(self, address: Address, name: str, *, confirms: bool) -> None:
        self._address = address
        self._name = name
        self._confirms = confirms
        self._connection: aiormq.Connection | None = None
        self._channel: AbstractChannel | None = None
        self._opening = asyncio.Lock()
        self.generation = 0
        """Counts connections: what is known of queues and unacknowledged messages ends with each."""

    @property
    def is_open(self) -> bool:
        return self._channel is not None and not self._channel.is_closed

    async def call(self, doing: str, call: Callable[[AbstractChannel], Awaitable[T]], within: Seconds = ANSWER) -> T:
        """Raises FrontierError. A cancelled call closes the connection: its answer would go to another one."""
        try:
            async with asyncio.timeout(within):
                return await call(await self._opened())
        except LIBRARY as error:
            await self.close()
            raise explained(error, self._address, doing) from error
        except asyncio.CancelledError:
            await self.close()
            raise

    async def _opened(self) -> AbstractChannel:
        async with self._opening:
            if self._channel is not None and not self._channel.is_closed:
                return self._channel
            await self.close()
            self._connection, self._channel = await self._open()
            self.generation += 1
            return self._channel

    async def _open(self) -> tuple[aiormq.Connection, AbstractChannel]:
        context = _tls(self._address) if self._address.tls else None
        connection = aiormq.Connection(
            f"{self._address.url}?heartbeat={HEARTBEAT}&name=trotline-{self._name}",
            context=context,
            transport_factory=Transport(),
        )
        try:
            async with asyncio.timeout(CONNECT):
                await connection.connect()
                _check_version(connection.server_properties, self._address)
                return connection, await connection.channel(publisher_confirms=self._confirms)
        except BaseException:
            await _closed(connection)
            raise

    async def close(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            await _closed(connection)


async def _closed(connection: aiormq.Connection) -> None:
    # Errors are ignored: it is given up, whatever its state.
    with contextlib.suppress(*LIBRARY):
        async with asyncio.timeout(CONNECT):
            await connection.close()


def _tls(address: Address) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=address.ca or None)
    except OSError as error:
        raise FrontierError(
            f"the file with certificates cannot be read: {address.ca}", hint="Check ca= in the URL."
        ) from error


def _check_version(properties: Any, address: Address) -> None:
    version = str(dict(properties or {}).get("version", "0"))
    if tuple(int(part) for part in version.split(".")[:2] if part.isdecimal()) < OLDEST:
        raise FrontierError(
            f"{address.place} is RabbitMQ {version[:40]}, which is too old", hint="Trotline needs 3.10 or later."
        )
