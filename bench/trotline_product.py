"""The product site as a Trotline user would write it. `BENCH_SEED` is the address of its first page."""

import os

from trotline import Page, Spider

# A page holds its place in the lane until its rows are stored, so the lane has more places than there are slots.
shop = Spider("product", pace="5000/s", concurrency=256)


@shop.page(seeds=[os.environ["BENCH_SEED"]], key="sku")
def product(page: Page):
    yield {
        "url": page.url,
        "sku": page.css("[itemprop=sku]::text").get(),
        "title": page.css("h1.name::text").get(),
        "brand": page.css(".brand::text").get(),
        "price": page.css(".price .amount::text").get(),
        "currency": page.css("[itemprop=currency]::attr(content)").get(),
        "availability": page.css(".stock::text").get(),
        "rating": page.css(".rating::text").get(),
        "reviews": page.css(".count::text").get(),
        "category": page.css(".category::text").get(),
        "colour": page.css("dd.colour::text").get(),
        "material": page.css("dd.material::text").get(),
        "weight": page.css("dd.weight::text").get(),
        "seller": page.css(".seller::attr(data-seller)").get(),
        "description": page.css(".description p::text").get(),
    }
    yield page.follow("a[href]")
