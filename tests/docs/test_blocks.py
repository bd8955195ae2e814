"""Every Python block of the docs runs, against the demo shop where it needs a site.

Hosts and paces are replaced, nothing else: the demo shop is on a free port, and tests use a high pace. A block
is named by its page and its number among the Python blocks there; `RUNNERS` says how each is run. The README, the
tutorials and the page on embedding are run in test_tutorials.py.
"""

import ast
import asyncio
import json
import re
import sqlite3
import sys
import textwrap
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.docs.console import trotline
from tests.docs.pages import DOCS, ROOT, Block, all_blocks, blocks
from trotline import Page, Spider
from trotline.model.record import Record
from trotline.ports.inbox import Inbox
from trotline.testing import DemoShop, visit
from trotline.testing.rabbitmq_server import rabbitmq
from trotline.testing.redis_server import redis
from trotline.testing.shop.account import PASSWORD, USER
from trotline.testing.sqs_server import CREDENTIALS, sqs

IN_TUTORIALS = {
    "README.md",
    "docs/learn/first-spider.md",
    "docs/learn/from-laptop-to-fleet.md",
    "docs/how-to/embed-it.md",
}
CATALOG = blocks(ROOT / "README.md", "python")[1].text


def names() -> dict[str, Block]:
    """`docs/how-to/log-in.md 1` -> the first Python block of that page."""
    found: dict[str, Block] = {}
    for page in sorted({block.page for block in all_blocks("python")}):
        for number, block in enumerate(blocks(page, "python"), 1):
            found[f"{page.relative_to(ROOT)} {number}"] = block
    return found


BLOCKS = {name: block for name, block in names().items() if name.rpartition(" ")[0] not in IN_TUTORIALS}


@pytest.fixture(scope="module")
def shop() -> Iterator[DemoShop]:
    with DemoShop.in_thread(products=24) as opened:
        yield opened


class Reader:
    """Runs a block in an empty folder that has the README's catalog as shop.py."""

    def __init__(self, folder: Path, shop: DemoShop) -> None:
        self.folder = folder
        self.shop = shop
        self.skus = {product.sku for product in shop.truth}
        self.write("shop.py", CATALOG)

    def here(self, text: str) -> str:
        """The text with the URL of this test's shop and a high pace."""
        host = self.shop.url.removeprefix("http://")
        text = re.sub(r'pace="\d+/s"', 'pace="200/s"', text)
        text = re.sub(r'(Spider\(\s*"\w+")(?![^)]*pace=)', r'\1, pace="200/s"', text)
        text = re.sub(r"https://(?:shop|quotes)\.example/?(?=\")", f"{self.shop.url}/", text)
        return re.sub(r"https://shop\.example", self.shop.url, text).replace('"shop.example"', f'"{host}"')

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_text(self.here(text))

    def crawl(self, text: str, *words: str) -> list[dict[str, object]]:
        """The rows of a run of the block."""
        self.write("spider.py", text)
        out = self.folder / "rows.jsonl"
        code, said = trotline(self.folder, "run", "spider.py", "--allow-private", "--out", "rows.jsonl", *words)
        assert code == 0, said
        return [json.loads(line) for line in out.read_text().splitlines()]

    def execute(self, text: str, **given: object) -> dict[str, object]:
        module = {"__name__": "docs_block", **given}
        exec(compile(self.here(text), "block", "exec"), module)  # noqa: S102 - our own pages
        return module

    def save(self, path: str, name: str) -> None:
        """Save a page of the shop with `trotline try --save`."""
        code, said = trotline(
            self.folder, "try", "shop.py", "product", self.shop.url + path, "--allow-private", "--save", name
        )
        assert code == 0, said

    def yields(self, text: str, *before: str) -> list[object]:
        """What a fragment of a handler yields, on the shop's home page, with other blocks before it."""
        module = self.execute("\n".join(before))
        handler = f"async def handler(page):\n{textwrap.indent(text, '    ')}"
        drafts: list[object] = []

        async def run(page: object) -> None:
            namespace = dict(module)
            exec(self.here(handler), namespace)  # noqa: S102 - our own pages
            made = namespace["handler"]
            assert callable(made)
            async for draft in made(page):
                drafts.append(draft)

        spider = Spider("fragment")

        @spider.page
        async def start(page: Page) -> object:
            await run(page)
            yield {"drafts": len(drafts)}

        harvest = visit(start, "<a href=/>home</a>", url=f"{self.shop.url}/")
        assert harvest.records, harvest
        return drafts


Runner = Callable[[Reader, str], None]
RUNNERS: dict[str, Runner] = {}


def runner(name: str) -> Callable[[Runner], Runner]:
    def keep(run: Runner) -> Runner:
        RUNNERS[name] = run
        return run

    return keep


def executes(reader: Reader, text: str) -> None:
    reader.execute(text)


def crawls(reader: Reader, text: str) -> None:
    rows = reader.crawl(text)
    assert {row["sku"] for row in rows} == reader.skus


def calls_its_functions(reader: Reader, text: str, **given: object) -> None:
    """Call every test function of the block."""
    reader.save("/p/T1", "pages/tea.html")
    functions = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    module = reader.execute(text)
    assert functions
    for name in functions:
        test = module[name]
        assert callable(test)
        result = test(**given)
        if isinstance(result, Awaitable):
            asyncio.run(_awaited(result))


async def _awaited(result: Awaitable[object]) -> None:
    await result


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


def test_every_block_has_a_runner() -> None:
    assert set(BLOCKS) == set(RUNNERS), "add a runner for a new block to RUNNERS"


@runner("docs/how-to/scrapy.md 1")
@runner("docs/how-to/scrapy.md 2")
@runner("docs/how-to/scrapy.md 3")
@runner("docs/how-to/scrapy.md 4")
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


@runner("docs/how-to/from-scrapy-redis.md 2")
def a_spider_with_another_import(reader: Reader, text: str) -> None:
    from scrapy.http import HtmlResponse

    kind = reader.execute(text)["Shop"]
    spider = kind()  # type: ignore[operator]
    assert spider.make_request_from_data(b"https://shop.example/1").url == "https://shop.example/1"
    page = HtmlResponse("https://shop.example/1", body=b"<h1>One</h1>")
    assert list(spider.parse(page)) == [{"title": "One"}]


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_of_the_docs_runs(name: str, shop: DemoShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    for key, value in (("SHOP_USER", USER), ("SHOP_PASSWORD", PASSWORD), ("SHOP_TOKEN", "a token")):
        monkeypatch.setenv(key, value)

    RUNNERS[name](Reader(tmp_path, shop), BLOCKS[name].text)


def test_the_recipe_of_the_docs_runs(shop: DemoShop, tmp_path: Path) -> None:
    reader = Reader(tmp_path, shop)
    [recipe] = blocks(DOCS / "how-to" / "recipes.md", "toml")
    reader.write("teas.toml", recipe.text.replace('pace = "5/s"', 'pace = "200/s"'))
    code, said = trotline(tmp_path, "run", "teas.toml", "--allow-private", "--out", "rows.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert code == 0, said
    assert {row["sku"] for row in rows} == reader.skus
    assert all(isinstance(row["price"], float) and row["title"] and row["name"] for row in rows)
