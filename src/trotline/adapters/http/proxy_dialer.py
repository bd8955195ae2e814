"""Connections through a proxy: a tunnel to the address that the guard has checked.

The proxy gets an address, not a name, for http as for https, so it cannot resolve the name to another address. Inside
the tunnel Host and SNI are those of the URL. With the modes that send a name (`ProxyMode`), the name is still checked.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from typing import Any, NoReturn, TypeVar

from trotline.adapters.http import http_tunnel, socks5
from trotline.adapters.http.failures import TunnelFailed, reason
from trotline.adapters.http.guard import BoundedConnector, Forbidden, Guard
from trotline.adapters.http.limited_connection import WatchedConnection
from trotline.adapters.http.proxy_fault_log import FaultLog
from trotline.adapters.http.proxy_stream import (
    P,
    ProxyStream,
    Refused,
    SocketStream,
    TlsStream,
    dial,
    open_tls,
    open_tls_stream,
)
from trotline.adapters.http.resolver import GuardedResolver
from trotline.model.answer import FailureKind
from trotline.model.limits import Limits
from trotline.model.proxy import Proxy, ProxyMode, ProxyScheme
from trotline.model.time import Seconds

KNOWN_FOR: Seconds = 30.0
"""The proxy's own addresses are cached this long."""
TRIES = 3
"""Addresses of one target that are tried: a proxy without IPv6 refuses those, and each costs a connection."""

_FOR_PROXY = 0.5
"""Share of the connect timeout for the proxy itself: distinguishes a slow proxy from a slow target behind it."""
_FOR_ALL = 0.95

AddrInfo = tuple[Any, Any, Any, str, tuple[Any, ...]]
T = TypeVar("T")


