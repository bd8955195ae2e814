"""How each Python block of the docs is run; a block is named by its page and its number there."""

import asyncio
import sqlite3
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.docs.block_reader import CATALOG, RUNNERS, Reader, calls_its_functions, crawls, executes, runner
from tests.docs.console import trotline
from tests.docs.pages import DOCS, blocks
from trotline import Spider
from trotline.model.record import Record
from trotline.ports.inbox import Inbox
from trotline.spider.route import Route
from trotline.testing import DemoShop, visit
from trotline.testing.rabbitmq_server import rabbitmq
from trotline.testing.redis_server import redis
from trotline.testing.shop.account import PASSWORD, USER
from trotline.testing.sqs_server import CREDENTIALS, sqs

INLINE = "<img src=data:image/gif;base64,R0lGODlhAQABAAAAACw=>"
"""A picture in the page itself."""

for _name in (
    "docs/explain/url-identity.md 1",
    "docs/how-to/log-in.md 2",
    "docs/reference/dns-server.md 1",
    "docs/reference/limits.md 1",
    "docs/reference/spider.md 1",
):
    RUNNERS[_name] = executes

for _name in (
    "docs/how-to/cookies-and-headers.md 1",
    "docs/how-to/look-like-a-browser.md 1",
    "docs/how-to/recrawl.md 1",
    "docs/how-to/schedules-and-coordinator.md 1",
    "docs/how-to/write-a-spider.md 2",
    "docs/how-to/send-forms-and-json.md 4",
):
    RUNNERS[_name] = crawls

for _name in (
    "docs/how-to/test-a-spider.md 1",
    "docs/how-to/test-a-spider.md 2",
    "docs/how-to/write-a-spider.md 7",
    "docs/reference/demo-shop.md 1",
    "docs/reference/torture-server.md 1",
):
    RUNNERS[_name] = calls_its_functions


@runner("docs/how-to/merge.md 1")
def a_merge_rule(reader: Reader, text: str) -> None:
    rule = reader.execute(text)["shop"].merging
    told = Record(kind="p", key="1", data={"brand": "Acme", "model": "X1"}, url="", site="shop", seen_at=1.0)
    assert rule.author(told) == "acme/x1"
    assert rule.rule.by == ("url",)


@runner("docs/how-to/archive.md 1")
def what_is_kept(reader: Reader, text: str) -> None:
    rows = reader.crawl(text, "--archive", "file:pages")
    assert {row["sku"] for row in rows} == reader.skus
    code, label = trotline(reader.folder, "archive", "get", str(rows[0]["label"]), "--archive", "file:pages")
    assert code == 0
    assert label


@runner("docs/how-to/hooks.md 1")
def hooks(reader: Reader, text: str) -> None:
    rows = reader.crawl(text)
    assert {row["sku"] for row in rows} == reader.skus
    assert all(isinstance(row["price"], float) and row["found_on"] for row in rows)


@runner("docs/how-to/hooks.md 2")
def a_record_that_is_split(reader: Reader, text: str) -> None:
    module = reader.execute(text, shop=Spider("split"))
    variants = module["variants"]
    assert callable(variants)
    assert [one["sku"] for one in variants({"sku": "T1", "sizes": ["S", "M"]})] == ["T1-S", "T1-M"]


@runner("docs/how-to/download-files.md 1")
def downloads(reader: Reader, text: str) -> None:
    rows = reader.crawl(text)
    assert {row["sku"] for row in rows if "sku" in row} == reader.skus
    product = reader.execute(text)["product"]
    assert isinstance(product, Route)
    for images, picture in (
        ("", None),
        (INLINE, None),
        (f"{INLINE}<img src=/i/1.jpg>", "https://shop.example/i/1.jpg"),
    ):
        page = f"<b itemprop=sku>T1</b>{images}"
        harvest = visit(product, page.encode(), url="https://shop.example/p/1")
        assert [record.data["picture"] for record in harvest.records] == [picture]
        assert [task.url for task in harvest.tasks] == [picture] * bool(picture)


