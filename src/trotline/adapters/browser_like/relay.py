"""The egress relay: opens the connections of the browser-like client, which resolves and dials nothing by itself.

A CONNECT server on a Unix socket in a folder that only this user can read. It checks the target like the default
fetcher (guard, DNS answers that are pinned) and dials the checked address, directly or through the proxy of this way.
The client's TLS passes through it unread.
"""

import asyncio
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, cast

from aiohappyeyeballs import start_connection

from trotline.adapters.browser_like.pipes import ALERT, ClientEnd, TargetEnd
from trotline.adapters.http.connections import Names
from trotline.adapters.http.failures import FETCH_ERRORS, Cut, reason
from trotline.adapters.http.proxy_dialer import AddrInfo, ProxyDialer
from trotline.adapters.http.proxy_stream import ProxyStream, SocketStream, TlsStream
from trotline.model.answer import FailureKind
from trotline.model.limits import Limits
from trotline.model.time import Seconds

_CONNECT = re.compile(rb"CONNECT (?:\[([0-9A-Fa-f:.]+)\]|([^\s:]+)):(\d{1,5}) HTTP/1\.1\r\n")
_NEXT_ADDRESS: Seconds = 0.25
"""After this the next address of a name is tried too (RFC 8305)."""
_WITHIN = 0.95
"""Share of the connect timeout for the dial: our own message is more precise than the client's."""
_TARGETS = 10_000

Target = tuple[str, int]
N = TypeVar("N")


class Relay:
    """The tunnels of one way out. Start, use and close it inside one event loop."""

    def __init__(self, names: Names, limits: Limits, dialer: ProxyDialer | None) -> None:
        self._names = names
        self._limits = limits
        self._dialer = dialer
        self._server: asyncio.Server | None = None
        self._is_shut = False
        self._ends: set[ClientEnd] = set()
        self._dialling: dict[asyncio.Task[None], Target] = {}
        self._visits: Counter[Target] = Counter()
        self._failures: dict[Target, tuple[Seconds, Exception]] = {}
        """Targets without a tunnel: since when, and why."""
        self._opened: dict[Target, tuple[Seconds, str]] = {}
        """The last tunnel to each target: when it was opened, and to which address."""
        self._unanswered: dict[Target, Seconds] = {}
        """Targets of closed tunnels without an answer to what was sent last: when that was."""
        self.on_plain_request: Callable[[bytes], None] = lambda _head: None
        """Called with the head of a request that is not CONNECT (`header_sets.py`)."""

    async def listen(self, path: Path) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._new_end, str(path))

    @contextmanager
    def visiting(self, target: Target) -> Iterator[None]:
        """Between visits a target has nothing to say: its tunnels are closed if it does."""
        self._visits[target] += 1
        try:
            yield
        finally:
            self._visits[target] -= 1
            if not self._visits[target]:
                del self._visits[target]

    @property
    def visits(self) -> int:
        return self._visits.total()

    @property
    def tunnels(self) -> int:
        """Open connections of the client."""
        return len(self._ends)

    def close_tunnels(self) -> None:
        for end in list(self._ends):
            end.abort()

    def is_dialling(self, target: Target) -> bool:
        return target in self._dialling.values()

    def opened(self, target: Target, since: Seconds) -> Seconds | None:
        """When a tunnel to this target was opened, if that was after `since`."""
        at, _ = self._opened.get(target, (0.0, ""))
        return at if at >= since else None

    def address(self, target: Target) -> str:
        """The address of the last tunnel to this target; empty: only the proxy knows it."""
        return self._opened.get(target, (0.0, ""))[1]

    def is_unanswered(self, target: Target, since: Seconds) -> bool:
        """Was something sent after `since` on a tunnel that was open before, without an answer so far? Then the server
        most likely closed it as idle while the request was in flight."""
        return self._unanswered.get(target, 0.0) >= since or any(
            end.target == target and _unanswered(end, since) for end in self._ends
        )

    def failure(self, target: Target, since: Seconds) -> Exception | None:
        """Why there was no tunnel to this target after `since`."""
        at, error = self._failures.get(target, (0.0, None))
        return error if at >= since else None

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        # A connection that was just accepted is closed as soon as it has a transport.
        self._is_shut = True
        while any(end.transport is not None for end in self._ends):
            self.close_tunnels()
            await asyncio.sleep(0)
        for task in self._dialling:
            task.cancel()
        await asyncio.gather(*self._dialling, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    def _new_end(self) -> ClientEnd:
        end = ClientEnd(self._asked, self._closed, lambda: self._is_shut)
        self._ends.add(end)
        return end

    def _closed(self, end: ClientEnd) -> None:
        self._ends.discard(end)
        if _unanswered(end, end.opened_at):
            _bounded(self._unanswered)[end.target] = end.asked_at

    def _asked(self, end: ClientEnd, head: bytes) -> None:
        match = _CONNECT.match(head)
        if match is None:
            self.on_plain_request(head)
            end.reply("204 No Content")
            end.close()
            return
        end.target = target = (match[1] or match[2]).decode("latin-1").lower(), int(match[3])
        task = asyncio.ensure_future(self._connect(end, target))
        self._dialling[task] = target
        task.add_done_callback(self._dialling.pop)

    async def _connect(self, end: ClientEnd, target: Target) -> None:
        now = asyncio.get_running_loop().time
        try:
            address = await self._tunnel(end, target)
        except FETCH_ERRORS as error:
            _bounded(self._failures)[target] = (now(), error)
            end.reply("502 Bad Gateway")
            end.close()
            return
        end.opened_at = now()
        _bounded(self._opened)[target] = (end.opened_at, address)
        end.reply("200 OK")

    async def _tunnel(self, end: ClientEnd, target: Target) -> str:
        """Connect this end with the target, and answer the target's address."""
        infos = await self._names.addresses(*target)
        if self._dialer is None:
            stream, address = await self._dial(infos)
        else:
            stream, address = await self._dialer.tunnel(target[0], infos)
        pipe = TargetEnd(lambda: target in self._visits)
        pipe.join(end)
        if isinstance(stream, SocketStream):
            await asyncio.get_running_loop().create_connection(lambda: pipe, sock=stream.sock)
        else:
            assert isinstance(stream, TlsStream)  # noqa: S101 - there is no other
            stream.transport.set_protocol(pipe)
            pipe.connection_made(stream.transport)
        if end.transport is None:
            # The client gave up meanwhile.
            pipe.abort()
        return address

    async def _dial(self, infos: list[AddrInfo]) -> tuple[ProxyStream, str]:
        try:
            async with asyncio.timeout(self._limits.connect * _WITHIN):
                sock = await start_connection(
                    cast("list[tuple[int, int, int, str, tuple[str, int]]]", infos),
                    happy_eyeballs_delay=_NEXT_ADDRESS,
                    interleave=1,
                    socket_factory=self._names.guard.make_socket,
                )
        except TimeoutError:
            raise Cut(FailureKind.TIMEOUT, f"no connection within {self._limits.connect:g} s") from None
        except OSError as error:
            raise Cut(FailureKind.CONNECT, f"no connection: {reason(error)}") from error
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return SocketStream(sock), str(sock.getpeername()[0])


def _unanswered(end: ClientEnd, since: Seconds) -> bool:
    return 0.0 < end.opened_at <= since <= end.asked_at and end.written <= ALERT


def _bounded(notes: dict[Target, N]) -> dict[Target, N]:
    if len(notes) >= _TARGETS:
        notes.clear()
    return notes
