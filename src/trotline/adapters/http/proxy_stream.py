"""The connection to a proxy while a tunnel is negotiated: a plain socket, or TLS."""

import asyncio
import socket
import ssl
from asyncio import sslproto
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from trotline.model.answer import FailureKind
from trotline.model.time import Seconds

_SHUTDOWN: Seconds = 1.0
"""For the TLS close of the proxy: after that the socket is closed anyway."""

_ABORT_TAKES_NOTHING = sslproto.SSLProtocol._abort.__code__.co_argcount == 1

P = TypeVar("P", bound=asyncio.BaseProtocol)


class Refused(Exception):
    """The proxy opens no tunnel. `kind`: whose failure it is."""

    def __init__(self, kind: FailureKind, what: str) -> None:
        super().__init__(what)
        self.kind = kind
        self.what = what


class ProxyStream(Protocol):
    """Bytes to and from the proxy. Errors are OSErrors."""

    async def send(self, data: bytes) -> None: ...

    async def receive(self, most: int) -> bytes:
        """At least one byte; none: the proxy closed the connection."""
        ...

    def close(self) -> None: ...


class SocketStream:
    """Not a transport yet: nothing is read beyond the negotiation."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.sock, data)

    async def receive(self, most: int) -> bytes:
        return await self._loop.sock_recv(self.sock, most)

    def close(self) -> None:
        self.sock.close()


class TlsStream:
    """TLS to the proxy. The tunnel's own protocol takes over its transport afterwards."""

    def __init__(self, transport: asyncio.Transport, reader: asyncio.StreamReader) -> None:
        self.transport = transport
        self._reader = reader

    async def send(self, data: bytes) -> None:
        self.transport.write(data)

    async def receive(self, most: int) -> bytes:
        return await self._reader.read(most)

    def close(self) -> None:
        self.transport.abort()


async def open_tls(
    sock: socket.socket, host: str, ca_file: str, protocol: Callable[[], P]
) -> tuple[asyncio.Transport, P]:
    """TLS on a connected socket, with the certificate verified; OSErrors are failures of the proxy."""
    return await asyncio.get_running_loop().create_connection(
        protocol, sock=sock, ssl=_context(ca_file), server_hostname=host, ssl_shutdown_timeout=_SHUTDOWN
    )


async def open_tls_stream(sock: socket.socket, host: str, ca_file: str) -> TlsStream:
    reader = asyncio.StreamReader()
    transport, _ = await open_tls(sock, host, ca_file, lambda: asyncio.StreamReaderProtocol(reader))
    if _ABORT_TAKES_NOTHING and isinstance(transport, sslproto._SSLProtocolTransport):
        # TLS in it ends with an error by this method, which is broken in these versions of Python: the TypeError would
        # hide that the target's certificate is refused.
        transport._force_close = lambda _: transport.abort()  # type: ignore[attr-defined]
    return TlsStream(transport, reader)


def _context(ca_file: str) -> ssl.SSLContext:
    """A file that was replaced is read again: its authority may have a new key."""
    try:
        return _loaded(ca_file, Path(ca_file).stat().st_mtime_ns if ca_file else 0)
    except OSError as error:
        why = "it has no certificate in PEM format" if isinstance(error, ssl.SSLError) else error.strerror
        raise Refused(FailureKind.PROXY, f"its CA file {ca_file} cannot be read: {why}") from error


@lru_cache(maxsize=64)
def _loaded(ca_file: str, _: int) -> ssl.SSLContext:
    """Shared by all proxies with this authority: loading the system's authorities takes 10 ms and memory."""
    return ssl.create_default_context(cafile=ca_file or None)


async def dial(family: int, address: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        where: Any = (address, port)
        await asyncio.get_running_loop().sock_connect(sock, where)
    except BaseException:
        sock.close()
        raise
    return sock