@runner("docs/learn/from-scrapy.md 1")
def quotes_of_scrapy(reader: Reader, text: str) -> None:
    rows = reader.crawl(text)
    assert len(rows) > 10
    assert all(row["text"] and row["by"] for row in rows)


@runner("docs/learn/from-scrapy.md 2")
@runner("docs/learn/from-scrapy.md 3")
def catalogs_of_scrapy(reader: Reader, text: str) -> None:
    rows = reader.crawl(text)
    assert {row["sku"] for row in rows} == reader.skus
    assert all(isinstance(row.get("price", 1.0), float) and "catalog" in row.get("shelf", "catalog") for row in rows)


@runner("docs/learn/from-scrapy.md 4")
def a_form_of_scrapy(reader: Reader, text: str) -> None:
    assert {row["sku"] for row in reader.crawl(text)} <= reader.skus


@runner("docs/learn/from-scrapy.md 5")
def a_script_of_scrapy(reader: Reader, text: str) -> None:
    made = reader.execute(blocks(DOCS / "learn" / "from-scrapy.md", "python")[1].text)
    module = reader.execute(text.replace("run(shop)", "run(shop, allow_private=True)"), shop=made["shop"])
    assert set(module["skus"]) == reader.skus  # type: ignore[call-overload]


@runner("docs/how-to/workers-per-route.md 1")
def workers_per_route(reader: Reader, text: str) -> None:
    skus = {row["sku"] for row in reader.crawl(text)}
    assert skus <= reader.skus
    assert len(skus) > 10


@runner("docs/how-to/workers-per-route.md 2")
def tasks_for_another_spider(reader: Reader, text: str) -> None:
    reader.write("shop.py", text)
    for words in (
        ["start", "-d", "shop.py:products"],
        ["start", "-d", "shop.py:catalog"],
        ["work", "shop.py:catalog", "--until-finished", "--allow-private"],
        ["work", "shop.py:products", "--until-finished", "--allow-private"],
    ):
        code, said = trotline(reader.folder, *words)
        assert code == 0, said
    with sqlite3.connect(reader.folder / "products.db") as rows:
        assert rows.execute("SELECT count(*) FROM product").fetchone()[0] > 10


@runner("docs/how-to/chains.md 1")
def _(reader: Reader, text: str) -> None:
    rows = reader.crawl(text)
    assert {row["sku"] for row in rows} == reader.skus
    assert all("catalog?page=" in str(row["chain"]) for row in rows)


@runner("docs/how-to/add-tasks-from-any-program.md 1")
def a_producer(reader: Reader, text: str) -> None:
    with redis() as server:
        reader.execute(text.replace("redis://localhost:6379/0", server.url))
        assert server.command("LLEN", "wanted") == b":2\r\n"


@runner("docs/how-to/add-tasks-from-any-program.md 2")
def a_producer_for_rabbitmq(reader: Reader, text: str) -> None:
    from trotline.adapters.amqp.inbox import AmqpInbox

    with rabbitmq() as server:
        assert taken(lambda: AmqpInbox(f"{server.url}/?inbox=wanted")) == ()
        reader.execute(text.replace("amqp://guest:guest@localhost/%2F", f"{server.url}/%2F"))
        assert taken(lambda: AmqpInbox(f"{server.url}/?inbox=wanted")) == (
            f'{{"url": "{reader.shop.url}/p/17", "priority": 20}}'.encode(),
        )


@runner("docs/how-to/add-tasks-from-any-program.md 3")
def a_producer_for_sqs(reader: Reader, text: str) -> None:
    from trotline.adapters.sqs.inbox import SqsInbox

    with sqs() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": server.endpoint}.items():
            patch.setenv(name, value)
        assert taken(lambda: SqsInbox(server.inbox_url("wanted"), wait=0)) == ()
        reader.execute(text)
        assert taken(lambda: SqsInbox(server.inbox_url("wanted"), wait=0)) == (
            f'{{"url": "{reader.shop.url}/p/17", "priority": 20}}'.encode(),
        )


