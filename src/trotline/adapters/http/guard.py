"""The guard: private addresses and odd ports are never dialled.

Names are vetted when they resolve: one forbidden address refuses the name whole, so nobody can mix a public and a
private answer. What is about to be dialled is judged once more at the socket, which is also where an address
written into the URL passes: it never sees the resolver. What was vetted is what is dialled, so a name that
changes its mind between the two (rebinding) gains nothing.
"""

import socket
from collections.abc import Callable, Collection
from typing import Any

from aiohttp import TCPConnector

from trotline.model.time import Seconds
from trotline.rules.addresses import (
    NOT_AN_ADDRESS,
    NOTHING,
    Allowed,
    is_number,
    why_not_address,
    why_not_name,
    why_not_port,
)

HINT = "if you mean it, use --allow {place}, or --allow-private for all that is private"


class Forbidden(Exception):
    """Not dialled. Deliberately no OSError: those are tried again on the next address."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Guard:
    """Which addresses this fetcher dials."""

    def __init__(self, *, allow_private: bool = False, allow: Allowed = NOTHING) -> None:
        self._allow_private = allow_private
        self._allow = allow
        self._vetted: set[str] = set()
        """Forbidden addresses that an allowed name stands for."""

    def admit(self, host: str, port: int) -> None:
        """Judge a URL's host and port before anything is resolved."""
        why = why_not_port(port)
        if why:
            raise Forbidden(why)
        if is_number(host):
            self._judge(host, host)
        elif not self._allow_private and (why := why_not_name(host)) and not self._allow.name(_plain(host)):
            raise Forbidden(f"{host} is {why}; {HINT.format(place=host)}")

    def admit_name(self, name: str, addresses: Collection[str]) -> None:
        """Judge what a name resolved to: all of it, or none."""
        for address in addresses:
            self._judge(name, address)

    def make_socket(self, addr_info: tuple[Any, ...]) -> socket.socket:
        """A socket for what is about to be dialled."""
        family, kind, protocol, _, where = addr_info
        self.look(where[0], where[1])
        return socket.socket(family, kind, protocol)

    def look(self, address: str, port: int) -> None:
        """The last look, at what is about to be dialled, or at what a proxy is about to be told to dial."""
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


DOUBT: Seconds = 60.0
"""For so long a place that closed an idle connection under a request is asked on new connections only."""


def _plain(name: str) -> str:
    return name.lower().rstrip(".")


class BoundedConnector(TCPConnector):
    """Keeps so many idle connections at most: a broad crawl would otherwise keep thousands of sockets."""

    def __init__(self, *, most_idle: int, socket_factory: Callable[[Any], socket.socket], **options: Any) -> None:
        super().__init__(socket_factory=socket_factory, **options)
        self._most_idle = most_idle
        self._doubted: dict[tuple[str, int | None], Seconds] = {}
        """Host and port -> until when its idle connections are not used."""

    def doubt(self, host: str, port: int | None) -> None:
        """An idle connection to this place was closed under a request: the others may be as old."""
        now = self._loop.time()
        self._doubted = {place: until for place, until in self._doubted.items() if until > now}
        self._doubted[host, port] = now + DOUBT

    async def _get(self, key: Any, traces: Any) -> Any:
        if self._doubted and self._doubted.get((key.host, key.port), 0.0) > self._loop.time():
            for protocol, _ in self._conns.pop(key, ()):
                protocol.close()
            return None
        return await super()._get(key, traces)

    def _release(self, key: Any, protocol: Any, *, should_close: bool = False) -> None:
        super()._release(key, protocol, should_close=should_close)
        while self._too_many(key):
            # The first key is the host that was given back longest ago.
            oldest = next(iter(self._conns))
            self._conns[oldest].popleft()[0].close()
            if not self._conns[oldest]:
                del self._conns[oldest]

    def _too_many(self, key: Any) -> bool:
        hosts = len(self._conns)
        # Counted only where a host has several, which is rare where there are many hosts.
        return hosts > self._most_idle or (
            len(self._conns.get(key, ())) > 1 and sum(map(len, self._conns.values())) > self._most_idle
        )
