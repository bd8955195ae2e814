"""Scrapy as somebody who has profiled it would run it, at three levels (`BENCH_LEVEL`).

tuned     uvloop; selectolax in place of parsel; a set of known URLs asked before a `Request` is made, so that nothing
          is built for known links. Everything else as Scrapy comes: robots obeyed, retries, statistics, a feed.
lean      besides, what costs time and does nothing here is off: no fingerprints, statistics, extensions, cookies, depth
          or referer; items written with orjson. Robots, retries, redirects, compression and timeouts stay.
stripped  besides, robots, redirects, compression and timeouts are off: less work than Trotline does.

`BENCH_HANDLER=aiohttp` takes Scrapy's own aiohttp download handler, which Scrapy calls experimental, not Twisted's.
"""

import os
from urllib.parse import urljoin

import orjson
from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from selectolax.lexbor import LexborHTMLParser

DOWNLOADER = "scrapy.downloadermiddlewares."
IDLE_HERE = dict.fromkeys(
    DOWNLOADER + name
    for name in (
        "offsite.OffsiteMiddleware",
        "httpauth.HttpAuthMiddleware",
        "redirect.MetaRefreshMiddleware",
        "cookies.CookiesMiddleware",
        "httpproxy.HttpProxyMiddleware",
        "stats.DownloaderStats",
        "httpcache.HttpCacheMiddleware",
    )
)
DUTIES = dict.fromkeys(
    DOWNLOADER + name
    for name in (
        "robotstxt.RobotsTxtMiddleware",
        "downloadtimeout.DownloadTimeoutMiddleware",
        "defaultheaders.DefaultHeadersMiddleware",
        "useragent.UserAgentMiddleware",
        "httpcompression.HttpCompressionMiddleware",
        "redirect.RedirectMiddleware",
    )
)
SPIDER_OFF = dict.fromkeys(
    "scrapy.spidermiddlewares." + name
    for name in (
        "referer.RefererMiddleware",
        "urllength.UrlLengthMiddleware",
        "depth.DepthMiddleware",
        "metacopy.MetaCopyDetectionMiddleware",
    )
)
EXTENSIONS_OFF = dict.fromkeys(
    "scrapy.extensions." + name
    for name in (
        "corestats.CoreStats",
        "logcount.LogCount",
        "telnet.TelnetConsole",
        "memusage.MemoryUsage",
        "memdebug.MemoryDebugger",
        "closespider.CloseSpider",
        "feedexport.FeedExporter",
        "logstats.LogStats",
        "spiderstate.SpiderState",
        "throttle.AutoThrottle",
        "remote_control.RemoteControl",
    )
)
HANDLERS = {
    "twisted": {},
    "aiohttp": {"http": "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"},
}


class Lines:
    """Items as JSON lines, written straight to one buffered file."""

    def open_spider(self):
        self.file = open(os.environ["BENCH_OUT"], "wb", buffering=1 << 20)  # noqa: PTH123, SIM115

    def process_item(self, item):
        self.file.write(orjson.dumps(item, option=orjson.OPT_APPEND_NEWLINE))
        return item

    def close_spider(self):
        self.file.close()


class ProductSpider(Spider):
    name = "product"
    start_urls = [os.environ["BENCH_SEED"]]  # noqa: RUF012 - Scrapy's own spelling

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.known = set(self.start_urls)

    def parse(self, response):
        tree = LexborHTMLParser(response.body)

        def text(selector):
            return tree.css_first(selector).text()

        yield {
            "url": response.url,
            "sku": text("[itemprop=sku]"),
            "title": text("h1.name"),
            "brand": text(".brand"),
            "price": text(".price .amount"),
            "currency": tree.css_first("[itemprop=currency]").attributes["content"],
            "availability": text(".stock"),
            "rating": text(".rating"),
            "reviews": text(".count"),
            "category": text(".category"),
            "colour": text("dd.colour"),
            "material": text("dd.material"),
            "weight": text("dd.weight"),
            "seller": tree.css_first(".seller").attributes["data-seller"],
            "description": text(".description p"),
        }
        known, base = self.known, response.url
        for href in {node.attributes["href"] for node in tree.css("a[href]")}:
            url = urljoin(base, href)
            if url not in known:
                known.add(url)
                yield Request(url, dont_filter=True)


TUNED = {
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
    "DOWNLOAD_DELAY": 0,
    "ROBOTSTXT_OBEY": True,
    "LOG_LEVEL": "WARNING",
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "DOWNLOAD_HANDLERS": HANDLERS[os.environ.get("BENCH_HANDLER", "twisted")],
}
FEED = {"FEEDS": {os.environ["BENCH_OUT"]: {"format": "jsonlines", "encoding": "utf-8"}}}
LEAN = {
    "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
    "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
    "DOWNLOADER_MIDDLEWARES": IDLE_HERE,
    "SPIDER_MIDDLEWARES": SPIDER_OFF,
    "EXTENSIONS": EXTENSIONS_OFF,
    "TELNETCONSOLE_ENABLED": False,
    "ITEM_PIPELINES": {Lines: 1},
}
STRIPPED = {"ROBOTSTXT_OBEY": False, "DOWNLOADER_MIDDLEWARES": IDLE_HERE | DUTIES}
LEVELS = {"tuned": TUNED | FEED, "lean": TUNED | LEAN, "stripped": TUNED | LEAN | STRIPPED}

if __name__ == "__main__":
    process = AsyncCrawlerProcess(LEVELS[os.environ["BENCH_LEVEL"]])
    process.crawl(ProductSpider)
    process.start()
