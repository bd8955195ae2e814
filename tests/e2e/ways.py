"""Ways out for tests: one of each kind, over real proxies, each with an address of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import aiohttp
from aiohttp import web

from trotline.adapters.http.fetcher import HttpFetcher
from trotline.adapters.http.proxy_pool_fetcher import PooledFetcher
from trotline.model.limits import Limits
from trotline.model.proxy import ApiGateway, Proxy, ProxyMode, Way
from trotline.model.secret import Secret
from trotline.testing import real_proxies
from trotline.testing.real_proxies import RealProxy
from trotline.testing.torture.certificates import Authority

PASSWORD = "pass-w0rd_of.ours"  # noqa: S105 - of proxies of our own
KEY = "k3y-of-our-account"


@dataclass(frozen=True)
class Exit:
    """A way, and the address that sites see."""

    name: str
    way: Proxy
    address: str
    real: RealProxy


KINDS = ("squid", "squid forward", "squid https", "squid https forward", "tinyproxy", "tinyproxy forward", "dante",
         "microsocks", "dante by name")  # fmt: skip


def _started(kind: str, address: str, authority: Authority) -> tuple[Any, dict[str, Any]]:
    authority.server()
    tls = (authority.path("good.pem"), authority.path("good.key"))
    login = {"user": "anna", "password": PASSWORD}
    match kind.split()[0], "https" in kind:
        case "squid", True:
            return real_proxies.squid(leaves_from=address, tls=tls), {"ca_file": authority.path("ca.pem")}
        case "squid", False:
            return real_proxies.squid(leaves_from=address), {}
        case "tinyproxy", _:
            return real_proxies.tinyproxy(leaves_from=address, **login), {}
        case "dante", _:
            return real_proxies.dante(leaves_from=address), {}
        case _:
            return real_proxies.microsocks(leaves_from=address, **login), {}


class Exits:
    """Real proxies that are started when they are needed, and run until the end."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority
        self._stack = ExitStack()
        self._made: dict[str, Exit] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def get(self, kind: str) -> Exit:
        if kind not in self._made:
            address = f"127.0.0.{21 + KINDS.index(kind)}"
            starting, options = _started(kind, address, self._authority)
            real = self._stack.enter_context(starting)
            mode = next((mode for mode in ProxyMode if kind.endswith(mode.value)), ProxyMode.ADDRESS)
            self._made[kind] = Exit(kind, Proxy.parse(real.url, mode, **options), address, real)
        return self._made[kind]


@asynccontextmanager
async def pooled(
    limits: Limits | None = None, most: int = 256, idle: int = 64, **options: object
) -> AsyncIterator[PooledFetcher]:
    own = {"user_agent": "test/1", "spider": "s", "allow_private": True, **options}
    made = PooledFetcher.over(HttpFetcher(limits or Limits(), **own), most=most, most_idle=idle)
    try:
        yield made
    finally:
        await made.close()
        # The far ends of refused handshakes hear of it through the proxy.
        await asyncio.sleep(0.05)


class ApiServer:
    """An API gateway in the style of ScraperAPI: it fetches the URL of its query, and answers with what it got.

    `own`: what it answers by itself, before it fetches anything: status, body.
    """

    def __init__(self, *, status_header: str = "") -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Targets, and the headers that came with them."""
        self.own: tuple[int, bytes] | None = None
        self.key = KEY
        self._status_header = status_header
        self.port = 0

    def way(self, **options: Any) -> ApiGateway:
        own: dict[str, Any] = {"endpoint": f"http://127.0.0.1:{self.port}/?render=false", "key": Secret(KEY)}
        return ApiGateway(**{**own, "status_header": self._status_header, **options})

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/", self._serve)
        self._client = aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        query = parse_qs(urlsplit(request.raw_path).query)
        self.asked.append((query["url"][0], dict(request.headers)))
        if query["api_key"] != [self.key]:
            return web.Response(status=401, text="Unauthorized request")
        if self.own is not None:
            if self.own[0] == 0:
                await asyncio.Event().wait()
            return web.Response(status=self.own[0], body=self.own[1])
        async with self._client.request(request.method, query["url"][0], data=await request.read()) as found:
            headers = {name: found.headers[name] for name in ("Content-Type", "Set-Cookie") if name in found.headers}
            if not self._status_header:
                return web.Response(status=found.status, body=await found.read(), headers=headers)
            headers[self._status_header] = str(found.status)
            return web.Response(status=200, body=await found.read(), headers=headers)


def without_way(way: Way) -> None:
    """Nothing of the login in what is shown."""
    shown = f"{way} {way!r} {[way]!r}"
    assert PASSWORD not in shown and KEY not in shown
