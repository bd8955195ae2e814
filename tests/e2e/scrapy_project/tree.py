"""A spider over a tree of pages for tests with kills: its items are in a file before its pages are settled."""

import os

import scrapy

SITE = os.environ.get("SITE", "http://127.0.0.1:1")


class Appended:
    """One line per item, with its process, written at once: what a killed process has stored stays stored."""

    def open_spider(self, spider=None):
        self.file = os.open(os.environ["ITEMS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def process_item(self, item, spider=None):
        os.write(self.file, f"{item['page']} {os.getpid()}\n".encode())
        return item

    def close_spider(self, spider=None):
        os.close(self.file)


class Tree(scrapy.Spider):
    name = "tree"
    start_urls = [f"{SITE}/0"]
    custom_settings = {"ITEM_PIPELINES": {Appended: 100}, "LOG_LEVEL": "WARNING", "TELNETCONSOLE_ENABLED": False}

    def parse(self, response):
        yield {"page": int(response.css("h1::text").get())}
        yield from response.follow_all(css="a")
