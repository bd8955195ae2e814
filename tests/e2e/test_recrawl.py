"""Conditional requests on recrawls, through the real command against the demo shop."""

import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.running import call

from trotline import App, Page, Spider
from trotline.testing.shop import DemoShop

SHOP = """
from trotline import Page, Spider

shop = Spider("shop", pace="200/s")


@shop.page(seeds=["{url}/catalog"])
def listing(page: Page):
    yield page.follow(".card a", to=product)
    yield page.follow(".pager a")


@shop.page(key="sku", conditional={conditional})
def product(page: Page):
    yield {{"sku": page.css("[itemprop=sku]::text").get(), "price": page.css(".price::text").get()}}
"""
PRODUCTS = 24


@pytest.fixture
async def shop() -> AsyncIterator[DemoShop]:
    async with DemoShop(PRODUCTS) as shop:
        yield shop


def write_spider(folder: Path, shop: DemoShop, *, conditional: bool = True, more: str = "") -> None:
    (folder / "shop.py").write_text(SHOP.format(url=shop.url, conditional=conditional) + more)


async def run(folder: Path, shop: DemoShop, *words: str) -> Counter[int]:
    """One whole job; the statuses of its product pages."""
    shop.reset()
    ended = await call(folder, "run", "shop.py", "--allow-private", *words)
    assert ended.code == 0, ended.out + ended.err
    return Counter(visit.status for visit in shop.visits if visit.path.startswith("/p/"))


def rows(file: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as db:
        return db.execute(
            "SELECT site, kind, key, url, seen_at, changed_at, data FROM records ORDER BY 1, 2, 3"
        ).fetchall()


async def test_the_second_run_asks_only_for_what_has_changed_and_leaves_rows_as_they_are(shop, tmp_path):
    write_spider(tmp_path, shop)
    assert await run(tmp_path, shop) == {200: PRODUCTS}
    before = rows(tmp_path / "shop.db")
    assert len(before) == PRODUCTS

    assert await run(tmp_path, shop) == {304: PRODUCTS}

    assert rows(tmp_path / "shop.db") == before
    assert (tmp_path / ".trotline" / "shop.validators.db").exists()


async def test_what_was_not_changed_is_told(shop, tmp_path):
    write_spider(tmp_path, shop)
    await run(tmp_path, shop)

    ended = await call(tmp_path, "run", "shop.py", "--allow-private", "--json")

    assert (ended.code, ended.summary["ending"]) == (0, "finished")
    told = await call(tmp_path, "status", "shop")
    assert "unchanged: 304" in told.out + str(ended.summary), told.out


async def test_rows_in_a_file_survive_a_recrawl_too(shop, tmp_path):
    write_spider(tmp_path, shop)
    await run(tmp_path, shop, "--out", "rows.jsonl")
    before = sorted((tmp_path / "rows.jsonl").read_text().splitlines())

    assert await run(tmp_path, shop, "--out", "rows.jsonl") == {304: PRODUCTS}

    assert sorted((tmp_path / "rows.jsonl").read_text().splitlines()) == before


async def test_without_the_word_every_page_is_fetched_again(shop, tmp_path):
    write_spider(tmp_path, shop, conditional=False)
    await run(tmp_path, shop)

    assert await run(tmp_path, shop) == {200: PRODUCTS}
    assert not (tmp_path / ".trotline" / "shop.validators.db").exists()


async def test_rows_that_are_gone_come_back(shop, tmp_path):
    write_spider(tmp_path, shop)
    await run(tmp_path, shop)
    for file in tmp_path.glob("shop.db*"):
        file.unlink()

    assert await run(tmp_path, shop) == {200: PRODUCTS}
    assert len(rows(tmp_path / "shop.db")) == PRODUCTS


async def test_another_sink_gets_all_rows(shop, tmp_path):
    write_spider(tmp_path, shop)
    await run(tmp_path, shop)

    assert await run(tmp_path, shop, "--out", "other.db") == {200: PRODUCTS}
    assert len(rows(tmp_path / "other.db")) == PRODUCTS


async def test_a_changed_spider_reads_every_page_again(shop, tmp_path):
    write_spider(tmp_path, shop)
    await run(tmp_path, shop)
    write_spider(tmp_path, shop, more="# a handler that reads one field more\n")

    assert await run(tmp_path, shop) == {200: PRODUCTS}
    assert await run(tmp_path, shop) == {304: PRODUCTS}


async def test_validators_of_a_newer_trotline_stop_a_run_before_its_first_page(shop, tmp_path):
    write_spider(tmp_path, shop)
    await run(tmp_path, shop)
    with closing(sqlite3.connect(tmp_path / ".trotline" / "shop.validators.db")) as db:
        db.execute("PRAGMA user_version = 99")
    shop.reset()

    ended = await call(tmp_path, "run", "shop.py", "--allow-private")

    assert ended.code != 0
    assert "written by a newer Trotline (format 99; this one knows 1)" in ended.err
    assert shop.visits == []


async def test_an_embedded_crawl_asks_only_for_what_has_changed_too(shop, tmp_path):
    spider = Spider("shop", pace="200/s")

    @spider.page(key="sku", seeds=[f"{shop.url}{product}" for product in ("/p/T1", "/p/T2")], conditional=True)
    def product(page: Page):
        yield {"sku": page.css("[itemprop=sku]::text").get()}

    async def crawl() -> Counter[int]:
        shop.reset()
        where = {"frontier": f"sqlite:{tmp_path}/frontier.db", "sink": f"sqlite:{tmp_path}/rows.db"}
        async with App(**where, allow_private=True) as app:
            await app.start(spider)
            await app.work(spider)
        return Counter(visit.status for visit in shop.visits if visit.path.startswith("/p/"))

    assert await crawl() == {200: 2}
    assert await crawl() == {304: 2}
    (tmp_path / "rows.db").unlink()
    assert await crawl() == {200: 2}
