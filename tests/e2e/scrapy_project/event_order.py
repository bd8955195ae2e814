"""What happens to a page, in its order. `python -m tests.e2e.scrapy_project.event_order FRONTIER`"""

import asyncio
import json
import sys
from typing import Any

import scrapy
from scrapy import signals
from scrapy.crawler import CrawlerProcess
from tests.e2e.scrapy_project.spiders import SITE

from trotline.bridges.scrapy.frontier_client import FrontierClient
from trotline.model.lease import Settlement

EVENTS: list[str] = []


class Slowly:
    async def process_item(self, item: Any, spider: Any = None) -> Any:
        await asyncio.sleep(0.1)
        EVENTS.append("pipeline ends")
        return item


class Watched(scrapy.Spider):
    name = "watched"
    start_urls = [f"{SITE}/product/1"]
    custom_settings = {"ITEM_PIPELINES": {Slowly: 100}}

    async def parse(self, response: Any) -> Any:
        EVENTS.append("callback begins")
        yield {"name": "an item"}
        yield response.follow("/status/404", self.parse, errback=self.failed)
        EVENTS.append("child yielded")
        await asyncio.sleep(0.02)
        EVENTS.append("callback ends")

    def failed(self, failure: Any) -> None:
        EVENTS.append("errback")

    async def handled(self, item: Any) -> None:
        await asyncio.sleep(0.1)
        EVENTS.append("item_scraped handled")

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.handled, signals.item_scraped)
        return spider


def main() -> None:
    settle = FrontierClient.add_settlement

    def watched(self: FrontierClient, settlement: Settlement) -> None:
        count = len(settlement.children)
        EVENTS.append(f"settled with {count} request{'s' * (count != 1)}")
        settle(self, settlement)

    FrontierClient.add_settlement = watched  # type: ignore[method-assign]
    process = CrawlerProcess(
        {
            "ADDONS": {"trotline.bridges.scrapy.Addon": 500},
            "TROTLINE": sys.argv[1],
            "LOG_LEVEL": "ERROR",
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(Watched)
    process.start()
    print(json.dumps(EVENTS))


if __name__ == "__main__":
    main()
