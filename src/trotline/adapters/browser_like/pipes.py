"""Bytes between the browser-like client and its target: two connected ends, with backpressure."""

import asyncio
from collections.abc import Callable
from typing import cast

from trotline.model.time import Seconds

ALERT = 31
"""Bytes of a TLS record that only closes the connection; every request and every answer has more."""
UNASKED = 256 * 1024
"""Bytes that a target may send while no visit to it is under way: over HTTP/2 a page that was cut may go on."""


class Pipe(asyncio.Protocol):
    """One end. What it receives is written to the other end; when one is closed, so is the other."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.written = 0
        """Bytes written to this end since it last sent more than an alert."""
        self._other: Pipe | None = None

    def join(self, other: "Pipe") -> None:
        self._other, other._other = other, self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an instance of it in uvloop.
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._other is not None and self._other.transport is not None:
            if len(data) > ALERT:
                self.written = 0
            self._other.written += len(data)
            self._other.transport.write(data)

    def pause_writing(self) -> None:
        if self._other is not None and self._other.transport is not None:
            self._other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._other is not None and self._other.transport is not None:
            self._other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        other, self._other = self._other, None
        if other is not None and other.transport is not None:
            # What was received before is still delivered.
            other.transport.close()

    def abort(self) -> None:
        """Close both ends at once."""
        for end in (self, self._other):
            if end is not None and end.transport is not None:
                end.transport.abort()


class ClientEnd(Pipe):
    """The end of the client: first the head of a request to the relay, then the bytes of a tunnel."""

    def __init__(
        self,
        asked: Callable[["ClientEnd", bytes], None],
        closed: Callable[["ClientEnd"], None],
        is_shut: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._is_shut = is_shut
        self._asked = asked
        self._closed = closed
        self._head: bytes | None = b""
        self._clock = asyncio.get_running_loop().time
        self.target: tuple[str, int] = ("", 0)
        self.opened_at: Seconds = 0.0
        """When its tunnel was opened; 0: there is none yet."""
        self.asked_at: Seconds = 0.0
        """When the client last sent more than an alert."""

    def data_received(self, data: bytes) -> None:
        if self._head is None:
            if len(data) > ALERT:
                self.asked_at = self._clock()
            super().data_received(data)
            return
        self._head += data
        if b"\r\n\r\n" in self._head:
            head, self._head = self._head, None
            self._asked(self, head)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._is_shut():
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._closed(self)

    def close(self) -> None:
        """After what is still to be written."""
        if self.transport is not None:
            self.transport.close()

    def reply(self, status: str) -> None:
        if self.transport is not None:
            self.transport.write(f"HTTP/1.1 {status}\r\n\r\n".encode("ascii"))


class TargetEnd(Pipe):
    """The end of the target, or of the proxy before it."""

    def __init__(self, is_visited: Callable[[], bool]) -> None:
        super().__init__()
        self._is_visited = is_visited
        self._unasked = 0

    def data_received(self, data: bytes) -> None:
        if not self._is_visited():
            self._unasked += len(data)
            if self._unasked > UNASKED:
                self.abort()
                return
        super().data_received(data)
