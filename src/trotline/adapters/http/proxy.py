"""Connections through a proxy: a CONNECT tunnel to the address that the guard has checked.

The proxy gets an address, not a name, for http as for https, so it cannot resolve the name to another address. Inside
the tunnel Host and SNI are those of the URL. With the modes that send a name (`ProxyMode`), the name is still checked.
"""

import asyncio
import logging
import re
import socket
from collections.abc import Awaitable, Sequence
from ipaddress import ip_address
from typing import Any

from yarl import URL

from trotline.adapters.http.failures import TunnelFailed, not_resolved, reason
from trotline.adapters.http.guard import BoundedConnector, Guard
from trotline.adapters.http.protocol import WatchedProtocol
from trotline.adapters.http.resolver import GuardedResolver
from trotline.model.answer import FailureKind
from trotline.model.limits import Limits
from trotline.model.proxy import Proxy, ProxyMode
from trotline.model.time import Seconds

log = logging.getLogger("trotline.proxy")

KNOWN_FOR: Seconds = 30.0
"""The proxy's own addresses are cached this long."""
TRIES = 3
"""Addresses of one target that are tried: a proxy without IPv6 refuses those, and each costs a connection."""
LOG_AGAIN: Seconds = 60.0
"""Interval at which a lasting failure is logged again."""

_FOR_PROXY = 0.5
"""Share of the connect timeout for the proxy itself: distinguishes a slow proxy from a slow target behind it."""
_FOR_ALL = 0.95
_LONGEST_REPLY = 16 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9]\d\d)(?: [^\r\n]*)?\r\n")
_CARRIES_A_PAGE = re.compile(rb"\r\n(?:content-length: *0*[1-9]|transfer-encoding:)", re.IGNORECASE)
_OF_THE_PROXY = {
    401: "authentication failed",
    402: "payment required",
    407: "authentication failed",
    429: "rate limit reached",
}
"""Statuses of the proxy itself, not of the target."""

AddrInfo = tuple[Any, Any, Any, str, tuple[Any, ...]]