def taken(opened: Callable[[], Inbox]) -> tuple[bytes, ...]:
    """What the inbox has; they are removed."""

    async def take() -> tuple[bytes, ...]:
        inbox = opened()
        try:
            batch = await inbox.take()
            if batch is None:
                return ()
            assert await inbox.done(batch, {})
            return batch.entries
        finally:
            await inbox.close()

    return asyncio.run(take())


@runner("docs/how-to/use-the-queue.md 1")
@runner("docs/how-to/use-the-queue.md 2")
def own_workers(reader: Reader, text: str) -> None:
    printed: list[object] = []
    reader.execute(text, print=lambda url, size: printed.append((url, size > 100)))
    assert sorted(printed) == [(f"{reader.shop.url}/p/T{n}", True) for n in (1, 2)]


@runner("docs/how-to/write-a-backend.md 1")
def _(reader: Reader, text: str) -> None:
    backend = reader.execute(text)["FOLDER"]
    assert backend.sink.parse("folder:rows") == "folder:rows"


@runner("docs/how-to/debug-a-page.md 1")
def a_saved_page(reader: Reader, text: str) -> None:
    reader.save("/p/T1", "page.html")
    module = reader.execute(text)
    assert [record.key for record in module["harvest"].records] == ["T1"]  # type: ignore[attr-defined]


@runner("docs/how-to/get-your-rows.md 1")
def rows_to_csv(reader: Reader, text: str) -> None:
    code, said = trotline(reader.folder, "run", "shop.py", "--allow-private", "--out", "rows.db")
    assert code == 0, said
    reader.execute(text)
    assert len((reader.folder / "products.csv").read_text().splitlines()) == 1 + len(reader.skus)


@runner("docs/how-to/log-in.md 1")
def a_login(reader: Reader, text: str) -> None:
    rows = reader.crawl(text)
    assert {row["number"] for row in rows} == {order.number for order in reader.shop.orders}


@runner("docs/how-to/secrets.md 1")
def secrets(reader: Reader, text: str) -> None:
    (reader.folder / "session.txt").touch(mode=0o600)
    (reader.folder / "session.txt").write_text("a session\n")
    rows = reader.crawl(text)
    assert {row["sku"] for row in rows} <= reader.skus
    assert rows


@runner("docs/how-to/send-forms-and-json.md 1")
def a_search(reader: Reader, text: str) -> None:
    rows = reader.crawl(text)
    assert {row["sku"] for row in rows} == {
        each.sku for each in reader.shop.truth if each.category == "tea" or "tea" in each.title.lower()
    }


@runner("docs/how-to/send-forms-and-json.md 3")
def a_form(reader: Reader, text: str) -> None:
    rows = reader.crawl(text)
    assert rows
    assert all("teapot" in str(row["title"]).lower() for row in rows)


@runner("docs/how-to/send-forms-and-json.md 2")
def a_form_with_a_key(reader: Reader, text: str) -> None:
    prelude = blocks(DOCS / "how-to" / "send-forms-and-json.md", "python")[0].text
    assert len(reader.yields(f'url, token = page.url, "t"\n{text}', prelude)) == 1


@runner("docs/how-to/start-from-a-list.md 1")
def a_file_of_urls(reader: Reader, text: str) -> None:
    reader.write("urls.txt", "https://shop.example/p/T1\nhttps://shop.example/p/T2\n")
    assert {row["sku"] for row in reader.crawl(text)} == {"T1", "T2"}


@runner("docs/how-to/start-from-a-list.md 2")
def a_sitemap(reader: Reader, text: str) -> None:
    crawls(reader, text)


@runner("docs/how-to/start-from-a-list.md 3")
def a_database(reader: Reader, text: str) -> None:
    code, said = trotline(reader.folder, "run", "shop.py", "--allow-private")
    assert code == 0, said
    with sqlite3.connect(reader.folder / "shop.db") as db:
        db.execute("UPDATE records SET seen_at = seen_at - 100000 WHERE key = 'T1'")
    assert [row["sku"] for row in reader.crawl(text)] == ["T1"]


