"""The spider of `bench.scrapy_bridge`: prints the CPU time of its process."""

import json
import os
import time

import scrapy
from scrapy import signals


class Tree(scrapy.Spider):
    name = "tree"
    start_urls = [f"{os.environ.get('SITE', 'http://127.0.0.1:1')}/0"]
    custom_settings = {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False}
    pages = 0

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.opened, signals.spider_opened)
        crawler.signals.connect(spider.told, signals.spider_closed)
        return spider

    def opened(self):
        self.began = time.process_time()

    def told(self):
        print(json.dumps({"cpu": time.process_time() - self.began, "pages": self.pages}), flush=True)

    def parse(self, response):
        if response.meta["depth"]:
            self.pages += 1
        yield {"title": response.css("h1::text").get(), "texts": response.css("p::text").getall()}
        yield from response.follow_all(css="a")
