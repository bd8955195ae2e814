"""A site whose pages can be held back: a test knows that a page is under way, and decides when it ends."""

import asyncio
from collections import Counter
from typing import Self

from aiohttp import web
from tests.e2e.small_site import serving

SPIDER = """
from trotline import Limits, Page, Sitemap, Spider

site = Spider("site", pace="{pace}"{more})


@site.page(key="name", seeds={seeds})
def page(page: Page):
    yield {{"name": page.css("h1::text").get()}}
    yield page.follow("a")
"""


class HeldSite:
    """`/` links to /page/1 ... /page/PAGES, and to each of the `held` (/held/NAME), which answer once released."""

    def __init__(self, pages: int = 10, held: tuple[str, ...] = ("slow",)) -> None:
        self._pages = [f"page/{number}" for number in range(1, pages + 1)]
        self._held = [f"held/{name}" for name in held]
        self._released = asyncio.Event()
        self._arrived = {name: asyncio.Event() for name in self._held}
        self.visits: Counter[str] = Counter()
        self.url = ""
        self.robots = ""

    async def __aenter__(self) -> Self:
        self._serving = serving(self._answer)
        self.url = await self._serving.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._serving.__aexit__(None, None, None)

    @property
    def names(self) -> set[str]:
        """Every page, by the heading that it shows."""
        return {"home", *self._pages, *self._held}

    def spider(self, pace: str = "200/s", more: str = "", seeds: str = "") -> str:
        """The file of a spider that stores every page's name. `more`: settings; `seeds`: Python, instead of `/`."""
        return SPIDER.format(pace=pace, more=f", {more}" if more else "", seeds=seeds or [f"{self.url}/"])

    async def arrived(self, name: str = "slow") -> None:
        """When somebody waits for the page."""
        await asyncio.wait_for(self._arrived[f"held/{name}"].wait(), 60)

    def release(self) -> None:
        self._released.set()

    async def _answer(self, request: web.Request) -> web.Response:
        path = request.path.strip("/")
        if path == "robots.txt":
            return web.Response(text=self.robots) if self.robots else web.Response(status=404)
        self.visits[path or "home"] += 1
        if path in self._arrived:
            self._arrived[path].set()
            await self._released.wait()
        elif path and path not in self._pages:
            return web.Response(status=404)
        # The held pages come first: they are under way before the others.
        links = "" if path else "".join(f'<a href="/{name}">{name}</a>' for name in self._held + self._pages)
        return web.Response(text=f"<h1>{path or 'home'}</h1>{links}", content_type="text/html")
