"""The search: a form that is sent as POST, and results by page."""

from collections.abc import Iterable

from aiohttp import web

from trotline.testing.shop.answers import page
from trotline.testing.shop.looks import escape, link
from trotline.testing.shop.stock import Product, Stock

PER_PAGE = 5

_FORM = (
    '<h1>Search</h1><form class="box" method="post" action="/search"><label>Words <input name="q" required></label>'
    '<input type="hidden" name="page" value="1"><button>Search</button></form>'
)


class Search:
    """`GET /search` has the form; `POST /search` with `q` and `page` has the results."""

    def __init__(self, stock: Stock) -> None:
        self._products = stock.products

    def routes(self) -> Iterable[web.RouteDef]:
        return (web.get("/search", self.form), web.post("/search", self.results))

    async def form(self, _request: web.Request) -> web.Response:
        return page("Search", _FORM)

    async def results(self, request: web.Request) -> web.Response:
        fields = await request.post()
        words, asked = str(fields.get("q", "")).lower(), str(fields.get("page", "1"))
        if not asked.isascii() or not asked.isdigit() or not 1 <= int(asked[:7]):
            return page("Search", f'{_FORM}<p class="error">There is no such page.</p>', status=400)
        found = [each for each in self._products if words in each.title.lower() or words == each.category]
        start = (int(asked[:7]) - 1) * PER_PAGE
        cards = "".join(_card(product) for product in found[start : start + PER_PAGE])
        return page("Search", f'<h1>{len(found)} found for {escape(words)}</h1><ul class="cards">{cards}</ul>')


def _card(product: Product) -> str:
    return (
        f'<li class="card"><h2>{link(product.path, product.title)}</h2>'
        f'<span class="sku">{product.sku}</span> <span class="price">{product.price}</span></li>'
    )
