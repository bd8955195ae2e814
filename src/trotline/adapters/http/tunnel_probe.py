"""Does a proxy open a tunnel to a target? The handshake alone, with TLS if the target has it: no request is sent."""

import asyncio
import ssl
from typing import Any
from urllib.parse import urlsplit

from trotline.adapters.http.failures import FETCH_ERRORS, explain, reason
from trotline.adapters.http.fetcher import HttpFetcher
from trotline.adapters.http.proxy_dialer import ProxyDialer
from trotline.adapters.http.proxy_stream import ProxyStream, SocketStream, TlsStream
from trotline.model.proxy import Proxy


class TunnelCheck:
    """Tunnels to one target."""

    def __init__(self, direct: HttpFetcher, url: str) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._tls = parts.scheme == "https"
        self._port = parts.port or (443 if self._tls else 80)
        self._limits = direct.limits
        self._names = direct.names
        self._guard = direct.guard
        self._context = ssl.create_default_context() if self._tls else None
        self._dialers: dict[Proxy, ProxyDialer] = {}

    async def attempt(self, proxy: Proxy) -> str:
        """Why there is no tunnel; empty: there was one, and it was closed again."""
        dialer = self._dialers.setdefault(proxy, ProxyDialer(proxy, self._limits, self._guard))
        try:
            # Checked by the guard, like those of every target.
            infos = await self._names.addresses(self._host, self._port)
            stream, _ = await dialer.tunnel(self._host, infos)
        except FETCH_ERRORS as error:
            return explain(error, "head", self._limits)[1]
        try:
            async with asyncio.timeout(self._limits.connect):
                await self._tls_handshake(stream)
        except TimeoutError:
            return f"no TLS with {self._host} within {self._limits.connect:g} s"
        except (OSError, ssl.SSLError) as error:
            return f"no TLS with {self._host}: {reason(error)}"
        finally:
            stream.close()
        return ""

    async def _tls_handshake(self, stream: ProxyStream) -> None:
        if self._context is None:
            return
        loop, protocol = asyncio.get_running_loop(), asyncio.Protocol()
        options: dict[str, Any] = {"server_hostname": self._host, "ssl_handshake_timeout": self._limits.connect}
        if isinstance(stream, TlsStream):
            transport = await loop.start_tls(stream.transport, protocol, self._context, **options)
        else:
            assert isinstance(stream, SocketStream)  # noqa: S101 - there is no other
            transport, _ = await loop.create_connection(
                lambda: protocol, sock=stream.sock, ssl=self._context, **options
            )
        if transport is not None:
            transport.abort()
