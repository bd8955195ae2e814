"""The aiohttp connector: direct or through a proxy, with guard and limits."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import _DNSCacheTable
from yarl import URL

from trotline.adapters.http.failures import TunnelFailed, not_resolved
from trotline.adapters.http.guard import BoundedConnector, Guard
from trotline.adapters.http.limited_connection import Watchdog, WatchedConnection
from trotline.adapters.http.proxy_dialer import AddrInfo, ProxyConnector, ProxyDialer
from trotline.adapters.http.resolver import GuardedResolver
from trotline.model.limits import Limits
from trotline.model.time import Seconds
from trotline.rules.private_addresses import is_number

IDLE: Seconds = 15.0
"""An unused connection is kept this long."""
DNS_CACHE = 30
"""Seconds for which DNS answers are cached: the system's resolver has no TTL (decision 055)."""
DNS_NAMES = 10_000
"""Cached names; the least recently used is evicted first."""
_FOR_NAMES = 0.8
"""Share of the connect timeout for DNS: enough for a second query when a packet is lost."""


class Names:
    """DNS answers that the guard has checked. Shared by all connectors with this guard: a name is not resolved again
    for each proxy."""

    def __init__(self, guard: Guard, limits: Limits, *, slots: int) -> None:
        self.guard = guard
        self.resolver = GuardedResolver(guard, at_once=slots, within=limits.connect * _FOR_NAMES)
        self.cache = _DNSCacheTable(ttl=DNS_CACHE, max_size=DNS_NAMES)

    async def vet(self, url: URL) -> None:
        """Check a target that another party resolves: before every request, as it is resolved there each time."""
        await self.addresses(url.raw_host or "", url.port or 0)

    async def addresses(self, host: str, port: int) -> list[AddrInfo]:
        """The addresses of a name, or the address itself, all checked by the guard; raises `Forbidden` and
        `TunnelFailed`."""
        if is_number(host):
            self.guard.look(host, port)
            return [(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))]
        key = (host, port)
        if key not in self.cache or self.cache.expired(key):
            try:
                self.cache.add(key, await self.resolver.resolve(host, port))
            except OSError as error:
                raise TunnelFailed(*not_resolved(host, error)) from error
        found = self.cache.next_addrs(key)
        for one in found:
            self.guard.look(one["host"], port)
        return [(one["family"], socket.SOCK_STREAM, one["proto"], "", (one["host"], port)) for one in found]


def connector(
    limits: Limits, names: Names, *, slots: int, tls: ssl.SSLContext | None, dialer: ProxyDialer | None
) -> BoundedConnector:
    """Make it inside the event loop that uses it."""
    options: dict[str, Any] = {
        "most_idle": slots,
        "resolver": names.resolver,
        # The slots are the limit: waiting for a connection would look like a slow site.
        "limit": 0,
        "ssl": tls or True,
    }
    if dialer is not None and dialer.proxy.one_request_per_tunnel:
        options["force_close"] = True
    else:
        options["keepalive_timeout"] = IDLE
    made = (
        BoundedConnector(socket_factory=names.guard.make_socket, **options)
        if dialer is None
        else ProxyConnector(dialer, names.guard, **options)
    )
    made._cached_hosts = names.cache
    protocol: Callable[..., ResponseHandler] = WatchedConnection
    made._factory = partial(protocol, asyncio.get_running_loop(), limits, Watchdog(limits))
    return made