class ProxyDialer:
    """Connections through one proxy."""

    def __init__(self, proxy: Proxy, limits: Limits, guard: Guard, level: int = logging.WARNING) -> None:
        """`guard`: of the targets."""
        self.proxy = proxy
        self.login = {"Proxy-Authorization": f"Basic {proxy.credentials}"} if proxy.credentials else {}
        """Sent to the proxy only."""
        self._limits = limits
        # A proxy that the operator chose may have a private address. One from a list over HTTP may not: the author of
        # the list would choose what we connect to, and what gets the pool's login.
        self._guard = guard if proxy.listed_elsewhere else Guard(allow_private=True)
        self._names = GuardedResolver(self._guard, at_once=4, within=limits.connect * _FOR_PROXY)
        self._found: tuple[Seconds, list[tuple[int, str]]] = (0.0, [])
        """Expiry and addresses of the proxy."""
        self._log = FaultLog(level)

    async def tunnel(self, host: str, infos: Sequence[AddrInfo]) -> tuple[ProxyStream, str]:
        """A tunnel to one of these checked addresses of `host`, and that address; raises `TunnelFailed`."""
        try:
            async with asyncio.timeout(self._limits.connect * _FOR_ALL):
                return await self._tunnel(host, infos)
        except TimeoutError:
            within = f"within {self._limits.connect * _FOR_ALL:.2g} s"
            raise TunnelFailed(
                FailureKind.TIMEOUT, f"proxy {self.proxy.public} did not reach {host} {within}"
            ) from None

    async def _tunnel(self, host: str, infos: Sequence[AddrInfo]) -> tuple[ProxyStream, str]:
        refused: TunnelFailed | None = None
        # IPv4 first: nearly every proxy supports it.
        for *_, where in sorted(infos, key=lambda info: info[0] != socket.AF_INET)[:TRIES]:
            address, port = str(where[0]), int(where[1])
            target = host if self.proxy.mode is ProxyMode.NAME else address
            stream = await self._open_stream()
            try:
                await self._negotiate(stream, target, port, host)
            except TunnelFailed as error:
                stream.close()
                if error.trouble is FailureKind.PROXY or target == host:
                    raise
                refused = error
            except BaseException:
                stream.close()
                raise
            else:
                return stream, address if target == address else ""
        assert refused is not None  # noqa: S101 - a name has at least one address
        raise refused

    async def connect(self, protocol: Callable[[], P]) -> tuple[asyncio.Transport, P]:
        """A connection to the proxy itself, for requests that it forwards; raises `TunnelFailed`."""
        loop = asyncio.get_running_loop()

        async def opened(sock: socket.socket) -> tuple[asyncio.Transport, P]:
            if self.proxy.scheme is ProxyScheme.HTTPS:
                return await open_tls(sock, self.proxy.host, self.proxy.ca_file, protocol)
            return await loop.create_connection(protocol, sock=sock)

        return await self._reach(opened)

    async def _open_stream(self) -> ProxyStream:
        async def opened(sock: socket.socket) -> ProxyStream:
            if self.proxy.scheme is ProxyScheme.HTTPS:
                return await open_tls_stream(sock, self.proxy.host, self.proxy.ca_file)
            return SocketStream(sock)

        return await self._reach(opened)

    async def _reach(self, opened: Callable[[socket.socket], Awaitable[T]]) -> T:
        """What `opened` makes of a socket to the proxy; raises `TunnelFailed`."""
        last = "it has no address"
        try:
            async with asyncio.timeout(self._limits.connect * _FOR_PROXY):
                for family, address in await self._addresses():
                    try:
                        sock = await dial(family, address, self.proxy.port)
                    except OSError as error:
                        last = reason(error)
                        continue
                    try:
                        return await opened(sock)
                    except BaseException:
                        sock.close()
                        raise
        except TimeoutError:
            last = f"no connection within {self._limits.connect * _FOR_PROXY:.2g} s"
        except socket.gaierror as error:
            last = f"its name does not resolve ({reason(error)})"
        except ssl.SSLCertVerificationError as error:
            raise self.failed(f"certificate refused: {reason(error)}") from error
        except ssl.SSLError as error:
            raise self.failed(f"no TLS: {reason(error)}") from error
        except Refused as refusal:
            raise self.failed(refusal.what) from refusal
        except Forbidden as error:
            raise self.failed(f"its list is read over HTTP, and {error}") from error
        except OSError as error:
            last = reason(error)
        raise self.failed(f"unreachable: {last}")

    def failed(self, what: str) -> TunnelFailed:
        """A failure of the proxy itself: logged for the operator, and not counted against the lane."""
        why = f"proxy {self.proxy.public}: {what}"
        self._log.note(why)
        return TunnelFailed(FailureKind.PROXY, why)

    async def _negotiate(self, stream: ProxyStream, target: str, port: int, host: str) -> None:
        try:
            if self.proxy.scheme is ProxyScheme.SOCKS5:
                await self._log_in(stream)
                await socks5.open_tunnel(stream, target, port)
            else:
                await http_tunnel.open_tunnel(stream, _authority(target, port), self.login)
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
            raise self.failed(f"closed the connection: {reason(error)}") from error
        except Refused as refusal:
            shown = host if target == host else f"{host} ({_authority(target, port)})"
            self.refused(refusal.kind, refusal.what, shown)

    async def _log_in(self, stream: ProxyStream) -> None:
        within = self._limits.connect * _FOR_PROXY
        try:
            async with asyncio.timeout(within):
                await socks5.log_in(stream, self.proxy.user, self.proxy.password)
        except TimeoutError:
            raise Refused(FailureKind.PROXY, f"no reply to the SOCKS5 greeting within {within:.2g} s") from None

    def refused(self, kind: FailureKind, what: str, shown: str) -> NoReturn:
        """Raise `TunnelFailed`: the proxy's own failure, or a target that it does not reach or refuses."""
        if kind is FailureKind.PROXY:
            raise self.failed(what)
        if kind is FailureKind.CONNECT:
            raise TunnelFailed(kind, f"proxy {self.proxy.public} could not reach {shown}: {what}")
        hint = (
            "" if self.proxy.mode is ProxyMode.NAME else "; does it want names, or no tunnels to port 80? --proxy-mode"
        )
        raise TunnelFailed(kind, f"proxy {self.proxy.public} refused to connect to {shown}: {what}{hint}")

    async def _addresses(self) -> list[tuple[int, str]]:
        if _is_address(self.proxy.host):
            self._guard.admit_name(self.proxy.host, [self.proxy.host])
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

    async def _wrap_create_connection(self, *args: Any, addr_infos: Any, req: Any, **options: Any) -> Any:
        for *_, where in addr_infos:
            # An address literal in the URL does not pass the resolver: it is checked here.
            self._guard.look(str(where[0]), int(where[1]))
        stream, proxied_address = await self._dialer.tunnel(str(req.url.raw_host), addr_infos)
        try:
            transport, protocol = await self._taken_over(stream, *args, req=req, **options)
        except BaseException:
            stream.close()
            raise
        return _set_proxied_address(proxied_address, transport, protocol)

    async def _taken_over(self, stream: ProxyStream, *args: Any, req: Any, **options: Any) -> Any:
        """The tunnel as a connection of the session, with the target's TLS in it."""
        if isinstance(stream, SocketStream):
            return await self._wrap_existing_connection(*args, req=req, sock=stream.sock, **options)
        assert isinstance(stream, TlsStream)  # noqa: S101 - there is no other
        if req.is_ssl():
            return await self._start_tls_connection(stream.transport, req, options["timeout"])
        protocol = self._factory()
        stream.transport.set_protocol(protocol)
        protocol.connection_made(stream.transport)
        return stream.transport, protocol

    async def _create_proxy_connection(self, *_: Any) -> Any:
        """For plain-http requests in absolute form: a connection to the proxy."""
        return _set_proxied_address("", *await self._dialer.connect(self._factory))


def _set_proxied_address(address: str, transport: Any, protocol: Any) -> Any:
    if isinstance(protocol, WatchedConnection):
        protocol.proxied_address = address
    return transport, protocol


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
