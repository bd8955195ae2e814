"""Nine lines: a list that goes on by its "next" link."""

import os

from trotline import Page, Spider

SHOP = os.environ.get("DEMO_SHOP", "http://127.0.0.1:8010")

quotes = Spider("quotes", pace="20/s")


@quotes.page(seeds=[f"{SHOP}/quotes/"])
def listing(page: Page):
    for box in page.css(".quote"):
        yield {"text": box.css(".text::text").get(), "by": box.css(".author::text").get()}
    yield page.follow("li.next a")
