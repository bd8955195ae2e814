"""Going out through a proxy: a tunnel to the address that the guard has vetted.

The proxy is told an address, not a name, for http as for https, so there is nothing left that it could look up and
that could mean another place to it than it meant to us. Inside the tunnel Host and server name are those of the URL.
Modes that tell a name (`ProxyMode`) are the operator's choice; the name is vetted all the same before it is told.
"""

import asyncio
import logging
import re
import socket
from collections.abc import Awaitable, Sequence
from ipaddress import ip_address
from typing import Any

from yarl import URL

from trotline.adapters.http.failures import NoWay, no_name, reason
from trotline.adapters.http.guard import BoundedConnector, Guard
from trotline.adapters.http.protocol import Line
from trotline.adapters.http.resolver import GuardedResolver
from trotline.model.answer import FailureKind
from trotline.model.limits import Limits
from trotline.model.proxy import Proxy, ProxyMode
from trotline.model.time import Seconds

log = logging.getLogger("trotline.proxy")

KNOWN_FOR: Seconds = 30.0
"""The proxy's own name is looked up again after this."""
TRIES = 3
"""Addresses of one target that are asked for: a proxy without IPv6 refuses those, and each costs a connection."""
SAY_AGAIN: Seconds = 60.0
"""A trouble that lasts is told so often."""

_FOR_REACHING = 0.5
"""Of the time to connect: what is over sooner can be told from a target that is slow behind the proxy."""
_FOR_ALL = 0.95
_LONGEST_REPLY = 16 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9]\d\d)(?: [^\r\n]*)?\r\n")
_CARRIES_A_PAGE = re.compile(rb"\r\n(?:content-length: *0*[1-9]|transfer-encoding:)", re.IGNORECASE)
_OF_THE_PROXY = {
    401: "wants another login",
    402: "is not paid",
    407: "wants another login",
    429: "has had enough of us",
}
"""Statuses that say nothing about the target."""

AddrInfo = tuple[Any, Any, Any, str, tuple[Any, ...]]


