"""The JSON API: the same products, by page or by sku."""

from collections.abc import Iterable
from math import ceil

from aiohttp import web

from trotline.testing.shop.stock import Product, Stock

PER_PAGE = 20


class Api:
    """`/api/products?page=N` and `/api/products/SKU`."""

    def __init__(self, stock: Stock) -> None:
        self._products = stock.products
        self._by_sku = {product.sku: product for product in stock.products}

    def routes(self) -> Iterable[web.RouteDef]:
        return (web.get("/api/products", self.products), web.get("/api/products/{sku}", self.product))

    async def products(self, request: web.Request) -> web.Response:
        pages = max(1, ceil(len(self._products) / PER_PAGE))
        asked = request.query.get("page", "1")
        number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 8 else 0
        if not 1 <= number <= pages:
            return web.json_response({"error": f"page must be between 1 and {pages}"}, status=404)
        items = [_plain(product) for product in self._products[(number - 1) * PER_PAGE : number * PER_PAGE]]
        following = f"/api/products?page={number + 1}" if number < pages else None
        found = {"page": number, "pages": pages, "total": len(self._products), "next": following, "items": items}
        return web.json_response(found)

    async def product(self, request: web.Request) -> web.Response:
        product = self._by_sku.get(request.match_info["sku"])
        if product is None:
            return web.json_response({"error": "no such product"}, status=404)
        return web.json_response(_plain(product))


def _plain(product: Product) -> dict[str, object]:
    return product._asdict() | {"related": list(product.related)}
