"""Spiders as their authors write them for plain Scrapy."""

import asyncio
import datetime
import os
from decimal import Decimal

import scrapy
from scrapy.exceptions import DropItem
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider

SITE = os.environ.get("SITE", "http://127.0.0.1:1")


class Product(scrapy.Item):
    name = scrapy.Field()
    price = scrapy.Field()
    seen = scrapy.Field()


class Plain(scrapy.Spider):
    name = "plain"
    start_urls = [f"{SITE}/catalog"]

    def parse(self, response):
        for link in response.css("a.product"):
            yield response.follow(link, self.parse_product)
        yield from response.follow_all(css="a.next, a.home")

    def parse_product(self, response):
        yield {"name": response.css("h1::text").get(), "depth": response.meta["depth"]}


class Crawling(CrawlSpider):
    name = "crawling"
    start_urls = [f"{SITE}/catalog"]
    rules = (
        Rule(LinkExtractor(restrict_css="a.next")),
        Rule(LinkExtractor(allow=r"/product/"), callback="parse_product", cb_kwargs={"via": "rule"}),
    )

    def parse_product(self, response, via):
        yield {"name": response.css("h1::text").get(), "link": response.meta["link_text"], "via": via}


class Sitemap(SitemapSpider):
    name = "sitemap"
    sitemap_urls = [f"{SITE}/robots.txt"]
    sitemap_rules = [("/product/", "parse_product")]

    def parse_product(self, response):
        yield {"name": response.css("h1::text").get()}


class Checked:
    """A pipeline that drops and changes."""

    def process_item(self, item, spider=None):
        if item["name"].endswith("3"):
            raise DropItem("three")
        item["price"] = str(Decimal(item["price"]) * 2)
        return item


class Slowly:
    """A pipeline that waits."""

    async def process_item(self, item, spider=None):
        await asyncio.sleep(0.01)
        item["seen"] = True
        return item


class Items(scrapy.Spider):
    name = "items"
    start_urls = [f"{SITE}/catalog"]
    custom_settings = {"ITEM_PIPELINES": {Checked: 100, Slowly: 200}}

    def parse(self, response):
        yield from response.follow_all(css="a.product", callback=self.parse_product)

    def parse_product(self, response):
        yield Product(name=response.css("h1::text").get(), price=response.css("b.price::text").get())


class Later(scrapy.Spider):
    name = "later"
    start_urls = [f"{SITE}/catalog", f"{SITE}/catalog?page=1"]

    async def parse(self, response):
        await asyncio.sleep(0.01)
        for link in response.css("a.product::attr(href)").getall():
            yield response.follow(link, callback=self.parse_product)

    async def parse_product(self, response):
        await asyncio.sleep(0.01)
        return {"name": response.css("h1::text").get()}


class Failing(scrapy.Spider):
    name = "failing"
    custom_settings = {"RETRY_TIMES": 1}

    async def start(self):
        for path in ("status/404", "status/500", "product/1"):
            yield scrapy.Request(f"{SITE}/{path}", self.parse, errback=self.failed, cb_kwargs={"path": path})
        yield scrapy.Request("http://127.0.0.1:1/", self.parse, errback=self.failed)

    def parse(self, response, path):
        yield {"path": path, "status": response.status}

    def failed(self, failure):
        status = getattr(getattr(failure.value, "response", None), "status", 0)
        yield {"failed": failure.request.cb_kwargs.get("path", "no server"), "status": status}
        if status == 404:
            yield scrapy.Request(f"{SITE}/product/2", self.parse, cb_kwargs={"path": "instead of the 404"})


class Login(scrapy.Spider):
    name = "login"
    start_urls = [f"{SITE}/login"]

    def parse(self, response):
        return scrapy.FormRequest.from_response(
            response, formdata={"user": "ann", "password": "secret"}, callback=self.logged_in
        )

    def logged_in(self, response):
        yield {"title": response.css("h1::text").get()}
        yield from response.follow_all(css="a.whoami", callback=self.parse_page)

    def parse_page(self, response):
        yield {"user": response.css("h1::text").get(), "page": response.url[-1]}


class Jars(scrapy.Spider):
    name = "jars"

    async def start(self):
        for number, user in enumerate(("ann", "ben", "cem")):
            yield scrapy.Request(f"{SITE}/jar/{user}", meta={"cookiejar": number}, cb_kwargs={"user": user})

    def parse(self, response, user):
        yield scrapy.Request(
            f"{SITE}/whoami?user={user}",
            meta={"cookiejar": response.meta["cookiejar"]},
            callback=self.parse_name,
            cb_kwargs={"user": user},
        )

    def parse_name(self, response, user):
        yield {"user": user, "is": response.css("h1::text").get()}


