"""A server that answers exactly the bytes a test wants, and a fetcher that may talk to it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from trotline.adapters.http.fetcher import HttpFetcher
from trotline.model.limits import Limits
from trotline.model.task import Task

Reply = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
"""Writes the answer to one request (head and body as bytes). A connection it closes is not read again."""


class Site:
    """A server that answers exactly the bytes a test wants, and remembers what it was asked."""

    def __init__(self, reply: Reply | bytes) -> None:
        self.reply = reply
        self.requests: list[bytes] = []
        self.connections = 0
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.lower().split(b"\r\n")
                length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
                request = head + await reader.readexactly(length)
                self.requests.append(request)
                if isinstance(self.reply, bytes):
                    writer.write(self.reply)
                else:
                    await self.reply(request, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            self._tasks.discard(task)
            writer.close()

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def site(reply: Reply | bytes, hosts: int = 1, tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    """The site on a free port of 127.0.0.1, and of 127.0.0.2 and so on."""
    made = Site(reply)
    servers = []
    for number in range(hosts):
        servers.append(
            await asyncio.start_server(lambda *ends: made.serve(*ends), f"127.0.0.{number + 1}", made.port, ssl=tls)
        )
        made.port = servers[0].sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        for server in servers:
            server.close()
        await made.stop()
        for server in servers:
            await server.wait_closed()


@asynccontextmanager
async def fetcher(limits: Limits | None = None, **options: object) -> AsyncIterator[HttpFetcher]:
    made = HttpFetcher(limits or Limits(), **{"user_agent": "test/1", "spider": "s", "allow_private": True, **options})
    try:
        yield made
    finally:
        await made.close()


def ok(body: bytes = b"hello", *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def task(url: str, **fields: object) -> Task:
    return Task(**{"url": url, "route": "r", **fields})
