"""A two-level catalog: the number of pages is detected, listings can wait, products go first."""

import os
from dataclasses import dataclass

from trotline import LATER, SOON, Page, Spider

SHOP = os.environ.get("DEMO_SHOP", "http://127.0.0.1:8010")

shop = Spider("shop", pace="50/s", retries=3)


@dataclass(frozen=True)
class Product:
    sku: str
    title: str
    price: str


@shop.page(seeds=[f"{SHOP}/catalog"])
def catalog(page: Page):
    last = int(page.css(".pager a::text").getall()[-1])
    for number in range(1, last + 1):
        yield listing.task(f"{page.url}?page={number}", priority=LATER)


@shop.page
def listing(page: Page):
    for link in page.links(".card a"):
        yield product.task(link, priority=SOON)


@shop.page(key="sku")
def product(page: Page):
    yield Product(
        sku=page.css("[itemprop=sku]::text").get(),
        title=page.css("h1::text").get(),
        price=page.css(".price::text").get(),
    )
