"""The guard: private addresses and odd ports are never dialled.

Names are vetted when they resolve: one forbidden address refuses the name whole, so nobody can mix a public and a
private answer. What is about to be dialled is judged once more at the socket, which is also where an address
written into the URL passes: it never sees the resolver. What was vetted is what is dialled, so a name that
changes its mind between the two (rebinding) gains nothing.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from trotline.rules.addresses import why_not_address, why_not_port

HINT = "if you mean it, allow private addresses with --allow-private"


class Forbidden(Exception):
    """Not dialled. Deliberately no OSError: those are tried again on the next address."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Guard:
    """Which addresses this fetcher dials."""

    def __init__(self, *, allow_private: bool, allow_hosts: Collection[str]) -> None:
        self._allow_private = allow_private
        self._allow_hosts = frozenset(host.lower().strip("[]") for host in allow_hosts)
        self._vetted: set[str] = set()
        """Forbidden addresses that an allowed name stands for."""

    def admit(self, host: str, port: int) -> None:
        """Judge a URL's host and port before anything is resolved."""
        why = why_not_port(port)
        if why:
            raise Forbidden(why)
        if _is_literal(host):
            self._judge(host, host)

    def admit_name(self, name: str, addresses: Collection[str]) -> None:
        """Judge what a name resolved to: all of it, or none."""
        for address in addresses:
            self._judge(name, address)

    def make_socket(self, addr_info: tuple[Any, ...]) -> socket.socket:
        """The last look, at what is about to be dialled."""
        family, kind, protocol, _, where = addr_info
        address, port = where[0], where[1]
        why = why_not_port(port)
        if why:
            raise Forbidden(why)
        if address not in self._vetted:
            self._judge(address, address)
        return socket.socket(family, kind, protocol)

    def _judge(self, name: str, address: str) -> None:
        if self._allow_private:
            return
        why = why_not_address(address)
        if not why:
            return
        if name.lower() in self._allow_hosts:
            self._vetted.add(address)
            return
        shown = name if name == address else f"{name} ({address})"
        raise Forbidden(f"{shown} is not a public address: {why}; {HINT}")


def _is_literal(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


class GuardedResolver(AbstractResolver):
    """The system's resolver, one thread per lookup.

    Threads of our own, so that dead name servers do not fill the loop's shared ones; and daemons, so that a lookup
    that hangs does not keep a stopping worker alive.
    """

    def __init__(self, guard: Guard, at_once: int) -> None:
        self._guard = guard
        self._room = asyncio.Semaphore(at_once)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        async with self._room:
            infos = await _in_a_thread(lambda: _look_up(host, port, family))
        found = [
            ResolveResult(
                hostname=host,
                host=str(where[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, where in infos
        ]
        self._guard.admit_name(host, [result["host"] for result in found])
        return found

    async def close(self) -> None:
        """Nothing is held."""


async def _in_a_thread(work: Callable[[], list[Any]]) -> list[Any]:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[list[Any]] = loop.create_future()

    def tell(result: list[Any] | None, error: Exception | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result or [])

    def run() -> None:
        result, trouble = None, None
        try:
            result = work()
        except OSError as error:
            trouble = error
        # A loop that was closed while the lookup hung has nobody left to tell.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, result, trouble)

    threading.Thread(target=run, name="trotline-dns", daemon=True).start()
    return await done


def _look_up(host: str, port: int, family: int) -> list[Any]:
    try:
        return socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError as error:
        # A label that is empty or too long never reaches DNS.
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from error


class BoundedConnector(TCPConnector):
    """Keeps idle connections to so many hosts at most: a broad crawl would otherwise keep thousands of sockets."""

    def __init__(self, *, idle_hosts: int, socket_factory: Callable[[Any], socket.socket], **options: Any) -> None:
        super().__init__(socket_factory=socket_factory, **options)
        self._idle_hosts = idle_hosts

    def _release(self, key: Any, protocol: Any, *, should_close: bool = False) -> None:
        super()._release(key, protocol, should_close=should_close)
        if len(self._conns) > self._idle_hosts:
            # The first key is the host that was given back longest ago.
            for idle, _ in self._conns.pop(next(iter(self._conns))):
                idle.close()
