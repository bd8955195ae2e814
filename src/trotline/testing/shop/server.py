"""The demo shop itself: a real HTTP server, on a free port, that remembers every visit."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple, Self

from aiohttp import web
from aiohttp.typedefs import Handler

from trotline.testing.server_thread import in_thread
from trotline.testing.servers import listen
from trotline.testing.shop.account import Account
from trotline.testing.shop.answers import Packed, not_found, pack, send
from trotline.testing.shop.api import Api
from trotline.testing.shop.lab import Lab
from trotline.testing.shop.maps import Maps
from trotline.testing.shop.oddities import Encoded, Oddities, encodings
from trotline.testing.shop.search import Search
from trotline.testing.shop.stock import Order, Product, Quote, stock_up
from trotline.testing.shop.storefront import Storefront
from trotline.testing.shop.traps import Traps
from trotline.testing.shop.trouble import Manners, Trouble

LOOPBACK = ("127.0.0.1",)
_ABANDONED = 499
_KEPT_PAGES = 4096


class Visit(NamedTuple):
    time: float
    """When it arrived, on `time.monotonic()`: the distance between two visits is their true distance."""
    path: str
    """As it travelled, with its query."""
    client: str
    """The address that the connection came from."""
    status: int
    """What was answered; 499 if the client left before the end."""


class DemoShop:
    """A small site that is the same every time.

    Use it as `async with DemoShop() as shop`, in a thread of its own as `with DemoShop.in_thread() as shop`,
    or from a terminal as `python -m trotline.testing.shop`. With several `hosts` (127.0.0.1, 127.0.0.2, ...) the same
    shop answers on each of them, on one port.
    """

    def __init__(
        self,
        products: int = 120,
        seed: int = 7,
        port: int = 0,
        *,
        quotes: int = 45,
        hosts: Sequence[str] = LOOPBACK,
        manners: Manners | None = None,
    ) -> None:
        self._stock = stock_up(products, quotes, seed)
        self._hosts = tuple(hosts)
        self._port = port
        self._storefront = Storefront(self._stock)
        self._packed = lru_cache(maxsize=_KEPT_PAGES)(self._pack)
        self._trouble = Trouble(manners or Manners())
        self._account = Account(self._stock)
        self._runner: web.AppRunner | None = None
        self.visits: list[Visit] = []
        """Every request so far, in the order in which they were answered."""

    @classmethod
    @contextmanager
    def in_thread(
        cls,
        products: int = 120,
        seed: int = 7,
        port: int = 0,
        *,
        quotes: int = 45,
        hosts: Sequence[str] = LOOPBACK,
        manners: Manners | None = None,
    ) -> Iterator[Self]:
        """The shop in a thread with its own event loop, for tests that are not async."""
        with in_thread(cls(products, seed, port, quotes=quotes, hosts=hosts, manners=manners), "demo shop") as server:
            yield server

    async def __aenter__(self) -> Self:
        sockets = listen(self._hosts, self._port)
        self._port = sockets[0].getsockname()[1]
        # A test that ends in the middle of a slow page should not wait for it.
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        for listening in sockets:
            await web.SockSite(self._runner, listening).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def url(self) -> str:
        """Where the shop is, without a slash at the end."""
        return self.urls[0]

    @property
    def urls(self) -> tuple[str, ...]:
        """The same shop on each of its hosts."""
        return tuple(f"http://{host}:{self._port}" for host in self._hosts)

    @property
    def elsewhere(self) -> str:
        """Where /redirect/elsewhere leads: the second host, or `localhost` if there is only one."""
        return self.urls[1] if len(self.urls) > 1 else f"http://localhost:{self._port}"

    @property
    def truth(self) -> tuple[Product, ...]:
        """Every product, exactly as the pages show it."""
        return self._stock.products

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """Every quote, in the order of the pages."""
        return self._stock.quotes

    @property
    def orders(self) -> tuple[Order, ...]:
        """What the account page shows to a logged-in visitor."""
        return self._stock.orders

    @property
    def encodings(self) -> tuple[Encoded, ...]:
        """Every page with an unusual encoding, and what a browser makes of it."""
        return encodings()

    def pages(self) -> frozenset[str]:
        """Every URL reachable by links from `/`, robots.txt obeyed: what a whole crawl of the shop must visit."""
        return frozenset(self.url + path for path in self._storefront.paths())

    def reset(self) -> None:
        self.visits.clear()
        self._trouble.forget()
        self._account.forget()

    def _application(self) -> web.Application:
        rooms = (
            self._trouble,
            self._account,
            Oddities(lambda: self.elsewhere),
            Traps(),
            Maps(self._storefront),
            Api(self._stock),
            Search(self._stock),
            Lab(),
        )
        application = web.Application(middlewares=[self._remember])
        for room in rooms:
            application.add_routes(room.routes())
        # Last: it takes every path that no room wanted.
        application.router.add_get("/{path:.*}", self._public)
        return application

    @web.middleware
    async def _remember(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        arrived, status = time.monotonic(), _ABANDONED
        try:
            answer = await handler(request)
            status = answer.status
        except web.HTTPNotFound:
            answer = not_found()
            status = answer.status
        except web.HTTPException as answered:
            status = answered.status
            raise
        finally:
            # Before the answer leaves: a client that has its answer finds its visit here.
            self.visits.append(Visit(arrived, request.raw_path, request.remote or "", status))
        return answer

    async def _public(self, request: web.Request) -> web.Response:
        if request.path in ("/c", "/quotes"):
            return web.Response(status=301, headers={"Location": f"{request.path}/"})
        packed = self._packed(request.path, request.query.get("page"))
        return not_found() if packed is None else send(request, packed)

    def _pack(self, path: str, page: str | None) -> Packed | None:
        drawn = self._storefront.draw(path, page)
        return None if drawn is None else pack(drawn)
