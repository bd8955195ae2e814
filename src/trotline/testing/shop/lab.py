"""The entry pages to everything unpleasant. The home page does not link here, so a plain crawl never does either."""

from collections.abc import Iterable
from typing import NamedTuple

from aiohttp import web

from trotline.testing.shop.answers import pack, send
from trotline.testing.shop.looks import escape, layout, link, list_of
from trotline.testing.shop.oddities import encodings


class Entry(NamedTuple):
    """One entry page: `/lab/NAME` links to `paths`."""

    name: str
    about: str
    paths: tuple[str, ...]


def _numbered(prefix: str, count: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{number}" for number in range(1, count + 1))


ENTRIES = (
    Entry("slow", "Pages that take their time", ("/slow/0.2", "/slow/1", "/slow/3", "/drip/2")),
    Entry("limited", "429 with Retry-After above some requests per second", _numbered("/limited/", 30)),
    Entry("flaky", "503 twice, then fine", _numbered("/flaky/", 10)),
    Entry("down", "Always 500", _numbered("/down/", 3)),
    Entry("guarded", "403 and a challenge page after some requests from one address", _numbered("/guarded/", 40)),
    Entry("cloaked", "The same, but the challenge page is a 200", _numbered("/cloaked/", 40)),
    Entry(
        "redirects",
        "Chains, loops and other ways round",
        (
            "/redirect/product/T1",
            "/redirect/relative",
            "/redirect/chain/5",
            "/redirect/chain/30",
            "/redirect/loop",
            "/redirect/elsewhere",
            "/redirect/nowhere",
        ),
    ),
    Entry("encodings", "Text in the wrong clothes", tuple(encoded.path for encoded in encodings())),
    Entry("traps", "Endless sites", ("/trap/calendar/2025/01", "/trap/a/", "/trap/session", "/trap/facets")),
    Entry("fates", "Large, empty, missing and gone", ("/large/2", "/large/16", "/empty", "/missing", "/gone")),
    Entry("account", "A page behind a login", ("/login", "/account")),
    Entry("search", "A form that is sent as POST", ("/search",)),
    Entry("api", "JSON", ("/api/products", "/api/products/T1")),
    Entry("maps", "For robots", ("/robots.txt", "/sitemap.xml", "/sitemap-pages.xml.gz", "/sitemap_index.xml")),
)


class Lab:
    """`/lab` and the entry pages under it."""

    def __init__(self) -> None:
        listed = list_of(f"{link(f'/lab/{entry.name}', entry.name)}{escape(entry.about)}" for entry in ENTRIES)
        self._door = pack(layout("Lab", f"<h1>The lab</h1><p>Pages that misbehave on purpose.</p>{listed}"))
        self._entries = {entry.name: pack(_entry(entry)) for entry in ENTRIES}

    def routes(self) -> Iterable[web.RouteDef]:
        return (web.get("/lab", self.door), web.get("/lab/{name}", self.entry))

    async def door(self, request: web.Request) -> web.Response:
        return send(request, self._door)

    async def entry(self, request: web.Request) -> web.Response:
        packed = self._entries.get(request.match_info["name"])
        if packed is None:
            raise web.HTTPNotFound
        return send(request, packed)


def _entry(entry: Entry) -> str:
    links = list_of(link(path, path) for path in entry.paths)
    return layout(entry.name, f"<h1>{escape(entry.about)}</h1>{links}<p>{link('/lab', 'Back to the lab')}</p>")
