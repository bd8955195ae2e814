"""Start from the sitemaps that robots.txt names, and read what the page says to machines."""

import os

from trotline import Page, RobotsSitemaps, Spider

SHOP = os.environ.get("DEMO_SHOP", "http://127.0.0.1:8010")

mapped = Spider("mapped", pace="50/s")


@mapped.page(sitemap=RobotsSitemaps(SHOP, match="/p/"), key="sku")
def product(page: Page):
    for thing in page.json_ld():
        if thing["@type"] == "Product":
            stock = page.embedded("window.__STATE__")["product"]["stock"]
            yield {"sku": thing["sku"], "name": thing["name"], "price": thing["offers"]["price"], "stock": stock}
