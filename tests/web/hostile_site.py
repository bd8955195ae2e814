"""A small site that lists, fails, blocks, throttles and attacks: what a dashboard has to show without being hurt."""

from collections import Counter
from urllib.parse import quote

from aiohttp import web

ATTACK = "<script>window.hurt=1</script><img src=x onerror=window.hurt=1>\"'>"
"""In titles, addresses and errors."""
TURNED = "\u202egnp.exe\u202c \u200b\u05e9\u05dc\u05d5\u05dd"
"""Turns the writing direction, hides a character, and has letters that are written from the right."""
LONG = "x" * 900
HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
"""Each is a lane of its own."""


class HostileSite:
    """`/` lists `items` products on each host, and the pages below, which go wrong."""

    def __init__(self, items: int = 40) -> None:
        self.items = items
        self.asked: Counter[str] = Counter()
        self.healed = False
        """From then on, no page fails any more."""

    async def __call__(self, request: web.Request) -> web.Response:
        path = request.path
        self.asked[path] += 1
        if path == "/":
            return self._listing(request)
        if path.startswith("/item/"):
            return _page(f"Product {path[6:]} {ATTACK}" if path.endswith("/7") else f"Product {path[6:]}")
        if self.healed:
            return _page("Fine again")
        if path.startswith("/broken/"):
            return web.Response(status=500, text=f"<h1>Error {ATTACK}</h1>", content_type="text/html")
        if path.startswith("/blocked/"):
            return web.Response(status=403, text="<title>Just a moment...</title>", content_type="text/html")
        if path.startswith("/busy/") and self.asked[path] < 2:
            return web.Response(status=429, headers={"Retry-After": "1"})
        return _page("Odd " + TURNED)

    def _listing(self, request: web.Request) -> web.Response:
        own = f"http://{request.host}"
        links = [f"{own}/item/{number}" for number in range(self.items)]
        links += [f"{own}/broken/{number}" for number in range(6)]
        links += [f"{own}/blocked/{number}" for number in range(3)]
        links += [f"{own}/busy/{number}" for number in range(2)]
        links += [f"{own}/odd/{quote(ATTACK)}", f"{own}/odd/{quote(TURNED)}", f"{own}/odd/?q={LONG}"]
        links += [f"{own}/handler/{number}" for number in range(4)]
        body = "".join(f'<a href="{link}">item</a>' for link in links)
        return web.Response(text=f"<title>List</title>{body}", content_type="text/html")


def _page(title: str) -> web.Response:
    text = title.replace("&", "&amp;").replace("<", "&lt;")
    return web.Response(text=f"<title>{text}</title><h1>{text}</h1>", content_type="text/html")


SPIDER = """
import os

from trotline import Page, Spider

shop = Spider("{name}", pace=os.environ.get("SHOP_PACE", "200/s"), robots=False, retries=1)


@shop.page(seeds=[address + "/" for address in os.environ["SHOP_SITES"].split()])
def listing(page: Page):
    yield page.follow("a", to=product)


@shop.page(key="url")
def product(page: Page):
    if "/handler/" in page.url:
        raise ValueError("no price on " + page.css("h1::text").get() + " <script>window.hurt=1</script>")
    yield {{"url": page.url, "title": page.css("h1::text").get(), "price": None}}
"""
"""Its handler fails on some pages, and a field is never filled."""
