"""The public pages: home, about, categories, catalog, products and quotes. Pure: a path goes in, HTML comes out."""

import json
import re
from collections.abc import Sequence
from math import ceil

from trotline.testing.shop.looks import escape, layout, link, list_of, pager
from trotline.testing.shop.stock import CATEGORIES, Product, Stock

CARDS = 12
"""Products on one listing page."""
QUOTES = 10
"""Quotes on one page."""

_QUOTES_PAGE = re.compile(r"/quotes/page/([1-9][0-9]{0,6})/")


class Storefront:
    """Draws the pages of one stock, and knows the closed set that they make."""

    def __init__(self, stock: Stock) -> None:
        self.stock = stock
        self._by_sku = {product.sku: product for product in stock.products}
        self._shelves = {slug: stock.of(slug) for slug in CATEGORIES}

    def paths(self) -> list[str]:
        """Every page reachable by links from `/`, robots obeyed."""
        paths = ["/", "/about", "/c/", "/catalog", *_numbered("/catalog", self.stock.products)]
        for slug, shelf in self._shelves.items():
            paths += [f"/c/{slug}", *_numbered(f"/c/{slug}", shelf)]
        paths += [product.path for product in self.stock.products]
        return [*paths, "/quotes/", *(_quotes_path(page) for page in range(2, self._quote_pages() + 1))]

    def draw(self, path: str, page: str | None) -> str | None:
        """The HTML of a path (and its `page` parameter), or None when there is no such page."""
        number = _page_number(page)
        if number is None:
            return None
        if path == "/catalog":
            return _listing("/catalog", "The whole catalog", self.stock.products, number)
        if path.startswith("/c/") and path[3:] in self._shelves:
            return _listing(path, path[3:].capitalize(), self._shelves[path[3:]], number)
        if path.startswith("/p/") and path[3:] in self._by_sku:
            return self._product(self._by_sku[path[3:]])
        if found := _QUOTES_PAGE.fullmatch(path):
            return self._quotes(int(found[1]))
        return self._plain(path)

    def _plain(self, path: str) -> str | None:
        match path:
            case "/":
                return self._home()
            case "/about":
                return _ABOUT
            case "/c/":
                return layout("Categories", f"<h1>Categories</h1>{list_of(self._category_links())}")
            case "/quotes/":
                return self._quotes(1)
        return None

    def _home(self) -> str:
        picks = "".join(_card(product) for product in self.stock.products[:3])
        return layout(
            "Home",
            f"<h1>Good morning</h1><p>{len(self.stock.products)} products in {len(CATEGORIES)} categories, and "
            f'{link("/quotes/", "something to read")}.</p><ul class="cards">{picks}</ul>'
            f"<h2>Categories</h2>{list_of(self._category_links())}"
            # robots.txt forbids it: a polite crawl sees this link and does not follow it.
            f"<p>{link('/private/stock', 'Staff only')}</p>",
        )

    def _category_links(self) -> list[str]:
        return [f"{link(f'/c/{slug}', slug.capitalize())}({len(shelf)})" for slug, shelf in self._shelves.items()]

    def _product(self, product: Product) -> str:
        # Related links come in every relative form that sites use; all of them lead to /p/SKU.
        forms = ("/p/{}", "{}", "../p/{}", "/p/{}#description")
        related = [
            link(form.format(sku), self._by_sku[sku].title)
            for form, sku in zip(forms, product.related, strict=False)
            if sku in self._by_sku
        ]
        return layout(
            product.title,
            f"<p>{link(f'/c/{product.category}', product.category.capitalize())}</p>"
            f'<article itemscope itemtype="https://schema.org/Product"><h1 itemprop="name">{escape(product.title)}</h1>'
            f'<p>Article <span itemprop="sku">{product.sku}</span></p><p class="price">{product.price}</p>'
            f'<p id="description" class="description" itemprop="description">{escape(product.description)}</p>'
            f'</article><section aria-labelledby="related"><h2 id="related">Related</h2>'
            f"{list_of(related, css='related')}</section>"
            f"<script>window.__STATE__ = {_script(_state(product))};</script>",
            head=f'<script type="application/ld+json">{_script(_json_ld(product))}</script>',
        )

    def _quote_pages(self) -> int:
        return _pages(len(self.stock.quotes), QUOTES)

    def _quotes(self, number: int) -> str | None:
        last = self._quote_pages()
        if number > last:
            return None
        boxes = "".join(
            f'<blockquote class="quote"><p class="text">{escape(quote.text)}</p>'
            f'<cite class="author">{escape(quote.author)}</cite></blockquote>\n'
            for quote in self.stock.quotes[(number - 1) * QUOTES : number * QUOTES]
        )
        back = f'<li class="previous">{link(_quotes_path(number - 1), "Previous")}</li>' if number > 1 else ""
        ahead = f'<li class="next">{link(_quotes_path(number + 1), "Next")}</li>' if number < last else ""
        steps = f'<nav class="pager" aria-label="Pages"><ul>{back}{ahead}</ul></nav>'
        return layout(f"Quotes, page {number}", f"<h1>Quotes</h1>{boxes}{steps}")


_ABOUT = layout(
    "About",
    "<h1>About this shop</h1><p>A small site that is the same every time: a seed decides the products, the prices and "
    "the quotes. It has pleasant pages, linked from the home page, and unpleasant ones, which are not.</p>",
)


def _listing(base: str, title: str, products: Sequence[Product], number: int) -> str | None:
    last = _pages(len(products), CARDS)
    if number > last:
        return None
    cards = "\n".join(_card(product) for product in products[(number - 1) * CARDS : number * CARDS])
    shown = f'<ul class="cards">{cards}</ul>' if cards else "<p>Nothing here yet.</p>"
    return layout(f"{title}, page {number}", f"<h1>{escape(title)}</h1>{shown}{pager(base, number, last)}")


def _card(product: Product) -> str:
    return f'<li class="card">{link(product.path, product.title)}<span class="price">{product.price}</span></li>'


def _numbered(base: str, products: Sequence[Product]) -> list[str]:
    return [f"{base}?page={number}" for number in range(1, _pages(len(products), CARDS) + 1)]


def _quotes_path(number: int) -> str:
    return "/quotes/" if number == 1 else f"/quotes/page/{number}/"


def _pages(things: int, per_page: int) -> int:
    return max(1, ceil(things / per_page))


def _page_number(text: str | None) -> int | None:
    """1 without a parameter; None for what is not a page number."""
    if text is None:
        return 1
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,6}", text) else None


def _state(product: Product) -> dict[str, object]:
    return {"product": {"sku": product.sku, "stock": product.stock, "related": list(product.related)}}


def _json_ld(product: Product) -> dict[str, object]:
    return {
        "@context": "https://schema.org",
        "@type": "Product",
        "sku": product.sku,
        "name": product.title,
        "description": product.description,
        "category": product.category,
        "offers": {"@type": "Offer", "price": product.amount, "priceCurrency": "EUR"},
        "aggregateRating": {
            "@type": "AggregateRating",
            "ratingValue": product.rating,
            "reviewCount": product.stock + 1,
        },
    }


def _script(value: object) -> str:
    """JSON that can stand inside a script element."""
    return json.dumps(value, ensure_ascii=False).replace("</", "<\\/")
