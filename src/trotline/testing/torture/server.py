"""The torture server: raw sockets, one fault per path."""

import asyncio
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from html import escape
from typing import NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

from trotline.testing.server_thread import in_thread
from trotline.testing.servers import listen
from trotline.testing.torture import bodies, bombs, content, cookies, heads, redirects, robots, sitemaps
from trotline.testing.torture.faults import Act, Call, Fault, Gone, answer

LOOPBACK = ("127.0.0.1",)
_LARGEST_HEAD = 1024 * 1024
_GROUPS = (
    heads.heads,
    heads.lengths,
    bodies.chunks,
    bodies.bodies,
    bodies.lines,
    bombs.bombs,
    bombs.packed,
    redirects.redirects,
    cookies.cookies,
    content.rests,
    content.types,
    content.charsets,
    content.challenges,
    robots.robots,
    sitemaps.sitemaps,
    sitemaps.xml,
)
FAULTS: tuple[Fault, ...] = tuple(fault for group in _GROUPS for fault in group.all)


class Asked(NamedTuple):
    """One request, as it came."""

    method: str
    target: str
    """Path and query."""
    head: bytes
    body: bytes
    host: str
    """The address that it came to."""

    def header(self, name: str) -> str | None:
        wanted = name.lower()
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.strip().lower() == wanted.encode():
                return value.strip().decode("latin-1")
        return None


class _Reader(asyncio.StreamReader):
    """A reader with an event for the end of the connection."""

    def __init__(self) -> None:
        super().__init__(limit=_LARGEST_HEAD, loop=asyncio.get_running_loop())
        self.closed = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.closed.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.closed.set()


class TortureServer:
    """Misbehaves on demand, by path.

    Use it as `async with TortureServer() as server`, in a thread of its own as `with TortureServer.in_thread() as
    server`, or from a terminal as `python -m trotline.testing.torture`. With `tls` it speaks HTTPS.
    """

    def __init__(self, port: int = 0, *, hosts: Sequence[str] = LOOPBACK, tls: ssl.SSLContext | None = None) -> None:
        self._port = port
        self._hosts = tuple(hosts)
        self._tls = tls
        self._servers: list[asyncio.Server] = []
        self._running: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._quiet = asyncio.Event()
        self._faults = {fault.path: fault for fault in FAULTS}
        self.requests: list[Asked] = []
        """Every request so far."""
        self.connections = 0
        """Connections so far."""
        self.robots = ""
        """The fault of /robots/ that is served as /robots.txt; empty: 404."""

    @classmethod
    @contextmanager
    def in_thread(
        cls, port: int = 0, *, hosts: Sequence[str] = LOOPBACK, tls: ssl.SSLContext | None = None
    ) -> Iterator[Self]:
        """The server in a thread with its own event loop, for tests that are not async."""
        with in_thread(cls(port, hosts=hosts, tls=tls), "torture server") as server:
            yield server

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        sockets = listen(self._hosts, self._port)
        self._port = sockets[0].getsockname()[1]
        for listening in sockets:
            self._servers.append(await loop.create_server(self._protocol, sock=listening, ssl=self._tls))
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for task, writer in list(self._running.items()):
            writer.transport.abort()
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    @property
    def faults(self) -> tuple[Fault, ...]:
        """All faults, with those added by `answer`."""
        return tuple(self._faults.values())

    @property
    def open_connections(self) -> int:
        return len(self._running)

    async def quiet(self) -> None:
        if self._running:
            await self._quiet.wait()

    @property
    def port(self) -> int:
        return self._port

    def url(self, path: str = "/", host: str = "") -> str:
        """The address of a path; `host` is another name or address of this machine."""
        return f"{'https' if self._tls else 'http'}://{host or self._hosts[0]}:{self._port}{path}"

    def answer(self, path: str, said: bytes | Act, about: str = "") -> None:
        """Add a fault of your own: bytes that are sent as they are, or an async function of a `Call`."""
        if isinstance(said, bytes):
            data = said

            async def act(call: Call) -> None:
                await call.send(data)

            self._faults[path] = Fault(path, about, act)
        else:
            self._faults[path] = Fault(path, about, said)

    def asked(self, path: str) -> list[Asked]:
        """The requests for that path, with any query."""
        return [asked for asked in self.requests if asked.target.partition("?")[0] == path]

    def _protocol(self) -> asyncio.StreamReaderProtocol:
        reader = _Reader()
        return asyncio.StreamReaderProtocol(reader, lambda _, writer: self._serve(reader, writer))

    async def _serve(self, reader: _Reader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running[task] = writer
        self._quiet.clear()
        self.connections += 1
        try:
            while not writer.is_closing():
                await self._one(reader, writer)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, Gone, asyncio.CancelledError):
            # The client has left, or we are closing.
            writer.close()
        finally:
            del self._running[task]
            if not self._running:
                self._quiet.set()

    async def _one(self, reader: _Reader, writer: asyncio.StreamWriter) -> None:
        """One request and its answer, which ends when the client leaves."""
        head = await reader.readuntil(b"\r\n\r\n")
        asked = await self._parse(head, reader, writer)
        self.requests.append(asked)
        acting = asyncio.ensure_future(self._act(self._call(asked, writer), asked))
        leaving = asyncio.ensure_future(reader.closed.wait())
        try:
            await asyncio.wait((acting, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not acting.done():
                raise Gone
            await acting
        finally:
            for each in (acting, leaving):
                each.cancel()
                with suppress(asyncio.CancelledError, Gone, ConnectionError):
                    await each

    async def _parse(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked:
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        host = str(writer.get_extra_info("sockname")[0])
        asked = Asked(method, rest.rpartition(" ")[0], head, b"", host)
        length = int(asked.header("content-length") or 0)
        return asked._replace(body=await reader.readexactly(length)) if length else asked

    def _call(self, asked: Asked, writer: asyncio.StreamWriter) -> Call:
        target = urlsplit(asked.target)
        scheme = "https" if self._tls else "http"
        others = [host for host in self._hosts if host != asked.host]
        other = others[0] if others else "localhost"
        return Call(
            head=asked.head,
            body=asked.body,
            method=asked.method,
            path=target.path,
            query=dict(parse_qsl(target.query)),
            rest=(),
            origin=f"{scheme}://{asked.header('host') or asked.host}",
            elsewhere=f"{scheme}://{other}:{self._port}",
            _writer=writer,
        )

    async def _act(self, call: Call, asked: Asked) -> None:
        path, rest = call.path, list[str]()
        if path == "/robots.txt" and self.robots:
            path = f"/robots/{self.robots}"
        while path.strip("/"):
            fault = self._faults.get(path)
            if fault is not None:
                call.rest = tuple(rest)
                await fault.act(call)
                return
            path, _, last = path.rpartition("/")
            rest.insert(0, last)
        if call.path == "/":
            await call.send(answer(self._index(), "Content-Type: text/html; charset=utf-8"))
        else:
            await call.send(answer(b"not here", "Content-Type: text/plain", status="404 Not Found"))

    def _index(self) -> bytes:
        rows = "".join(
            f'<li><a href="{fault.path}">{fault.path}</a> {escape(fault.about)}</li>\n'
            for fault in self._faults.values()
        )
        return f"<!doctype html><title>The torture server</title><ul>\n{rows}</ul>".encode()
