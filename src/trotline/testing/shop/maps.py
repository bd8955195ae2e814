"""robots.txt and the sitemaps."""

from collections.abc import Iterable
from functools import partial

from aiohttp import web

from trotline.testing.shop.answers import LAST_MODIFIED, pack, page, send
from trotline.testing.shop.looks import escape
from trotline.testing.shop.storefront import Storefront

SLOW_AGENT = "slowbot"
"""The one agent that robots.txt asks to wait between requests."""
CRAWL_DELAY = 2
_DAY = "2025-01-06"
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


class Maps:
    """What the site says about itself. Addresses in it use the host that was asked."""

    def __init__(self, storefront: Storefront) -> None:
        paths = storefront.paths()
        self._products = [path for path in paths if path.startswith("/p/")]
        self._others = [path for path in paths if not path.startswith("/p/")]

    def routes(self) -> Iterable[web.RouteDef]:
        return (
            web.get("/robots.txt", self.robots),
            web.get("/sitemap.xml", partial(self.sitemap, self._products)),
            web.get("/sitemap-pages.xml.gz", self.zipped),
            web.get("/sitemap_index.xml", self.index),
            web.get("/private/{name:.*}", self.private),
        )

    async def robots(self, request: web.Request) -> web.Response:
        text = (
            "User-agent: *\nDisallow: /private/\n\n"
            f"User-agent: {SLOW_AGENT}\nCrawl-delay: {CRAWL_DELAY}\nDisallow: /private/\n\n"
            f"Sitemap: {_origin(request)}/sitemap_index.xml\n"
        )
        return send(request, pack(text), "text/plain")

    async def sitemap(self, paths: list[str], request: web.Request) -> web.Response:
        return send(request, pack(_urlset(_origin(request), paths)), "application/xml")

    async def zipped(self, request: web.Request) -> web.Response:
        """A file that is gzip by itself, also without Accept-Encoding."""
        packed = pack(_urlset(_origin(request), self._others))
        headers = {"ETag": packed.etag, "Last-Modified": LAST_MODIFIED}
        return web.Response(body=packed.gzipped, content_type="application/gzip", headers=headers)

    async def index(self, request: web.Request) -> web.Response:
        origin = _origin(request)
        maps = "".join(
            f"<sitemap><loc>{origin}/{name}</loc><lastmod>{_DAY}</lastmod></sitemap>\n"
            for name in ("sitemap.xml", "sitemap-pages.xml.gz")
        )
        text = f'{_XML}<sitemapindex xmlns="{_NAMESPACE}">\n{maps}</sitemapindex>\n'
        return send(request, pack(text), "application/xml")

    async def private(self, request: web.Request) -> web.Response:
        """What robots.txt forbids. A polite crawl never comes here, so a visit is a proof of the opposite."""
        return page("Private", "<h1>Staff only</h1><p>robots.txt asked you not to come here.</p>")


def _origin(request: web.Request) -> str:
    return f"{request.scheme}://{request.host}"


def _urlset(origin: str, paths: list[str]) -> str:
    urls = "".join(f"<url><loc>{escape(origin + path)}</loc><lastmod>{_DAY}</lastmod></url>\n" for path in paths)
    return f'{_XML}<urlset xmlns="{_NAMESPACE}">\n{urls}</urlset>\n'
