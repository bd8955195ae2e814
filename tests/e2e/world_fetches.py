"""Runs inside the world: fetches URLs as they are, all at once, and tells what became of each, in order of arrival."""

import asyncio
import json
import socket
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from tests.e2e.world_zone import PROXY

from trotline.adapters.browser_like.fetcher import BrowserWays
from trotline.adapters.http import connections, guard, proxy_dialer, resolver
from trotline.adapters.http.fetcher import HttpFetcher
from trotline.model.answer import Failure
from trotline.model.limits import Limits
from trotline.model.proxy import Proxy, ProxyMode
from trotline.model.task import Task


def _python_table() -> None:
    """Holes: NAT64, 6to4, compatible and translated forms, multicast."""
    guard.why_not_address = lambda address: "" if ip_address(address).is_global else "private"  # type: ignore[assignment]


def _first_address_only() -> None:
    judge_all = guard.Guard.admit_name
    guard.Guard.admit_name = lambda self, name, found: judge_all(self, name, list(found)[:1])  # type: ignore[method-assign]
    resolver.GuardedResolver.resolve = _private_last  # type: ignore[method-assign]
    _socket_unwatched()


async def _private_last(self: resolver.GuardedResolver, host: str, port: int = 0, family: Any = 0) -> list[Any]:
    """Which address is dialled first is for the system to say, and for whoever owns the name to try."""
    found = await _resolve(self, host, port, family)
    return sorted(found, key=lambda one: one["host"].startswith("93."))


def _look_twice() -> None:
    """Vets one lookup and dials another: what rebinding is made for."""

    async def resolve(self: resolver.GuardedResolver, host: str, port: int = 0, family: Any = 0) -> list[Any]:
        vetted = await _resolve(self, host, port, family)
        again = await self._infos(host, port, family)
        return [{**vetted[0], "host": where[0], "family": kind} for kind, *_, where in again]

    resolver.GuardedResolver.resolve = resolve  # type: ignore[method-assign]
    _socket_unwatched()


def _proxied_unvetted() -> None:
    """What a proxy is told is the proxy's affair: the bug that hides behind every proxy setting."""

    async def connect_by_name(self: proxy_dialer.ProxyDialer, host: str, infos: Any) -> Any:
        stream = await self._open_stream()
        await self._negotiate(stream, host, infos[0][4][1], host)
        return stream, ""

    async def unvetted(_: object, __: object) -> None:
        return None

    guard.Guard.admit = lambda *_: None  # type: ignore[method-assign]
    guard.Guard.admit_name = lambda *_: None  # type: ignore[method-assign]
    guard.Guard.look = lambda *_: None  # type: ignore[method-assign]
    proxy_dialer.ProxyDialer.tunnel = connect_by_name  # type: ignore[method-assign]
    connections.Names.vet = unvetted  # type: ignore[method-assign]


def _socket_unwatched() -> None:
    guard.Guard.look = lambda *_: None  # type: ignore[method-assign]
    guard.Guard.make_socket = lambda _, info: socket.socket(*info[:3])  # type: ignore[method-assign]


_resolve = resolver.GuardedResolver.resolve
PLANTED = {
    "python's own table": _python_table,
    "only the first address": _first_address_only,
    "look twice": _look_twice,
    "proxied requests are not vetted": _proxied_unvetted,
}
"""Bugs that others have shipped. Tests put them in to see that the canaries sing."""


async def main(order: dict[str, Any]) -> None:
    if order.get("planted"):
        PLANTED[order["planted"]]()
    limits = Limits(**order.get("limits", {}))
    fetcher = HttpFetcher(
        limits,
        user_agent="test/1",
        spider="s",
        slots=order.get("slots", 64),
        allow=order.get("allow", ()),
        allow_private=order.get("allow_private", False),
        proxy=Proxy.parse(PROXY, ProxyMode(order["proxy"])) if order.get("proxy") else None,
    )
    browser = BrowserWays(fetcher, {}) if order.get("client") == "browser" else None
    told: dict[str, Any] = {}

    async def fetch(url: str) -> None:
        outcome = await (browser or fetcher).fetch(Task(url=url, route="r"))
        if isinstance(outcome, Failure):
            told[url] = {"trouble": outcome.trouble.value, "why": outcome.why}
        else:
            told[url] = {"status": outcome.status, "address": outcome.address, "body": outcome.body.decode()}

    await asyncio.gather(*map(fetch, order["urls"]))
    if browser is not None:
        await browser.close()
    await fetcher.close()
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))