@runner("docs/how-to/test-a-spider.md 3")
def a_whole_spider(reader: Reader, text: str) -> None:
    """Unchanged: it starts a shop of its own, and puts its URL into the spider."""
    spider = CATALOG.replace('pace="2/s"', 'pace="200/s"')
    module: dict[str, object] = {"SPIDER": spider}
    exec(text, module)  # noqa: S102 - our own page
    test = module["test_every_product_is_stored_once"]
    assert callable(test)
    test(reader.folder)


@runner("docs/how-to/use-a-proxy.md 1")
@runner("docs/how-to/use-a-proxy.md 2")
def a_proxy(reader: Reader, text: str) -> None:
    main = reader.execute(text)["main"]
    assert callable(main)
    asyncio.run(main())


@runner("docs/how-to/proxies.md 1")
def a_pool(reader: Reader, text: str) -> None:
    shop = reader.execute(text)["shop"]
    assert isinstance(shop, Spider)
    assert (shop.pools, shop.rules.default.per_proxy) == (("default",), True)


@runner("docs/how-to/accounts.md 1")
def accounts(reader: Reader, text: str) -> None:
    shop = reader.execute(text)["shop"]
    assert isinstance(shop, Spider)
    assert shop.pools == ("@buyers",)


@runner("docs/how-to/accounts.md 2")
def a_login_of_accounts(reader: Reader, text: str) -> None:
    pools = f'[accounts.buyers]\nproxies = "direct"\n[accounts.buyers.logins]\n{USER} = {{ password = "{PASSWORD}" }}\n'
    (reader.folder / "proxies.toml").write_text(pools)
    orders = """
@shop.page(seeds=["https://shop.example/account"], key="number")
def orders(page: Page):
    for order in page.css(".orders li"):
        yield {"number": order.css(".number::text").get()}
"""
    rows = reader.crawl(text + orders, "--proxies", "proxies.toml")
    assert {row["number"] for row in rows} == {order.number for order in reader.shop.orders}


@runner("docs/how-to/proxies.md 2")
def two_pools(reader: Reader, text: str) -> None:
    shop = reader.execute(text)["shop"]
    assert isinstance(shop, Spider)
    assert shop.pools == ("datacenter", "isp")


@runner("docs/how-to/write-a-spider.md 1")
def the_first_spider(reader: Reader, text: str) -> None:
    rows = reader.crawl(text.replace("https://quotes.example/", "https://shop.example/quotes/"))
    assert [row["text"] for row in rows] == [quote.text for quote in reader.shop.quotes]


@runner("docs/how-to/write-a-spider.md 3")
def a_model(reader: Reader, text: str) -> None:
    head, _, _ = CATALOG.partition('@shop.page(key="sku")')
    crawls(reader, head + text.replace(".sku::text", "[itemprop=sku]::text"))


@runner("docs/how-to/write-a-spider.md 4")
def seeds_of_every_kind(reader: Reader, text: str) -> None:
    reader.write("urls.txt", "https://shop.example/p/T1\n")
    handler = '    yield {"sku": page.css("[itemprop=sku]::text").get() or page.url}'
    spider = 'from trotline import Page, Spider\nshop = Spider("shop")\n' + text.replace(" ...", "\n" + handler)
    assert reader.skus <= {row["sku"] for row in reader.crawl(spider)}


@runner("docs/how-to/write-a-spider.md 5")
def a_scope(reader: Reader, text: str) -> None:
    reader.execute(text, Spider=Spider)


@runner("docs/how-to/write-a-spider.md 6")
def tasks_with_bodies(reader: Reader, text: str) -> None:
    prelude = blocks(DOCS / "how-to" / "send-forms-and-json.md", "python")[0].text
    assert len(reader.yields(text, prelude)) == 3


@runner("docs/reference/demo-shop.md 2")
def a_shop_in_a_thread(reader: Reader, text: str) -> None:
    reader.execute(text, DemoShop=DemoShop)


@runner("docs/reference/demo-shop.md 3")
def a_real_nginx(reader: Reader, text: str) -> None:
    reader.execute(text, folder=reader.folder)


