"""What a fault is: a path, its description, and what it does to the client."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

Sent = bytes


class Gone(Exception):
    """The client has closed the connection."""


@dataclass
class Call:
    """One request, and the connection to its client."""

    head: bytes
    """The request line and the headers, as they came."""
    body: bytes
    method: str
    path: str
    """Without the query."""
    query: dict[str, str]
    rest: tuple[str, ...]
    """What follows the fault's own path: /body/drip/0.5 has ("0.5",)."""
    origin: str
    """Where this server is, as the client spelt it: "http://127.0.0.1:8020"."""
    elsewhere: str
    """The same server by another name: another origin."""
    _writer: asyncio.StreamWriter = field(repr=False)

    def number(self, default: float) -> float:
        """The first part of the rest as a number."""
        try:
            return float(self.rest[0])
        except (IndexError, ValueError):
            return default

    async def send(self, data: bytes) -> None:
        """Write, and wait until the client has prefix again. `Gone` when it has closed the connection."""
        if self._writer.is_closing():
            raise Gone
        self._writer.write(data)
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise Gone from error
        # After a client has left, TLS drops what is written, and nothing waits: an endless fault would block the loop.
        await asyncio.sleep(0)

    async def drip(self, data: bytes, every: float) -> None:
        """One byte, a pause, one byte, a pause."""
        for number in range(len(data)):
            await self.send(data[number : number + 1])
            await asyncio.sleep(every)

    async def silence(self) -> None:
        """Send nothing more, but keep the connection until the client closes it."""
        await asyncio.Event().wait()

    def close(self) -> None:
        """Close the connection (FIN)."""
        self._writer.close()

    def reset(self) -> None:
        """Abort the connection (RST)."""
        line: socket.socket = self._writer.get_extra_info("socket")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Act = Callable[[Call], Awaitable[None]]


class Fault(NamedTuple):
    path: str
    """"/body/drip"; what follows it in a URL is `call.rest`."""
    about: str
    act: Act


class Faults:
    """The faults of one file, under one path prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.all: list[Fault] = []

    def add(self, name: str, about: str) -> Callable[[Act], Act]:
        """`@faults.add("drip", "one byte at a time")` over a function of a `Call`."""

        def keep(act: Act) -> Act:
            self.all.append(Fault(f"/{self._prefix}/{name}", about, act))
            return act

        return keep

    def say(self, name: str, about: str, data: Sent, *, stay: bool = False) -> None:
        """These bytes, then the connection is closed (or kept, with `stay`)."""

        async def act(call: Call) -> None:
            await call.send(data)
            if not stay:
                call.close()

        self.all.append(Fault(f"/{self._prefix}/{name}", about, act))


def answer(body: bytes = b"", *headers: str, status: str = "200 OK") -> bytes:
    """A correct answer with a correct length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def page(text: str = "fine") -> bytes:
    return f"<!doctype html><title>{text}</title><p>{text}</p>".encode()