class WayOut:
    """Connections through one proxy."""

    def __init__(self, proxy: Proxy, limits: Limits) -> None:
        self.proxy = proxy
        self.login = {"Proxy-Authorization": f"Basic {proxy.credentials}"} if proxy.credentials else {}
        """The header that says who we are. It goes to the proxy alone."""
        self._limits = limits
        # The operator's own: it may be anywhere.
        open_guard = Guard(allow_private=True)
        self._names = GuardedResolver(open_guard, at_once=4, within=limits.connect * _FOR_REACHING)
        self._found: tuple[Seconds, list[tuple[int, str]]] = (0.0, [])
        """Until when the proxy's addresses are believed, and these."""
        self._said: tuple[str, Seconds] = ("", 0.0)

    async def tunnel(self, host: str, infos: Sequence[AddrInfo]) -> tuple[socket.socket, str]:
        """A socket whose far end is one of these vetted addresses of `host`, and that address; `NoWay` says why not."""
        try:
            async with asyncio.timeout(self._limits.connect * _FOR_ALL):
                return await self._tunnel(host, infos)
        except TimeoutError:
            within = f"within {self._limits.connect * _FOR_ALL:.2g} s"
            raise NoWay(FailureKind.TIMEOUT, f"proxy {self.proxy.public} did not reach {host} {within}") from None

    async def _tunnel(self, host: str, infos: Sequence[AddrInfo]) -> tuple[socket.socket, str]:
        refused: NoWay | None = None
        # IPv4 first: nearly every proxy has it.
        for *_, where in sorted(infos, key=lambda info: info[0] != socket.AF_INET)[:TRIES]:
            address, port = str(where[0]), int(where[1])
            told = host if self.proxy.mode is ProxyMode.NAME else address
            sock = await self.reach()
            try:
                await self._connect(sock, _authority(told, port), host)
            except NoWay as error:
                sock.close()
                if error.trouble is FailureKind.PROXY or told == host:
                    raise
                refused = error
            except BaseException:
                sock.close()
                raise
            else:
                return sock, address if told == address else ""
        assert refused is not None  # noqa: S101 - a name has at least one address
        raise refused

    async def reach(self) -> socket.socket:
        """A socket to the proxy itself; `NoWay` says why not."""
        last = "it has no address"
        try:
            async with asyncio.timeout(self._limits.connect * _FOR_REACHING):
                for family, address in await self._addresses():
                    try:
                        return await _dial(family, address, self.proxy.port)
                    except OSError as error:
                        last = reason(error)
        except TimeoutError:
            last = f"no connection within {self._limits.connect * _FOR_REACHING:.2g} s"
        except socket.gaierror as error:
            last = f"its name does not resolve ({reason(error)})"
        raise self.trouble(f"cannot be reached: {last}")

    def trouble(self, what: str) -> NoWay:
        """FailureKind of the proxy itself: told to the operator, and to no lane."""
        why = f"proxy {self.proxy.public} {what}"
        said, again = self._said
        now = asyncio.get_running_loop().time()
        if said != why or now >= again:
            self._said = (why, now + SAY_AGAIN)
            log.warning("proxy.trouble %s; pages wait for it", why)
        return NoWay(FailureKind.PROXY, why)

    async def _connect(self, sock: socket.socket, target: str, host: str) -> None:
        """Ask the proxy for a tunnel, and hear what it says."""
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        lines += [f"{name}: {value}" for name, value in self.login.items()]
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(sock, "\r\n".join([*lines, "", ""]).encode("latin-1"))
            reply = b""
            while b"\r\n\r\n" not in reply:
                more = await loop.sock_recv(sock, 4096)
                if not more or len(reply) > _LONGEST_REPLY:
                    raise self.trouble("closed the connection" if not more else "answers without end")
                reply += more
        except OSError as error:
            raise self.trouble(f"closed the connection: {reason(error)}") from error
        self._judge(reply, target, host)

    def _judge(self, reply: bytes, target: str, host: str) -> None:
        match = _STATUS.match(reply)
        if match is None:
            raise self.trouble("does not speak HTTP")
        status = int(match[1])
        if 200 <= status < 300:
            head, _, beyond = reply.partition(b"\r\n\r\n")
            if beyond or _CARRIES_A_PAGE.search(head):
                # A captive portal, or a server that takes everything for a page. Read on, its page would be the site's.
                raise self.trouble("answers with a page of its own instead of a tunnel")
            return
        if status in _OF_THE_PROXY:
            raise self.trouble(f"{_OF_THE_PROXY[status]} ({status})")
        for_whom = host if target.startswith(host) else f"{host} ({target})"
        if status >= 500:
            raise NoWay(FailureKind.CONNECT, f"proxy {self.proxy.public} could not reach {for_whom}: {status}")
        hint = (
            "" if self.proxy.mode is ProxyMode.NAME else "; does it want names, or no tunnels to port 80? --proxy-mode"
        )
        raise NoWay(
            FailureKind.PROXY_REFUSED, f"proxy {self.proxy.public} refused the way to {for_whom}: {status}{hint}"
        )

    async def _addresses(self) -> list[tuple[int, str]]:
        if _is_address(self.proxy.host):
            return [(socket.AF_INET6 if ":" in self.proxy.host else socket.AF_INET, self.proxy.host)]
        until, known = self._found
        now = asyncio.get_running_loop().time()
        if now < until:
            return known
        try:
            found = await self._names.resolve(self.proxy.host, self.proxy.port)
        except OSError:
            if not known:
                raise
            # A name server that is away for a moment: the proxy is most likely where it was.
            return known
        addresses = [(int(one["family"]), one["host"]) for one in found]
        self._found = (now + KNOWN_FOR, addresses)
        return addresses


class ProxyConnector(BoundedConnector):
    """Dials nobody but the proxy. Names are resolved and vetted here as without one."""

    def __init__(self, way_out: WayOut, guard: Guard, **options: Any) -> None:
        super().__init__(socket_factory=guard.make_socket, **options)
        self._way_out = way_out
        self._guard = guard

    async def vet(self, url: URL) -> None:
        """Judge a target that the proxy will be told by name: before every request, for the proxy looks it up anew."""
        host, port = url.raw_host or "", url.port or 0
        try:
            found = await self._resolve_host(host, port)
        except OSError as error:
            raise NoWay(*no_name(host, error)) from error
        for one in found:
            self._guard.look(one["host"], port)

    async def _wrap_create_connection(self, *args: Any, addr_infos: Any, req: Any, **options: Any) -> Any:
        for *_, where in addr_infos:
            # An address written into the URL has not seen the resolver: this is where it is judged.
            self._guard.look(str(where[0]), int(where[1]))
        sock, far_end = await self._way_out.tunnel(str(req.url.raw_host), addr_infos)
        return await self._speak(sock, far_end, self._wrap_existing_connection(*args, req=req, sock=sock, **options))

    async def _create_proxy_connection(self, *_: Any) -> Any:
        """For pages that are forwarded: a plain connection to the proxy."""
        sock = await self._way_out.reach()
        return await self._speak(sock, "", self._loop.create_connection(self._factory, sock=sock))

    async def _speak(self, sock: socket.socket, far_end: str, speaking: Awaitable[Any]) -> Any:
        try:
            transport, protocol = await speaking
        except BaseException:
            sock.close()
            raise
        if isinstance(protocol, Line):
            protocol.far_end = far_end
        return transport, protocol


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def _dial(family: int, address: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(sock, (address, port))
    except BaseException:
        sock.close()
        raise
    return sock