@runner("docs/reference/torture-server.md 2")
def a_bad_certificate(reader: Reader, text: str) -> None:
    reader.execute(text, folder=reader.folder)


def contract(reader: Reader, text: str) -> None:
    """The blocks of the frontier contract build on each other."""
    page = [block.text for block in blocks(DOCS / "reference" / "frontier-contract.md", "python")]
    reader.execute("\n".join(page[: page.index(text) + 1]))


for _number in (1, 2, 3, 4):
    RUNNERS[f"docs/reference/frontier-contract.md {_number}"] = contract


@runner("docs/how-to/scrapy.md 1")
@runner("docs/how-to/scrapy.md 3")
@runner("docs/how-to/scrapy.md 4")
@runner("docs/how-to/scrapy.md 5")
@runner("docs/how-to/scrapy.md 7")
@runner("docs/how-to/from-scrapy-redis.md 1")
def of_a_scrapy_project(reader: Reader, text: str) -> None:
    """Settings that the add-on accepts."""
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import Settings

    from trotline.bridges.scrapy import Addon
    from trotline.bridges.scrapy.options import Options

    given = {name: value for name, value in reader.execute(text).items() if name.isupper()}
    crawler = Crawler(Spider, Settings({"TROTLINE": "redis://localhost:6379/0", **given}))
    crawler.spider = Spider("shop", category="books")
    Addon.from_crawler(crawler).update_settings(crawler.settings)
    options = Options.read(crawler)
    assert options.plan.name == ("shop-books" if "TROTLINE_JOB" in given else "shop")
    assert bool(options.inbox) == ("TROTLINE_INBOX" in given)


@runner("docs/how-to/scrapy.md 2")
def an_item_that_travels(reader: Reader, text: str) -> None:
    """From page to page, each request stored as data and read again."""
    from scrapy import Spider
    from scrapy.http import HtmlResponse

    from trotline.bridges.scrapy.request_codec import RequestCodec

    spider: Any = type("Shop", (Spider,), {"name": "shop", **reader.execute(text)})()
    codec = RequestCodec(spider)
    body = b'<h1>Lamp</h1><b class="price">3.50</b><b class="stock">7</b>'
    callback, given, seen = spider.parse_product, dict[str, Any](), list[str]()
    while True:
        (found,) = callback(HtmlResponse("https://shop.example/p/1", body=body), **given)
        if isinstance(found, dict):
            break
        request, _ = codec.decode(codec.encode(found, 1, now=0.0))
        seen.append(request.url)
        callback, given = request.callback, request.cb_kwargs
    assert found == {"name": "Lamp", "price": "3.50", "stock": "7"}
    assert seen == ["https://shop.example/price", "https://shop.example/stock"]


@runner("docs/how-to/scrapy.md 6")
def a_spider_that_logs_in(reader: Reader, text: str) -> None:
    from scrapy.http import HtmlResponse

    from trotline.model.secret import Secret

    spider = reader.execute(text)["Orders"]()  # type: ignore[operator]
    sent = []

    async def download(request: Any) -> HtmlResponse:
        sent.append(request)
        return HtmlResponse(request.url, body=b"<a class=logout>bye</a>")

    account = SimpleNamespace(user="anna", password=Secret("a password that the docs have nowhere"))
    assert asyncio.run(spider.trotline_login(account, download)) == ""
    assert [each.method for each in sent] == ["POST"]
    assert b"user=anna" in sent[0].body


@runner("docs/how-to/from-scrapy-redis.md 2")
def a_spider_with_another_import(reader: Reader, text: str) -> None:
    from scrapy.http import HtmlResponse

    kind = reader.execute(text)["Shop"]
    spider = kind()  # type: ignore[operator]
    assert spider.make_request_from_data(b"https://shop.example/1").url == "https://shop.example/1"
    page = HtmlResponse("https://shop.example/1", body=b"<h1>One</h1>")
    assert list(spider.parse(page)) == [{"title": "One"}]
