"""A small site that lists, fails, blocks, throttles and attacks: what a dashboard has to show without being hurt."""

from collections import Counter
from contextlib import AsyncExitStack
from typing import Any, Self
from urllib.parse import quote

from aiohttp import web
from tests.e2e.small_site import serving

ATTACK = "<script>window.hurt=1</script><img src=x onerror=window.hurt=1>\"'>"
"""In titles, addresses and errors."""
TURNED = "\u202egnp.exe\u202c \u200b\u05e9\u05dc\u05d5\u05dd"
"""Turns the writing direction, hides a character, and has letters that are written from the right."""
LONG = "x" * 900
HOSTS = 3
"""Of each spider: a lane is shared by all jobs of a frontier, and the slowest pace holds."""
_ADDRESSES = tuple(f"127.0.0.{number}" for number in range(1, 10))
BROKEN, BLOCKED, BUSY, HANDLER = 2, 1, 1, 4
"""Pages of each kind on each host: 500, a block page, 429 at first, and pages on which the spider's handler fails."""


class HostileSite:
    """`/` lists `items` products on each host, and between them the pages that go wrong."""

    def __init__(self, items: int = 40) -> None:
        self.items = items
        self.asked: Counter[str] = Counter()
        self.healed = False
        """From then on, no page fails any more."""
        self.addresses: list[str] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        first = await self._stack.enter_async_context(serving(self.answer, _ADDRESSES))
        port = first.rpartition(":")[2]
        self.addresses = [f"http://{host}:{port}" for host in _ADDRESSES]
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self._stack.aclose()

    async def answer(self, request: web.Request) -> web.Response:
        path = request.path
        place = f"{request.host}{path}"
        self.asked[place] += 1
        if path == "/":
            return self._listing(request)
        if path.startswith("/item/"):
            return _page(f"Product {path[6:]} {ATTACK}" if path.endswith("/7") else f"Product {path[6:]}")
        if path.startswith("/broken/") and not self.healed:
            return web.Response(status=500, text=f"<h1>Error {ATTACK}</h1>", content_type="text/html")
        if path.startswith("/blocked/") and not self.healed:
            return web.Response(status=403, text="<title>Just a moment...</title>", content_type="text/html")
        if path.startswith("/busy/") and self.asked[place] < 2:
            return web.Response(status=429, headers={"Retry-After": "1"})
        return _page("Odd " + TURNED)

    def _listing(self, request: web.Request) -> web.Response:
        own = f"http://{request.host}"
        odd = [f"odd/{quote(ATTACK)}", f"odd/{quote(TURNED)}", f"odd/?q={LONG}"]
        odd += [f"handler/{number}" for number in range(HANDLER)]
        bad = [f"blocked/{number}" for number in range(BLOCKED)] + [f"busy/{number}" for number in range(BUSY)]
        bad += [f"broken/{number}" for number in range(BROKEN)]
        paths = [f"item/{number}" for number in range(self.items)]
        for place, path in enumerate(odd):
            paths.insert(3 * place + 3, path)
        # Towards the end, and not in a row: a lane slows down after failures, and rests after many.
        for place, path in enumerate(bad):
            paths.insert(len(paths) - 2 * place, path)
        body = "".join(f'<a href="{own}/{path}">item</a>' for path in paths)
        return web.Response(text=f"<title>List</title>{body}", content_type="text/html")


def _page(title: str) -> web.Response:
    text = title.replace("&", "&amp;").replace("<", "&lt;")
    return web.Response(text=f"<title>{text}</title><h1>{text}</h1>", content_type="text/html")


SPIDER = """
from trotline import Page, Spider

spider = Spider("{name}", pace="{pace}", robots=False, retries=0)


@spider.page(seeds={seeds})
def listing(page: Page):
    yield page.follow("a", to=product)


@spider.page(key="url")
def product(page: Page):
    if "/handler/" in page.url:
        raise ValueError("no price on <script>window.hurt=1</script>")
    yield {{"url": page.url, "title": page.css("h1::text").get(), "price": None}}
"""
"""Its handler fails on some pages, and a field is never filled."""