class Chain(scrapy.Spider):
    name = "chain"
    start_urls = [f"{SITE}/product/0"]

    def parse(self, response):
        item = Product(name="a chain", seen=[])
        values = {
            "item": item,
            "pair": (1, "two"),
            "day": datetime.date(2026, 3, 1),
            "price": Decimal("1.10"),
            "raw": b"\x00\xff",
            "tags": {"a", "b"},
        }
        yield response.follow("/product/1", self.parse_next, cb_kwargs=values, meta={"step": 1})

    def parse_next(self, response, item, **values):
        item["seen"].append(response.css("h1::text").get())
        step = response.meta["step"]
        if step < 4:
            # The meta of the page is copied, as many spiders do.
            meta = {**response.meta, "step": step + 1}
            yield response.follow(
                f"/product/{step + 1}", self.parse_next, cb_kwargs={"item": item, **values}, meta=meta
            )
        else:
            tags = sorted(values.pop("tags"))
            yield {**item, "tags": tags, **{name: repr(value) for name, value in values.items()}}


class Repeating(scrapy.Spider):
    name = "repeating"
    start_urls = [f"{SITE}/count/start"]

    def parse(self, response):
        for _ in range(3):
            yield scrapy.Request(f"{SITE}/count/page", self.parse_count, dont_filter=True, meta={"left": 2})
        yield scrapy.Request(f"{SITE}/count/once", self.parse_count, meta={"left": 0})
        yield scrapy.Request(f"{SITE}/count/once", self.parse_count, meta={"left": 0})

    def parse_count(self, response):
        yield {"path": response.url.rpartition("/")[2], "visit": int(response.css("h1::text").get())}
        if response.meta["left"]:
            again = {"left": response.meta["left"] - 1}
            yield response.request.replace(dont_filter=True, meta=again)


class Scripted(scrapy.Spider):
    name = "scripted"
    custom_settings = {
        "DOWNLOAD_HANDLERS": {"http": "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"},
        "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
        "PLAYWRIGHT_LAUNCH_OPTIONS": {
            "executable_path": os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            "args": ["--no-sandbox"],
        },
    }

    async def start(self):
        from scrapy_playwright.page import PageMethod

        yield scrapy.Request(
            f"{SITE}/script",
            meta={
                "playwright": True,
                "playwright_page_methods": [PageMethod("wait_for_selector", "h1", timeout=20_000)],
            },
        )

    def parse(self, response):
        yield {"title": response.css("h1::text").get()}


class Quotes(scrapy.Spider):
    """Of Scrapy's tutorial."""

    name = "quotes"

    async def start(self):
        yield scrapy.Request(f"{SITE}/quotes/1", self.parse)

    def parse(self, response):
        for quote in response.css("div.quote"):
            yield {
                "text": quote.css("span.text::text").get(),
                "author": quote.css("small.author::text").get(),
                "tags": quote.css("div.tags a.tag::text").getall(),
            }
        next_page = response.css("li.next a::attr(href)").get()
        if next_page is not None:
            yield response.follow(next_page, callback=self.parse)


class Authors(scrapy.Spider):
    """The second one of the tutorial."""

    name = "authors"
    start_urls = [f"{SITE}/quotes/1"]

    def parse(self, response):
        yield from response.follow_all(response.css(".author + a"), self.parse_author)
        yield from response.follow_all(response.css("li.next a"), self.parse)

    def parse_author(self, response):
        yield {"name": response.css("h3.author-title::text").get(default="").strip()}


class Moved(scrapy.Spider):
    """Redirects, retries and priorities."""

    name = "moved"

    async def start(self):
        for number in range(3):
            yield scrapy.Request(f"{SITE}/old/{number}", priority=number)
            yield scrapy.Request(f"{SITE}/flaky/{number}")
        # Known by then, or the other way round: one of both is visited.
        yield scrapy.Request(f"{SITE}/product/1")

    def parse(self, response):
        retries, times = response.meta.get("retry_times", 0), response.meta.get("redirect_times", 0)
        redirected = bool(times) and not response.url.endswith("/1")
        yield {"path": response.url.partition("//")[2].partition("/")[2], "retries": retries, "redirected": redirected}


class Walled(scrapy.Spider):
    """A page that sets a cookie and redirects to itself."""

    name = "walled"

    async def start(self):
        yield scrapy.Request(f"{SITE}/wall")

    def parse(self, response):
        yield {"title": response.css("h1::text").get(), "redirects": response.meta.get("redirect_times", 0)}


class Older(scrapy.Spider):
    """With the method of before Scrapy 2.13, which 2.16 and later do not call."""

    name = "older"

    def start_requests(self):
        for number in range(3):
            yield scrapy.Request(f"{SITE}/product/{number}")

    def parse(self, response):
        yield {"name": response.css("h1::text").get()}


class Fragile:
    """A pipeline with a bug."""

    def process_item(self, item, spider=None):
        if item["name"] == "Product 2":
            raise KeyError("no such column")
        return item


