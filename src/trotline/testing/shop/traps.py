"""Endless sites: each page is harmless, and there is always one more."""

from collections.abc import Iterable
from itertools import count

from aiohttp import web

from trotline.testing.shop.answers import page
from trotline.testing.shop.looks import escape, link, list_of

_FACETS = {
    "color": ("amber", "blue", "clay"),
    "size": ("s", "m", "l"),
    "sort": ("price", "name", "newest"),
    "maker": ("aldgate", "fjord", "ginkgo"),
    "view": ("grid", "list"),
}
_LAST_YEAR = 9999


class Traps:
    """Four of the usual ones. Every trap page also links to a real product, so that a trap is worth leaving early."""

    def __init__(self) -> None:
        self._sessions = count(1)

    def routes(self) -> Iterable[web.RouteDef]:
        return (
            web.get(r"/trap/calendar/{year:\d{4}}/{month:\d{2}}", self.calendar),
            web.get("/trap/session", self.session),
            web.get("/trap/facets", self.facets),
            web.get("/trap/{steps:(?:[ab]/)+}", self.maze),
        )

    async def calendar(self, request: web.Request) -> web.Response:
        """Every month links to the next and to the one before."""
        year, month = int(request.match_info["year"]), int(request.match_info["month"])
        if not (1 <= month <= 12 and 1 <= year <= _LAST_YEAR):
            raise web.HTTPNotFound
        months = year * 12 + month - 1
        around = [divmod(months + step, 12) for step in (-1, 1)]
        links = [link(f"/trap/calendar/{y:04}/{m + 1:02}", f"{y}-{m + 1:02}") for y, m in around]
        return _trap(f"Events in {year}-{month:02}", links)

    async def session(self, request: web.Request) -> web.Response:
        """Every visit hands out fresh session ids, so that the same page has ever new addresses."""
        links = [link(f"/trap/session?sid={next(self._sessions):08x}", f"Shelf {shelf}") for shelf in "ABC"]
        return _trap("Shelves", links)

    async def facets(self, request: web.Request) -> web.Response:
        """Filters that combine in every way and every order."""
        chosen = [(name, value) for name, value in request.query.items() if value in _FACETS.get(name, ())]
        taken = {name for name, _ in chosen}
        links = [
            link(f"/trap/facets?{_query([*chosen, (name, value)])}", f"{name}: {value}")
            for name, values in _FACETS.items()
            if name not in taken
            for value in values
        ]
        return _trap("Filter", links)

    async def maze(self, request: web.Request) -> web.Response:
        """Relative links without a base: /trap/a/b/a/b/..."""
        return _trap(f"Room {escape(request.match_info['steps'])}", [link("a/", "Left"), link("b/", "Right")])


def _query(pairs: list[tuple[str, str]]) -> str:
    return "&".join(f"{name}={value}" for name, value in pairs)


def _trap(title: str, links: list[str]) -> web.Response:
    return page(title, f"<h1>{title}</h1>{list_of([*links, link('/p/T1', 'A real product')])}")
