"""A small forward proxy that notes what it is asked for: for tests of whatever goes out through one.

    async with ForwardProxy(user="anna", password="s3cret") as proxy:
        ...  # go out through proxy.url
        assert proxy.asked[0].target == "93.184.216.34:443"

It makes tunnels (CONNECT) and forwards plain requests (GET http://host/path). It looks up names itself, as real proxies
do. `refuse` decides what it does not do, and `reply` makes it say something else than a proxy should.
docs/how-to/use-a-proxy.md.
"""

import asyncio
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote, urlsplit

_REASONS = {403: "Forbidden", 407: "Proxy Authentication Required", 502: "Bad Gateway"}
_HOP_BY_HOP = ("proxy-authorization", "proxy-connection", "connection", "keep-alive")


@dataclass(frozen=True)
class Asked:
    """One thing that the proxy was asked for."""

    method: str
    target: str
    """`host:port` of a tunnel, the whole URL of a page to forward."""
    headers: tuple[tuple[str, str], ...]
    login: str
    """`user:password` as it was sent; empty if there was none."""

    @property
    def port(self) -> int:
        parts = urlsplit(self.target if self.method != "CONNECT" else f"//{self.target}")
        return parts.port or 80


class ForwardProxy:
    """Listens on a free port of loopback. `asked` has every request, also refused ones, in order."""

    def __init__(
        self,
        *,
        user: str = "",
        password: str = "",
        host: str = "127.0.0.1",
        port: int = 0,
        refuse: Callable[[Asked], int] = lambda _: 0,
        reply: bytes | None = None,
        leaves_from: str = "",
    ) -> None:
        """`refuse` answers the status to refuse with, 0 to serve. `reply` are the bytes sent instead of any service;
        empty bytes close the connection. `leaves_from`: the address that targets see."""
        self.user = user
        self.password = password
        self.host = host
        self.port = port
        self.refuse = refuse
        self.reply = reply
        self.leaves_from = leaves_from
        self.asked: list[Asked] = []
        self.connections = 0
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where it is, with the login that it wants."""
        login = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@" if self.user or self.password else ""
        return f"http://{login}{self.public}"

    @property
    def public(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop listening and hang up."""
        if self._server is not None:
            self._server.close()
        for task in list(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        # Transports close in the loop's next turn.
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            self._serving.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request. May another follow on this connection?"""
        asked = _understood(await reader.readuntil(b"\r\n\r\n"))
        self.asked.append(asked)
        if self.reply is not None:
            writer.write(self.reply)
            await writer.drain()
            return False
        wanted = f"{self.user}:{self.password}" if self.user or self.password else ""
        status = 407 if asked.login != wanted and wanted else self.refuse(asked)
        if status:
            writer.write(_refusal(status))
            await writer.drain()
            return True
        if asked.method == "CONNECT":
            await self._tunnel(asked, reader, writer)
            return False
        await self._forward(asked, reader, writer)
        return False

    async def _tunnel(self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = asked.target.rpartition(":")
        far = await _dial(host.strip("[]"), int(port), writer, self.leaves_from)
        if far is not None:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await _both_ways((reader, writer), far)

    async def _forward(self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request to one server; its connection ends with the answer."""
        parts = urlsplit(asked.target)
        far = await _dial(parts.hostname or "", parts.port or 80, writer, self.leaves_from)
        if far is None:
            return
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            far[1].write(_head(f"{asked.method} {path} HTTP/1.1", asked.headers))
            far[1].write(await reader.readexactly(_length(asked.headers) or 0))
            first, headers = _lines(await far[0].readuntil(b"\r\n\r\n"))
            writer.write(_head(first, headers))
            length = _length(headers)
            if length is None:
                await _copy(far[0], writer)
            else:
                writer.write(await far[0].readexactly(length))
            await writer.drain()
        finally:
            far[1].close()


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Headers = tuple[tuple[str, str], ...]


async def _dial(host: str, port: int, client: asyncio.StreamWriter, leaves_from: str) -> Ends | None:
    try:
        local = (leaves_from, 0) if leaves_from else None
        return await asyncio.open_connection(host, port, local_addr=local)
    except OSError:
        client.write(_refusal(502))
        await client.drain()
        return None


async def _both_ways(near: Ends, far: Ends) -> None:
    """Until either side has said all."""
    copying = {asyncio.ensure_future(_copy(near[0], far[1])), asyncio.ensure_future(_copy(far[0], near[1]))}
    try:
        await asyncio.wait(copying, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # First: the await can be cancelled.
        far[1].close()
        for task in copying:
            task.cancel()
        await asyncio.gather(*copying, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()


def _lines(head: bytes) -> tuple[str, tuple[tuple[str, str], ...]]:
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    return first, tuple((name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines))


def _head(first: str, headers: Headers) -> bytes:
    """What goes on to the other side: nothing of what was for the proxy, and one answer for a connection."""
    kept = [f"{name}: {value}" for name, value in headers if name.lower() not in _HOP_BY_HOP]
    return "\r\n".join([first, *kept, "Connection: close", "", ""]).encode("latin-1")


def _length(headers: Headers) -> int | None:
    return next((int(value) for name, value in headers if name.lower() == "content-length"), None)


def _understood(head: bytes) -> Asked:
    first, headers = _lines(head)
    method, target, _ = first.split(" ", 2)
    sent = next((value for name, value in headers if name.lower() == "proxy-authorization"), "")
    login = b64decode(sent.removeprefix("Basic ")).decode() if sent.startswith("Basic ") else ""
    return Asked(method, target, headers, login)


def _refusal(status: int) -> bytes:
    wanted = 'Proxy-Authenticate: Basic realm="proxy"\r\n' if status == 407 else ""
    return f"HTTP/1.1 {status} {_REASONS.get(status, 'No')}\r\n{wanted}Content-Length: 0\r\n\r\n".encode()