class ProxyDialer:
    """Connections through one proxy."""

    def __init__(self, proxy: Proxy, limits: Limits) -> None:
        self.proxy = proxy
        self.login = {"Proxy-Authorization": f"Basic {proxy.credentials}"} if proxy.credentials else {}
        """Sent to the proxy only."""
        self._limits = limits
        # The operator chose the proxy: its address may be private.
        open_guard = Guard(allow_private=True)
        self._names = GuardedResolver(open_guard, at_once=4, within=limits.connect * _FOR_PROXY)
        self._found: tuple[Seconds, list[tuple[int, str]]] = (0.0, [])
        """Expiry and addresses of the proxy."""
        self._logged: tuple[str, Seconds] = ("", 0.0)

    async def tunnel(self, host: str, infos: Sequence[AddrInfo]) -> tuple[socket.socket, str]:
        """A tunnel to one of these checked addresses of `host`, and that address; raises `TunnelFailed`."""
        try:
            async with asyncio.timeout(self._limits.connect * _FOR_ALL):
                return await self._tunnel(host, infos)
        except TimeoutError:
            within = f"within {self._limits.connect * _FOR_ALL:.2g} s"
            raise TunnelFailed(
                FailureKind.TIMEOUT, f"proxy {self.proxy.public} did not reach {host} {within}"
            ) from None

    async def _tunnel(self, host: str, infos: Sequence[AddrInfo]) -> tuple[socket.socket, str]:
        refused: TunnelFailed | None = None
        # IPv4 first: nearly every proxy supports it.
        for *_, where in sorted(infos, key=lambda info: info[0] != socket.AF_INET)[:TRIES]:
            address, port = str(where[0]), int(where[1])
            target = host if self.proxy.mode is ProxyMode.NAME else address
            sock = await self.reach()
            try:
                await self._connect(sock, _authority(target, port), host)
            except TunnelFailed as error:
                sock.close()
                if error.trouble is FailureKind.PROXY or target == host:
                    raise
                refused = error
            except BaseException:
                sock.close()
                raise
            else:
                return sock, address if target == address else ""
        assert refused is not None  # noqa: S101 - a name has at least one address
        raise refused

    async def reach(self) -> socket.socket:
        """A socket to the proxy itself; raises `TunnelFailed`."""
        last = "it has no address"
        try:
            async with asyncio.timeout(self._limits.connect * _FOR_PROXY):
                for family, address in await self._addresses():
                    try:
                        return await _dial(family, address, self.proxy.port)
                    except OSError as error:
                        last = reason(error)
        except TimeoutError:
            last = f"no connection within {self._limits.connect * _FOR_PROXY:.2g} s"
        except socket.gaierror as error:
            last = f"its name does not resolve ({reason(error)})"
        raise self.failed(f"unreachable: {last}")

    def failed(self, what: str) -> TunnelFailed:
        """A failure of the proxy itself: logged for the operator, and not counted against the lane."""
        why = f"proxy {self.proxy.public}: {what}"
        logged, until = self._logged
        now = asyncio.get_running_loop().time()
        if logged != why or now >= until:
            self._logged = (why, now + LOG_AGAIN)
            log.warning("proxy.failed %s; pages wait for it", why)
        return TunnelFailed(FailureKind.PROXY, why)

    async def _connect(self, sock: socket.socket, target: str, host: str) -> None:
        """Send CONNECT, and check the proxy's reply."""
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        lines += [f"{name}: {value}" for name, value in self.login.items()]
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(sock, "\r\n".join([*lines, "", ""]).encode("latin-1"))
            reply = b""
            while b"\r\n\r\n" not in reply:
                more = await loop.sock_recv(sock, 4096)
                if not more or len(reply) > _LONGEST_REPLY:
                    raise self.failed("closed the connection" if not more else "reply head too long")
                reply += more
        except OSError as error:
            raise self.failed(f"closed the connection: {reason(error)}") from error
        self._judge(reply, target, host)

    def _judge(self, reply: bytes, target: str, host: str) -> None:
        match = _STATUS.match(reply)
        if match is None:
            raise self.failed("reply is not HTTP")
        status = int(match[1])
        if 200 <= status < 300:
            head, _, beyond = reply.partition(b"\r\n\r\n")
            if beyond or _CARRIES_A_PAGE.search(head):
                # A captive portal, for example: its page would be taken for the site's.
                raise self.failed("sent a page of its own instead of opening a tunnel")
            return
        if status in _OF_THE_PROXY:
            raise self.failed(f"{_OF_THE_PROXY[status]} ({status})")
        shown = host if target.startswith(host) else f"{host} ({target})"
        if status >= 500:
            raise TunnelFailed(FailureKind.CONNECT, f"proxy {self.proxy.public} could not reach {shown}: {status}")
        hint = (
            "" if self.proxy.mode is ProxyMode.NAME else "; does it want names, or no tunnels to port 80? --proxy-mode"
        )
        raise TunnelFailed(
            FailureKind.PROXY_REFUSED, f"proxy {self.proxy.public} refused to connect to {shown}: {status}{hint}"
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
            # DNS is unavailable for a moment: use the expired addresses.
            return known
        addresses = [(int(one["family"]), one["host"]) for one in found]
        self._found = (now + KNOWN_FOR, addresses)
        return addresses


class ProxyConnector(BoundedConnector):
    """Connects to the proxy only. Target names are resolved and checked here as without one."""

    def __init__(self, dialer: ProxyDialer, guard: Guard, **options: Any) -> None:
        super().__init__(socket_factory=guard.make_socket, **options)
        self._dialer = dialer
        self._guard = guard

    async def vet(self, url: URL) -> None:
        """Check a target that the proxy gets by name: before every request, as the proxy resolves it each time."""
        host, port = url.raw_host or "", url.port or 0
        try:
            found = await self._resolve_host(host, port)
        except OSError as error:
            raise TunnelFailed(*not_resolved(host, error)) from error
        for one in found:
            self._guard.look(one["host"], port)

    async def _wrap_create_connection(self, *args: Any, addr_infos: Any, req: Any, **options: Any) -> Any:
        for *_, where in addr_infos:
            # An address literal in the URL does not pass the resolver: it is checked here.
            self._guard.look(str(where[0]), int(where[1]))
        sock, far_end = await self._dialer.tunnel(str(req.url.raw_host), addr_infos)
        return await self._connected(
            sock, far_end, self._wrap_existing_connection(*args, req=req, sock=sock, **options)
        )

    async def _create_proxy_connection(self, *_: Any) -> Any:
        """For plain-http requests in absolute form: a connection to the proxy."""
        sock = await self._dialer.reach()
        return await self._connected(sock, "", self._loop.create_connection(self._factory, sock=sock))

    async def _connected(self, sock: socket.socket, far_end: str, connecting: Awaitable[Any]) -> Any:
        try:
            transport, protocol = await connecting
        except BaseException:
            sock.close()
            raise
        if isinstance(protocol, WatchedProtocol):
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
