"""A site that limits and bans clients by their address, and records every request: for tests and benchmarks of proxies.

    async with BanSite(BanRules(rate=1.0, ban_after=3, ban_for=600.0)) as site:
        ...  # crawl site.url("/p/1") through proxies that leave from different addresses
        assert site.over_limit() == []

Over the limit the answer is 429, and after `ban_after` of those it is 403 for `ban_for` seconds. It looks at the peer's
address, so that proxies on loopback count as different clients only if each leaves from an address of its own.
"""

import asyncio
import random
import ssl
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self, cast

_HEAD = b"HTTP/1.1 %d %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n%s\r\n"
_REASONS = {200: b"OK", 403: b"Forbidden", 404: b"Not Found", 429: b"Too Many Requests"}
_LONGEST_HEAD = 64 * 1024
_CLOSE_WITHIN = 10.0


@dataclass(frozen=True)
class BanRules:
    """What the site allows each address. Times are in seconds."""

    rate: float = 1.0
    """Requests a second."""
    burst: float = 1.0
    """Requests at once after a pause."""
    ban_after: int = 3
    """Requests over the limit that lead to a ban; 0: none does."""
    ban_for: float = 600.0
    renews: bool = False
    """A request during a ban starts it anew."""
    retry_after: int | None = None
    """The Retry-After header of 429."""
    latency: float = 0.0
    """Before every answer."""
    jitter: float = 0.0
    """The latency is longer or shorter by up to this."""


class Request(NamedTuple):
    at: float
    """By the monotonic clock."""
    address: str
    path: str
    status: int


@dataclass
class _Client:
    tokens: float
    at: float
    over: int = 0
    banned_until: float = 0.0


class BanSite:
    """Listens on a free port of loopback. `log` has every request in order."""

    def __init__(
        self,
        rules: BanRules | None = None,
        *,
        page: Callable[[str], bytes | None] = lambda path: f"<h1>{path}</h1>".encode(),
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        seed: int = 0,
    ) -> None:
        """`page` makes the body for a path; None is a 404. robots.txt is a 404 that counts for no limit. `seed`: of the
        jitter."""
        self.rules = rules or BanRules()
        self.host = host
        self.port = port
        self.log: list[Request] = []
        self.connections = 0
        self._page = page
        self._tls = tls
        self._random = random.Random(seed)
        self._clients: dict[str, _Client] = {}
        self._server: asyncio.Server | None = None
        self._open: set[_Connection] = set()
        self._all_closed = asyncio.Event()

    def url(self, path: str = "/", host: str = "") -> str:
        return f"{'https' if self._tls else 'http'}://{host or self.host}:{self.port}{path}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self), self.host, self.port, backlog=1024, ssl=self._tls
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self._open):
            connection.abort()
        self._all_closed.clear()
        if self._open:
            await asyncio.wait_for(self._all_closed.wait(), _CLOSE_WITHIN)
        await self._server.wait_closed()

    def statuses(self) -> Counter[int]:
        return Counter(request.status for request in self.log)

    def addresses(self) -> Counter[str]:
        return Counter(request.address for request in self.log)

    def over_limit(self) -> list[Request]:
        """The requests that were answered with 429 or 403."""
        return [request for request in self.log if request.status in (403, 429)]

    def bans(self) -> dict[str, float]:
        """Banned addresses and the time that is left."""
        now = time.monotonic()
        return {
            address: client.banned_until - now for address, client in self._clients.items() if client.banned_until > now
        }

    def delay(self) -> float:
        """The latency of one answer."""
        rules = self.rules
        return rules.latency + rules.jitter * (2 * self._random.random() - 1) if rules.jitter else rules.latency

    def judge(self, address: str, now: float) -> int:
        """The status for one more request of this client."""
        rules = self.rules
        client = self._clients.get(address)
        if client is None:
            client = self._clients[address] = _Client(rules.burst, now)
        if client.banned_until > now:
            if rules.renews:
                client.banned_until = now + rules.ban_for
            return 403
        client.tokens = min(rules.burst, client.tokens + (now - client.at) * rules.rate)
        client.at = now
        if client.tokens >= 1.0:
            client.tokens -= 1.0
            return 200
        client.over += 1
        if rules.ban_after and client.over >= rules.ban_after:
            client.over = 0
            client.banned_until = now + rules.ban_for
        return 429

    def answer(self, address: str, path: str) -> bytes:
        """The whole answer to one request, which is recorded."""
        now = time.monotonic()
        status = 404 if path == "/robots.txt" else self.judge(address, now)
        body = self._page(path) if status == 200 else b""
        if body is None:
            status, body = 404, b""
        self.log.append(Request(now, address, path, status))
        more = b""
        if status == 429 and self.rules.retry_after is not None:
            more = b"Retry-After: %d\r\n" % self.rules.retry_after
        return _HEAD % (status, _REASONS[status], len(body), more) + body


class _Connection(asyncio.Protocol):
    """One client; requests without a body, answered in order."""

    def __init__(self, site: BanSite) -> None:
        self._site = site
        self._head = b""
        self._address = ""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an instance of it in uvloop.
        self._transport = cast(asyncio.Transport, transport)
        self._address = transport.get_extra_info("peername")[0]
        self._site.connections += 1
        self._site._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._site._open.discard(self)
        if not self._site._open:
            self._site._all_closed.set()
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._head += data
        if len(self._head) > _LONGEST_HEAD:
            self.abort()
        while (end := self._head.find(b"\r\n\r\n")) >= 0:
            head, self._head = self._head[:end], self._head[end + 4 :]
            words = head.split(b"\r\n", 1)[0].split(b" ")
            if len(words) != 3:
                self.abort()
                return
            answer = self._site.answer(self._address, words[1].decode("latin-1"))
            # Some proxies pass all that follows on unread, until the site closes the connection.
            last = b"\r\nconnection: close" in head.lower()
            if delay := self._site.delay():
                asyncio.get_running_loop().call_later(delay, self._write, answer, last)
            else:
                self._write(answer, last)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _write(self, answer: bytes, last: bool) -> None:
        if self._transport is not None:
            self._transport.write(answer)
            if last:
                self._transport.close()
