"""The aiohttp connector: direct or through a proxy, with guard and limits."""

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from aiohttp.client_proto import ResponseHandler

from trotline.adapters.http.guard import BoundedConnector, Guard
from trotline.adapters.http.protocol import Watch, WatchedProtocol
from trotline.adapters.http.proxy import ProxyConnector, ProxyDialer
from trotline.adapters.http.resolver import GuardedResolver
from trotline.model.limits import Limits
from trotline.model.time import Seconds

IDLE: Seconds = 15.0
"""An unused connection is kept this long."""
DNS_CACHE = 30
"""Seconds for which DNS answers are cached: the system's resolver has no TTL (decision 055)."""
DNS_NAMES = 10_000
"""Cached names; the least recently used is evicted first."""
_FOR_NAMES = 0.8
"""Share of the connect timeout for DNS: enough for a second query when a packet is lost."""


def connector(
    limits: Limits, guard: Guard, *, slots: int, tls: ssl.SSLContext | None, dialer: ProxyDialer | None
) -> BoundedConnector:
    """Make it inside the event loop that uses it."""
    options: dict[str, Any] = {
        "most_idle": slots,
        "resolver": GuardedResolver(guard, at_once=slots, within=limits.connect * _FOR_NAMES),
        # The slots are the limit: waiting for a connection would look like a slow site.
        "limit": 0,
        "keepalive_timeout": IDLE,
        "ttl_dns_cache": DNS_CACHE,
        "dns_cache_max_size": DNS_NAMES,
        "ssl": tls or True,
    }
    made = (
        BoundedConnector(socket_factory=guard.make_socket, **options)
        if dialer is None
        else ProxyConnector(dialer, guard, **options)
    )
    protocol: Callable[..., ResponseHandler] = WatchedProtocol
    made._factory = partial(protocol, asyncio.get_running_loop(), limits, Watch(limits))
    return made
