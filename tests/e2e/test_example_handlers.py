"""The handlers of every example, on pages of a real demo shop fetched with the standard library.

This tells a wrong example from a wrong worker: whole runs of the same files are tested elsewhere.
"""

import gzip
import importlib.util
import re
from collections import deque
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest

from trotline import Spider, Task
from trotline.model.sitemap_seed import ROUTE as SITEMAP
from trotline.model.sitemap_seed import SitemapSeed
from trotline.testing.shop import DemoShop
from trotline.testing.visiting import visit

EXAMPLES = Path(__file__).parents[2] / "examples"
Rows = list[dict[str, Any]]


@pytest.fixture
def rows(shop: DemoShop, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Rows]:
    """`rows("quotes")`: every record that the example's handlers give, in order."""
    monkeypatch.setenv("DEMO_SHOP", shop.url)
    return lambda name: list(crawl(spider_of(EXAMPLES / f"{name}.py")))


def spider_of(path: Path) -> Spider:
    plan = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert plan is not None
    assert plan.loader is not None
    module = importlib.util.module_from_spec(plan)
    plan.loader.exec_module(module)
    [spider] = [value for value in vars(module).values() if isinstance(value, Spider)]
    return spider


def crawl(spider: Spider) -> Iterator[dict[str, Any]]:
    opener = build_opener(HTTPCookieProcessor(CookieJar()))

    def fetch(url: str, body: bytes = b"") -> tuple[str, bytes]:
        with opener.open(Request(url, data=body or None)) as answer:  # noqa: S310
            return answer.url, answer.read()

    waiting = deque(starts(spider, lambda url: fetch(url)[1]))
    known = {(task.route, task.url) for task in waiting}
    while waiting:
        task = waiting.popleft()
        url, body = fetch(task.url, task.body)
        harvest = visit(spider.route(task.route), body, url=url, meta=task.meta)
        assert harvest.rejects == []
        yield from (record.data for record in harvest.records)
        new = [found for found in harvest.tasks if (found.route, found.url) not in known]
        known |= {(found.route, found.url) for found in new}
        waiting.extend(new)


def starts(spider: Spider, fetch: Callable[[str], bytes]) -> Iterator[Task]:
    for start in spider.seeds():
        if start.route != SITEMAP:
            yield start
            continue
        seed = SitemapSeed.of(start.meta)
        for index in re.findall(r"Sitemap: (\S+)", fetch(start.url).decode()):
            for place in re.findall("<loc>(.*?)</loc>", fetch(index).decode()):
                body = fetch(place)
                listed = (gzip.decompress(body) if place.endswith(".gz") else body).decode()
                wanted = [url for url in re.findall("<loc>(.*?)</loc>", listed) if re.search(seed.match, url)]
                yield from (spider.route(seed.route).task(url) for url in wanted)


def test_quotes_gives_every_quote_in_order(shop: DemoShop, rows: Callable[[str], Rows]) -> None:
    assert rows("quotes") == [{"text": quote.text, "by": quote.author} for quote in shop.quotes]


def test_shop_gives_every_product_exactly_as_shown(shop: DemoShop, rows: Callable[[str], Rows]) -> None:
    assert rows("shop") == [{"sku": one.sku, "title": one.title, "price": one.price} for one in shop.truth]


def test_proxied_gives_every_product(shop: DemoShop, rows: Callable[[str], Rows]) -> None:
    assert rows("proxied") == [{"sku": one.sku, "title": one.title} for one in shop.truth]


def test_api_gives_what_only_the_api_tells(shop: DemoShop, rows: Callable[[str], Rows]) -> None:
    assert rows("api") == [
        {"sku": one.sku, "title": one.title, "stock": one.stock, "rating": one.rating} for one in shop.truth
    ]


def test_login_gives_the_orders_behind_the_form(shop: DemoShop, rows: Callable[[str], Rows]) -> None:
    assert rows("login") == [order._asdict() for order in shop.orders]


def test_sitemap_gives_every_product_without_following_a_link(shop: DemoShop, rows: Callable[[str], Rows]) -> None:
    assert rows("sitemap") == [
        {"sku": one.sku, "name": one.title, "price": one.amount, "stock": one.stock} for one in shop.truth
    ]
    assert not any(visit.path.startswith("/catalog") for visit in shop.visits)


def test_pydantic_records_gives_the_checked_teas(shop: DemoShop, rows: Callable[[str], Rows]) -> None:
    found = rows("pydantic_records")

    teas = [one for one in shop.truth if one.category == "tea"]
    assert [(row["sku"], row["title"], str(row["price"])) for row in found] == [
        (one.sku, one.title, one.amount) for one in teas
    ]


def test_every_example_is_listed_in_the_readme() -> None:
    listed = set(re.findall(r"\]\((\w+\.py)\)", (EXAMPLES / "README.md").read_text()))

    assert listed == {path.name for path in EXAMPLES.glob("*.py")}
