"""Scrapy with scrapy-rotating-proxies, as its documentation teaches: delays are per proxy, and a banned one rests.

One of several such processes: each has its part of the pages, and its own idea of which proxies are banned.
"""

import os

from scrapy import Request, Spider

site, pages = os.environ["BENCH_SITE"], int(os.environ["BENCH_PAGES"])
worker, workers = int(os.environ["BENCH_WORKER"]), int(os.environ["BENCH_WORKERS"])


class ProxiedSpider(Spider):
    name = "proxied"
    custom_settings = {  # noqa: RUF012 - Scrapy's own spelling
        # Requests wait for the proxy that they were given: enough of them, so that no proxy waits for a request.
        "CONCURRENT_REQUESTS": int(os.environ["BENCH_ACTIVE"]),
        "DOWNLOAD_DELAY": float(os.environ["BENCH_DELAY"]),
        "ROBOTSTXT_OBEY": False,
        "LOG_LEVEL": "WARNING",
        "DOWNLOADER_MIDDLEWARES": {
            "rotating_proxies.middlewares.RotatingProxyMiddleware": 610,
            "rotating_proxies.middlewares.BanDetectionMiddleware": 620,
        },
        "ROTATING_PROXY_LIST": os.environ["BENCH_PROXIES"].split(),
        "FEEDS": {os.environ["BENCH_OUT"]: {"format": "jsonlines", "encoding": "utf-8"}},
    }

    async def start(self):
        for number in range(worker, pages, workers):
            yield Request(f"{site}/p/{number}")

    def parse(self, response):
        yield {
            "url": response.url,
            "title": response.css("h1::text").get(),
            "price": response.css(".price::text").get(),
        }
