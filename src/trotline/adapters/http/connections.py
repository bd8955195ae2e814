"""How connections are made: directly or through a proxy, every one of them guarded and watched."""

import asyncio
import ssl
from functools import partial
from typing import Any

from aiohttp.client_proto import ResponseHandler

from trotline.adapters.http.guard import BoundedConnector, Guard
from trotline.adapters.http.protocol import Line, Watch
from trotline.adapters.http.proxy import ProxyConnector, WayOut
from trotline.adapters.http.resolver import GuardedResolver
from trotline.model.limits import Limits
from trotline.model.time import Seconds

IDLE: Seconds = 15.0
"""An unused connection is kept this long."""
DNS_CACHE = 30
"""Seconds for which a name's addresses are believed: the system's resolver tells no TTL (decision 055)."""
DNS_NAMES = 10_000
"""Names whose addresses are kept; the one unused for longest goes first."""
_FOR_NAMES = 0.8
"""Of the time to connect, for the name: enough to ask twice when a packet is lost."""


def connector(
    limits: Limits, guard: Guard, *, slots: int, tls: ssl.SSLContext | None, way_out: WayOut | None
) -> BoundedConnector:
    """Make it inside the event loop that uses it."""
    options: dict[str, Any] = {
        "most_idle": slots,
        "resolver": GuardedResolver(guard, at_once=slots, within=limits.connect * _FOR_NAMES),
        # No limit here: the slots are the limit, and waiting for a connection would look like a slow site.
        "limit": 0,
        "keepalive_timeout": IDLE,
        "ttl_dns_cache": DNS_CACHE,
        "dns_cache_max_size": DNS_NAMES,
        "ssl": tls or True,
    }
    made = (
        BoundedConnector(socket_factory=guard.make_socket, **options)
        if way_out is None
        else ProxyConnector(way_out, guard, **options)
    )
    watch = Watch(limits)
    loop = asyncio.get_running_loop()

    def line() -> ResponseHandler:
        return Line(loop, limits, watch)

    made._factory = partial(line)
    return made
