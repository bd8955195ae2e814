"""The catalog of shop.py through two proxy pools: listings through cheap proxies, products through better ones.

The pools are in proxies.toml: trotline run examples/proxied.py --allow-private --proxies examples/proxies.toml
"""

import os

from trotline import Page, Spider

SHOP = os.environ.get("DEMO_SHOP", "http://127.0.0.1:8010")

proxied = Spider("proxied", pool="datacenter", pace="50/s per proxy")


@proxied.page(seeds=[f"{SHOP}/catalog"])
def catalog(page: Page):
    last = int(page.css(".pager a::text").getall()[-1])
    for number in range(1, last + 1):
        yield listing.task(f"{page.url}?page={number}")


@proxied.page
def listing(page: Page):
    yield page.follow(".card a", to=product)


@proxied.page(pool="residential", key="sku")
def product(page: Page):
    yield {"sku": page.css("[itemprop=sku]::text").get(), "title": page.css("h1::text").get()}
