"""`trotline.run(spider)` and `app.records(...)`: crawls that give their records to the program."""

import asyncio
from pathlib import Path

import pytest
from tests.e2e.test_app import products

import trotline
from trotline import App, TrotlineError
from trotline.commands.run_report import Ending
from trotline.testing.shop import DemoShop


def test_a_script_gets_a_report_with_the_records() -> None:
    with DemoShop.in_thread(products=12) as shop:
        report = trotline.run(products(shop.url), allow_private=True)
        skus = {product.sku for product in shop.truth}

    assert report.ended is Ending.FINISHED
    assert {row["sku"] for row in report.data} == skus
    assert report.progress.dead == 0
    assert "finished, " in repr(report)


def test_with_a_sink_the_records_are_there_and_in_the_report_where_asked(tmp_path: Path) -> None:
    with DemoShop.in_thread(products=5) as shop:
        stored = trotline.run(products(shop.url), sink=f"{tmp_path}/rows.jsonl", allow_private=True)
        both = trotline.run(
            products(shop.url), sink=f"{tmp_path}/both.jsonl", records=True, allow_private=True, max_pages=3
        )

    assert stored.records == []
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 5
    assert both.ended is Ending.STOPPED_AT_LIMIT
    assert len((tmp_path / "both.jsonl").read_text().splitlines()) == len(both.records)
    with pytest.raises(ValueError, match="would be lost"):
        trotline.run(products(shop.url), records=False)


async def test_it_works_where_a_loop_is_running_as_in_a_notebook() -> None:
    async with DemoShop(products=3) as shop:
        report = await asyncio.to_thread(trotline.run, products(shop.url), allow_private=True)
    assert len(report.records) == 3
    with DemoShop.in_thread(products=3) as shop:
        assert len(trotline.run(products(shop.url), allow_private=True).records) == 3


async def test_records_come_while_the_job_runs_and_leaving_stops_it(tmp_path: Path) -> None:
    async with DemoShop(products=60) as shop:
        spider, frontier = products(shop.url), f"sqlite:{tmp_path}/crawl.db"
        first, rest = [], []
        async with App(frontier=frontier, sink=f"{tmp_path}/rows.jsonl", allow_private=True) as app:
            async for record in app.records(spider, slots=2):
                first.append(record.key)
                if len(first) == 5:
                    break
        async with App(frontier=frontier, sink=f"{tmp_path}/rows.jsonl", allow_private=True) as app:
            rest = [record.key async for record in app.records(spider)]

    assert len(first) == 5
    assert 0 < len(rest) < 60
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 60


async def test_work_without_a_sink_is_refused() -> None:
    async with App() as app:
        with pytest.raises(TrotlineError, match=r"no sink.*lost"):
            await app.work(products("http://127.0.0.1:9"))
