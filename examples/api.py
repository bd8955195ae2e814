"""A JSON API: each answer says where the next one is."""

import os

from trotline import Page, Spider

SHOP = os.environ.get("DEMO_SHOP", "http://127.0.0.1:8010")

api = Spider("api", pace="20/s")


@api.page(seeds=[f"{SHOP}/api/products"], key="sku")
def products(page: Page):
    found = page.json()
    for item in found["items"]:
        yield {"sku": item["sku"], "title": item["title"], "stock": item["stock"], "rating": item["rating"]}
    if found["next"]:
        yield page.task(found["next"])
