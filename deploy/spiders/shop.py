"""An example: all products of the demo shop that compose.demo.yaml starts. Put your own spiders beside it."""

from trotline import Page, Spider

shop = Spider("shop", pace="20/s", max_depth=1_000)


@shop.page(seeds=["http://shop:8010/catalog"])
def listing(page: Page):
    yield page.follow(".card a", to=product)
    yield page.follow(".pager a")


@shop.page(key="sku")
def product(page: Page):
    yield {
        "sku": page.css("[itemprop=sku]::text").get(),
        "title": page.css("h1::text").get(),
        "price": page.css(".price::text").get(),
    }
