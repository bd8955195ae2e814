"""Carries the bytes of a connection: the client library reads frames from it that were cut down (`trimmed_frames`)."""

import asyncio
from typing import Any

from aiormq.connection import TransportFactory
from yarl import URL

from trotline.adapters.amqp.trimmed_frames import used

_HEAD = 7
"""Bytes before the payload: type, channel and length."""
_KINDS = (1, 2, 3, 8)
"""Types of frames: method, content header, body, heartbeat."""


class FrameReader(asyncio.StreamReader):
    """Has a whole frame before it hands out a byte of it."""

    _frame = b""
    _at = 0

    async def readexactly(self, n: int) -> bytes:
        if self._at == len(self._frame):
            self._frame, self._at = await self._next(), 0
        part = self._frame[self._at : self._at + n]
        self._at += len(part)
        return part

    async def _next(self) -> bytes:
        head = await super().readexactly(_HEAD)
        if head[0] not in _KINDS:
            # No frame, but the answer of a server that does not speak this protocol: the library says so.
            return head
        rest = await super().readexactly(int.from_bytes(head[3:]) + 1)
        payload = used(head[0], rest[:-1])
        return b"".join((head[:3], len(payload).to_bytes(4), payload, rest[-1:]))


class Transport(TransportFactory):
    async def create(self, url: URL, **words: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        tls = words.pop("ssl_context_provider")
        loop = asyncio.get_running_loop()
        reader = FrameReader(loop=loop)
        # As in asyncio.open_connection, which takes no reader.
        transport, protocol = await loop.create_connection(
            lambda: asyncio.StreamReaderProtocol(reader, loop=loop),
            url.host or "",
            url.port or 0,
            ssl=await tls.get_context() if url.scheme == "amqps" else None,
            **words,
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
