"""The guard: no connections to private addresses and unusual ports.

Names are checked when they resolve: one forbidden address refuses the whole name. Every address is checked again at the
socket, also address literals in URLs, which do not pass the resolver. The checked address is the one that is connected
to, so DNS rebinding has no effect.
"""

import socket
from collections.abc import Callable, Collection
from typing import Any

from aiohttp import TCPConnector

from trotline.model.time import Seconds
from trotline.rules.private_addresses import (
    NOT_AN_ADDRESS,
    NOTHING,
    Allowed,
    is_number,
    why_not_address,
    why_not_name,
    why_not_port,
)

HINT = "to allow it: --allow {place}, or --allow-private for all private addresses; in Python: allow_private=True"


class Forbidden(Exception):
    """Connection not allowed. Not an OSError: after those the next address would be tried."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Guard:
    """Decides which addresses the fetcher connects to."""

    def __init__(self, *, allow_private: bool = False, allow: Allowed = NOTHING) -> None:
        self._allow_private = allow_private
        self._allow = allow
        self._vetted: set[str] = set()
        """Private addresses of allowed names."""

    def admit(self, host: str, port: int) -> None:
        """Check a URL's host and port, before it is resolved."""
        why = why_not_port(port)
        if why:
            raise Forbidden(why)
        if is_number(host):
            self._judge(host, host)
        elif not self._allow_private and (why := why_not_name(host)) and not self._allow.name(_plain(host)):
            raise Forbidden(f"{host} is {why}; {HINT.format(place=host)}")

    def admit_name(self, name: str, addresses: Collection[str]) -> None:
        """Check all addresses of a name."""
        for address in addresses:
            self._judge(name, address)

    def make_socket(self, addr_info: tuple[Any, ...]) -> socket.socket:
        """A socket for an address, after a check of it."""
        family, kind, protocol, _, where = addr_info
        self.look(where[0], where[1])
        return socket.socket(family, kind, protocol)

    def look(self, address: str, port: int) -> None:
        """The last check before a connection, direct or through a proxy."""
        why = why_not_port(port)
        if why:
            raise Forbidden(why)
        if address not in self._vetted:
            self._judge(address, address)

    def _judge(self, name: str, address: str) -> None:
        if self._allow_private:
            return
        why = why_not_address(address)
        if not why:
            return
        if why == NOT_AN_ADDRESS:
            raise Forbidden(f"{address} is {why}")
        if self._allow.address(address):
            return
        if self._allow.name(_plain(name)):
            self._vetted.add(address)
            return
        shown = name if name == address else f"{name} ({address})"
        raise Forbidden(f"{shown} is not a public address: {why}; {HINT.format(place=name)}")


DISTRUST: Seconds = 60.0
"""How long a host that closed an idle connection under a request gets new connections only."""


def _plain(name: str) -> str:
    return name.lower().rstrip(".")


class BoundedConnector(TCPConnector):
    """Bounds the number of idle connections: a broad crawl would otherwise keep thousands of sockets."""

    def __init__(self, *, most_idle: int, socket_factory: Callable[[Any], socket.socket], **options: Any) -> None:
        super().__init__(socket_factory=socket_factory, **options)
        self._most_idle = most_idle
        self._distrusted: dict[tuple[str, int | None], Seconds] = {}
        """Host and port -> until when idle connections are not reused."""

    def distrust(self, host: str, port: int | None) -> None:
        """An idle connection to this host was closed under a request: the others may be closed, too."""
        now = self._loop.time()
        self._distrusted = {place: until for place, until in self._distrusted.items() if until > now}
        self._distrusted[host, port] = now + DISTRUST

    async def _get(self, key: Any, traces: Any) -> Any:
        if self._distrusted and self._distrusted.get((key.host, key.port), 0.0) > self._loop.time():
            for protocol, _ in self._conns.pop(key, ()):
                protocol.close()
            return None
        return await super()._get(key, traces)

    def _release(self, key: Any, protocol: Any, *, should_close: bool = False) -> None:
        if self._force_close:
            # At once: the answer is complete, and a TLS shutdown through a proxy may hang for half a minute.
            protocol.abort()
        super()._release(key, protocol, should_close=should_close)
        while self._too_many(key):
            # The first key is the least recently used host.
            oldest = next(iter(self._conns))
            self._conns[oldest].popleft()[0].close()
            if not self._conns[oldest]:
                del self._conns[oldest]

    @property
    def idle(self) -> int:
        return sum(map(len, self._conns.values()))

    def close_idle(self) -> None:
        for kept in self._conns.values():
            for protocol, _ in kept:
                protocol.close()
        self._conns.clear()

    def _too_many(self, key: Any) -> bool:
        hosts = len(self._conns)
        # Counted only where a host has several, which is rare where there are many hosts.
        return hosts > self._most_idle or (
            len(self._conns.get(key, ())) > 1 and sum(map(len, self._conns.values())) > self._most_idle
        )
