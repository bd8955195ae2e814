"""Trotline from Python: an application that embeds it, and brings its own sink."""

import asyncio

import pytest
from tests.contract.sink_files import FolderSink

from trotline import App, Page, Spider, TrotlineError
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.config import backends
from trotline.model.job import State
from trotline.testing.proxy import ForwardProxy
from trotline.testing.shop import DemoShop
from trotline.worker.worker import Worker


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
    assert progress.state is State.RUNNING, "what the operator wants; the end is in finished_at"
    assert 30 == len(list((tmp_path / "out").iterdir()))


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


async def test_a_finished_job_is_concluded_by_the_next_start_of_the_same_app(tmp_path):
    async with DemoShop(products=3) as shop:
        spider = products(shop.url)
        frontier, rows = f"sqlite:{tmp_path}/frontier.db", tmp_path / "rows.csv"
        async with App(frontier=frontier, sink=str(rows), allow_private=True) as app:
            first = await app.start(spider)
            await app.work(spider, slots=4)
            second = await app.start(spider)

            # A file of CSV is there when its job was finished, and not before.
            assert 1 + 3 == len(rows.read_text().splitlines())
            assert (await app.progress(first)).finished_at is not None
            await app.work(spider, slots=4)
            pages = [(await app.progress(job)).done for job in (first, second)]

    assert ("embedded-1", "embedded-2") == (first.id, second.id)
    assert pages[0] == pages[1] > 3
    jobs = SqliteJobs(str(tmp_path / "frontier.db"))
    assert [True, True] == [job.announced for job in await jobs.all()]
    await jobs.close()


async def test_a_cancelled_job_stays_as_it_is_and_the_next_start_is_a_new_job(tmp_path):
    async with DemoShop(products=3) as shop:
        spider = products(shop.url)
        frontier = f"sqlite:{tmp_path}/frontier.db"
        async with App(frontier=frontier, sink=f"{tmp_path}/rows.jsonl", allow_private=True) as app:
            first = await app.start(spider)
            opened = await backends.open_frontier(frontier, first)
            await opened.console.steer(State.CANCELLED)
            await opened.close()

            second = await app.start(spider)

            assert first.id != second.id
            assert 0 == (await app.progress(first)).done


async def test_an_unfinished_job_is_continued_by_the_next_start_of_the_same_app(tmp_path):
    async with DemoShop(products=30) as shop:
        spider = products(shop.url)
        frontier, sink = f"sqlite:{tmp_path}/frontier.db", FolderSink(tmp_path / "out")
        async with App(frontier=frontier, sink=sink, allow_private=True) as app:
            first = await app.start(spider)
            await app.work(spider, slots=4, max_pages=2)
            second = await app.start(spider)
            await app.work(spider, slots=4)

    assert first.id == second.id
    assert 30 == len(list((tmp_path / "out").iterdir()))


async def test_a_job_may_be_started_while_the_work_on_the_finished_one_returns(tmp_path, monkeypatch):
    run, finished, started = Worker.run, asyncio.Event(), asyncio.Event()

    async def run_slowly(worker):
        await run(worker)
        finished.set()
        await started.wait()
        # As a worker does until it has ended.
        await worker._parts.frontier.beat(worker.name)

    monkeypatch.setattr(Worker, "run", run_slowly)
    async with DemoShop(products=3) as shop:
        spider = products(shop.url)
        frontier = f"sqlite:{tmp_path}/frontier.db"
        async with App(frontier=frontier, sink=f"{tmp_path}/rows.jsonl", allow_private=True) as app:
            first = await app.start(spider)
            working = asyncio.create_task(app.work(spider, slots=4))
            await finished.wait()

            second = await app.start(spider)

            started.set()
            await working
            assert first.id != second.id


async def test_a_sink_whose_connection_was_reset_once_costs_no_page(tmp_path):
    class Flaky(FolderSink):
        failed = False

        async def write(self, batch):
            if not self.failed:
                self.failed = True
                raise ConnectionResetError("reset")
            await super().write(batch)

    async with DemoShop(products=3) as shop:
        spider = products(shop.url)
        frontier, sink = f"sqlite:{tmp_path}/frontier.db", Flaky(tmp_path / "out")
        async with App(frontier=frontier, sink=sink, allow_private=True) as app:
            job = await app.start(spider)
            await app.work(spider, slots=1)
            progress = await app.progress(job)

    assert sink.failed
    assert 0 == progress.dead
    assert 3 == len(list((tmp_path / "out").iterdir()))


async def test_pages_go_through_the_pools_of_a_file(tmp_path):
    file = tmp_path / "proxies.txt"
    async with DemoShop(products=5) as shop, ForwardProxy(user="anna", password="s3cret-77") as proxy:  # noqa: S106
        file.write_text(proxy.url)
        file.chmod(0o600)
        spider = products(shop.url)
        place = {"frontier": f"sqlite:{tmp_path}/frontier.db", "sink": f"{tmp_path}/rows.jsonl"}
        async with App(**place, allow_private=True, proxies=str(file)) as app:
            job = await app.start(spider)
            await app.work(spider, slots=8)
            progress = await app.progress(job)

    assert (progress.dead, progress.waiting) == (0, 0)
    assert progress.tallies["proxy good: default"] == progress.done > 5
    assert proxy.asked


async def test_a_spider_whose_pages_would_be_fetched_directly_is_refused(tmp_path):
    (tmp_path / "proxies.toml").write_text('[pools.home]\nproxies = ["http://127.0.0.1:9"]\n')
    place = {"frontier": f"sqlite:{tmp_path}/frontier.db", "sink": f"{tmp_path}/rows.jsonl"}
    async with App(**place, proxies=str(tmp_path / "proxies.toml")) as app:
        with pytest.raises(TrotlineError, match="names no proxy pool"):
            await app.start(products("http://127.0.0.1:9"))
    async with App(**place) as app:
        with pytest.raises(TrotlineError, match="there is no proxy pool 'home'"):
            await app.start(Spider("embedded", pool="home"))