class Broken(scrapy.Spider):
    """Everything that can go wrong with a page."""

    name = "broken"
    custom_settings = {"ITEM_PIPELINES": {Fragile: 100}}

    async def start(self):
        for path in ("product/1", "product/2", "product/3", "product/4", "status/500", "status/404"):
            yield scrapy.Request(f"{SITE}/{path}")
        yield scrapy.Request("http://127.0.0.1:1/5")
        for number in (8, 9):
            yield scrapy.Request(f"{SITE}/product/{number}", lambda response: None)

    def parse(self, response):
        match response.url.rpartition("/")[2]:
            case "1":
                yield response.follow("/product/6", self.parse_product)
                raise ValueError("a bug")
            case "2":
                yield {"name": "Product 2"}
            case "3":
                for number in (7, 8, 9):
                    yield response.follow(f"/product/{number}", self.parse_product, meta={"page": response})
            case "4":
                yield response.follow("/product/7", lambda response: None)

    def parse_product(self, response):
        yield {"name": response.css("h1::text").get()}


class Sharing(scrapy.Spider):
    """Two pages fill one item, which works in one process that keeps it in memory."""

    name = "sharing"
    start_urls = [f"{SITE}/catalog"]

    def parse(self, response):
        item = {}
        for number in range(4):
            yield response.follow(f"/product/{number}", self.parse_product, cb_kwargs={"item": item})

    def parse_product(self, response, item):
        item[response.css("h1::text").get()] = True
        yield {"filled": len(item)}


try:
    from trotline.bridges.scrapy import RedisSpider
except ImportError:
    RedisSpider = scrapy.Spider


class Listed(RedisSpider):
    """A spider of scrapy-redis, whose import was changed. It is the only one here that knows of Trotline."""

    name = "listed"
    redis_key = "listed:start_urls"
    max_idle_time = 2

    def parse(self, response):
        yield {"name": response.css("h1::text").get(), "meta": response.meta.get("shelf")}


class Wanted(scrapy.Spider):
    """All of its URLs come from other programs."""

    name = "wanted"

    def parse(self, response):
        yield {"name": response.css("h1::text").get(), "meta": response.meta.get("shelf"), "url": response.url[-1]}


class Proxied(scrapy.Spider):
    """Of a site that bans by address."""

    name = "proxied"
    start_urls = [f"{SITE}/"]

    def parse(self, response):
        # As many spiders do: what the download has left in meta travels along.
        yield from response.follow_all(css="a", callback=self.parse_page, meta=response.meta)

    def parse_page(self, response):
        yield {"path": response.url.removeprefix(SITE)}


class Pooled(scrapy.Spider):
    """A request that names a pool, in a project that goes out directly."""

    name = "pooled"

    async def start(self):
        yield scrapy.Request(f"{SITE}/p/1", meta={"trotline_pool": "dc"})

    def parse(self, response):
        yield {"path": response.url.removeprefix(SITE)}


class Members(scrapy.Spider):
    """Pages behind a login, with accounts of a pool."""

    name = "members"
    trotline_pool = "@members"

    async def start(self):
        for number in range(1, 1 + int(os.environ["PAGES"])):
            yield scrapy.Request(f"{SITE}/p/{number}")

    async def trotline_login(self, account, download):
        page = await download(scrapy.Request(f"{SITE}/login"))
        form = {"user": account.user, "password": account.password.reveal()}
        page = await download(scrapy.FormRequest.from_response(page, formdata=form, url=f"{SITE}/login", method="POST"))
        return "" if page.css("a.out") else "no way to log out"

    def trotline_logged_out(self, response):
        return bool(response.css("form.login"))

    def parse(self, response):
        who = response.css(".who::text").get()
        yield {"url": response.url, "who": who, "account": response.meta["trotline_account"]}


class Patient(scrapy.Spider):
    """Of a site that is away at the beginning."""

    name = "patient"
    start_urls = [f"{SITE}/product/{number % 8}?visit={number}" for number in range(30)]

    def parse(self, response):
        yield {"url": response.url.partition("?")[2]}


class Rotation:
    """The proxy middleware of a project: its proxies are dead, and it keeps an object in the meta of requests."""

    def process_request(self, request, spider=None):
        if not request.url.endswith("/0"):
            request.meta["proxy"] = "http://127.0.0.1:1"
            request.meta["proxy_session"] = object()


class Rotating(scrapy.Spider):
    name = "rotating"
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Rotation: 700}, "RETRY_TIMES": 1}

    async def start(self):
        for number in range(14):
            yield scrapy.Request(f"{SITE}/product/{number}", priority=number)

    def parse(self, response):
        yield {"name": response.css("h1::text").get()}


class Dying(scrapy.Spider):
    """Its process is gone in the middle of the last page, long after the other pages were settled."""

    name = "dying"

    async def start(self):
        for number in range(6):
            yield scrapy.Request(f"{SITE}/product/{number}", priority=-number)

    async def parse(self, response):
        if response.url.endswith("/5"):
            await asyncio.sleep(2)
            os._exit(9)
        yield {"name": response.css("h1::text").get()}


ALL = (Plain, Crawling, Sitemap, Items, Later, Failing, Login, Jars, Chain, Repeating, Quotes, Authors, Moved)
