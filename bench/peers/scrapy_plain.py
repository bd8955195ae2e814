"""The peer most people have: an ordinary Scrapy spider, as its documentation teaches, with a JSON Lines feed."""

import os

from scrapy import Request, Spider


class ProductSpider(Spider):
    name = "product"
    custom_settings = {  # noqa: RUF012 - Scrapy's own spelling
        "CONCURRENT_REQUESTS": 64,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": True,
        "LOG_LEVEL": "WARNING",
        "FEEDS": {os.environ["BENCH_OUT"]: {"format": "jsonlines", "encoding": "utf-8"}},
    }

    async def start(self):
        # `start_urls` would skip the duplicate filter, and the first page would be visited and stored twice.
        yield Request(os.environ["BENCH_SEED"])

    def parse(self, response):
        yield {
            "url": response.url,
            "sku": response.css("[itemprop=sku]::text").get(),
            "title": response.css("h1.name::text").get(),
            "brand": response.css(".brand::text").get(),
            "price": response.css(".price .amount::text").get(),
            "currency": response.css("[itemprop=currency]::attr(content)").get(),
            "availability": response.css(".stock::text").get(),
            "rating": response.css(".rating::text").get(),
            "reviews": response.css(".count::text").get(),
            "category": response.css(".category::text").get(),
            "colour": response.css("dd.colour::text").get(),
            "material": response.css("dd.material::text").get(),
            "weight": response.css("dd.weight::text").get(),
            "seller": response.css(".seller::attr(data-seller)").get(),
            "description": response.css(".description p::text").get(),
        }
        yield from response.follow_all(css="a")
