"""Trotline from Python: an application that embeds it, and brings its own sink."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from trotline import App, Page, Record, Spider, TrotlineError
from trotline.testing.shop import DemoShop


class FolderSink:
    """One JSON file per record; writing a record again replaces its file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def write(self, batch: Sequence[Record]) -> None:
        for record in batch:
            path = self.folder / record.kind / f"{record.key}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(record.data))

    async def close(self) -> None:
        pass


def products(shop: str) -> Spider:
    spider = Spider("embedded", pace="200/s", concurrency=50)

    @spider.page(seeds=[f"{shop}/catalog"])
    def listing(page: Page):
        yield page.follow(".card a", to=product)
        yield page.follow(".pager a")

    @spider.page(key="sku")
    def product(page: Page):
        yield {"sku": page.css("[itemprop=sku]::text").get()}

    return spider


async def test_an_application_starts_a_job_works_on_it_and_gets_its_rows(tmp_path):
    async with DemoShop(products=30) as shop:
        spider = products(shop.url)
        frontier, sink = f"sqlite:{tmp_path}/frontier.db", FolderSink(tmp_path / "out")
        async with App(frontier=frontier, sink=sink, allow_private=True) as app:
            job = await app.start(spider)
            await app.work(spider, slots=8)
            progress = await app.progress(job)

    assert progress.finished_at is not None
    assert 30 == len(list((tmp_path / "out" / "product").iterdir()))


async def test_work_without_a_job_says_what_to_do(tmp_path):
    spider = products("http://127.0.0.1:9")
    async with App(frontier=f"sqlite:{tmp_path}/f.db", sink=f"{tmp_path}/rows.jsonl") as app:
        with pytest.raises(TrotlineError, match="Start one first"):
            await app.work(spider)


def test_a_frontier_that_is_none_is_refused_at_once():
    with pytest.raises(TrotlineError, match="sqlite:PATH"):
        App(frontier="mongodb://db", sink="rows.jsonl")


async def test_a_finished_job_is_not_taken_up_again_and_a_new_start_crawls_anew(tmp_path):
    async with DemoShop(products=3) as shop:
        spider = products(shop.url)
        place = {"frontier": f"sqlite:{tmp_path}/frontier.db", "sink": f"{tmp_path}/rows.jsonl"}
        for _ in range(2):
            async with App(**place, allow_private=True) as app:
                job = await app.start(spider)
                await app.work(spider, slots=4)

    assert "embedded-2" == job.id
    assert 3 == len((tmp_path / "rows.jsonl").read_text().splitlines())
