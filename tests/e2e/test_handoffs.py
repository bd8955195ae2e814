"""Tasks for another spider: a handler of one makes them with a route of another, and its job visits them."""

from pathlib import Path

import pytest

from trotline import App, Page, Spider
from trotline.config import backends
from trotline.config.other_jobs import OtherJobs
from trotline.errors import FrontierUnreachable
from trotline.model.job import Job
from trotline.testing.shop import DemoShop
from trotline.worker.commit import Committer


class Killed(BaseException):
    """The worker's process is gone."""


def two_spiders(shop: str) -> tuple[Spider, Spider]:
    """`finds` reads the catalog, `reads` its products."""
    finds = Spider("finds", pace="500/s", concurrency=50, robots=False)
    reads = Spider("reads", pace="500/s", concurrency=50, robots=False, hosts=["127.0.0.1"])

    @finds.page(seeds=[f"{shop}/catalog"])
    def listing(page: Page):
        for link in page.links(".card a"):
            yield product.task(link)
        yield product.task("https://elsewhere.example/p/1")
        yield page.follow(".pager a")

    @reads.page(key="sku")
    def product(page: Page):
        yield {"sku": page.css("[itemprop=sku]::text").get()}

    @reads.page(seeds=[f"{shop}/"])
    def front(page: Page):
        yield None

    return finds, reads


@pytest.fixture(params=["files", "servers", "postgresql"])
def frontier(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "files":
        return f"sqlite:{tmp_path}/frontier.db"
    found: str = request.getfixturevalue("database" if request.param == "postgresql" else "both").places()[0]
    return found


async def dead_of(frontier: str, job: Job) -> list[str]:
    opened = await backends.open_frontier(frontier, job)
    try:
        return [grave.why for grave in await opened.console.graves()]
    finally:
        await opened.close()


async def test_tasks_for_another_spider_are_visited_by_its_job(frontier: str, shop: DemoShop, tmp_path: Path) -> None:
    finds, reads = two_spiders(shop.url)
    async with App(frontier=frontier, sink=f"{tmp_path}/rows.jsonl", allow_private=True) as app:
        first, second = await app.start(finds), await app.start(reads)
        await app.work(finds, slots=8)
        handed = await app.progress(first)
        await app.work(reads, slots=8)
        visited = await app.progress(second)

    pages = handed.done
    assert handed.dead == 0
    rows = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert visited.done == len(rows) + 1, "each product once, and the front page"
    assert handed.tallies["tasks for spider reads"] >= len(rows) > 0
    assert visited.tallies["records"] == visited.done - 1
    assert handed.tallies["links refused: for spider reads: host"] == pages, "its own scope holds for them"


async def test_without_a_job_of_the_other_spider_the_page_is_kept(
    frontier: str, shop: DemoShop, tmp_path: Path
) -> None:
    finds, reads = two_spiders(shop.url)
    async with App(frontier=frontier, sink=f"{tmp_path}/rows.jsonl", allow_private=True) as app:
        first = await app.start(finds)
        await app.work(finds, slots=8)
        kept = await app.progress(first)
        assert set(await dead_of(frontier, first)) == {"no running job of spider reads"}
        assert "tasks for spider reads" not in kept.tallies

        second = await app.start(reads)
        opened = await backends.open_frontier(frontier, first)
        assert await opened.console.revive(why="no running job") == kept.dead
        await opened.close()
        await app.work(finds, slots=8)
        await app.work(reads, slots=8)
        visited = await app.progress(second)
        assert (await app.progress(first)).dead == 0

    assert visited.tallies["records"] == visited.done - 1 > 0


async def test_a_crash_between_hand_over_and_settle_loses_and_doubles_nothing(
    shop: DemoShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finds, reads = two_spiders(shop.url)
    frontier = f"sqlite:{tmp_path}/frontier.db"

    async def die(self: Committer, batch: list[object], **named: object) -> None:
        raise Killed

    async with App(frontier=frontier, sink=f"{tmp_path}/rows.jsonl", allow_private=True) as app:
        first, second = await app.start(finds), await app.start(reads)
        with monkeypatch.context() as broken:
            broken.setattr(Committer, "_settle", die)
            with pytest.raises(Killed):
                await app.work(finds, slots=1)
        handed = (await app.progress(second)).waiting
        assert handed > 1, "they were admitted before the settle"
        opened = await backends.open_frontier(frontier, first)
        for worker in await opened.console.workers():
            await opened.frontier.leave(worker.name)
        await opened.close()
        await app.work(finds, slots=8)
        await app.work(reads, slots=8)
        visited = await app.progress(second)

    assert visited.tallies["records"] == visited.done - 1
    rows = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert len(rows) == len(set(rows)) == visited.done - 1


async def test_an_unreachable_frontier_of_the_other_spider_is_waited_for(
    shop: DemoShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finds, reads = two_spiders(shop.url)
    put, failures = OtherJobs.put, [1, 1]

    async def flaky(self: OtherJobs, spider: str, tasks: object) -> object:
        if failures:
            failures.pop()
            raise FrontierUnreachable("no answer")
        return await put(self, spider, tasks)  # type: ignore[arg-type]

    monkeypatch.setattr(OtherJobs, "put", flaky)
    async with App(frontier=f"sqlite:{tmp_path}/f.db", sink=f"{tmp_path}/rows.jsonl", allow_private=True) as app:
        first, _ = await app.start(finds), await app.start(reads)
        await app.work(finds, slots=8)
        assert not failures
        assert (await app.progress(first)).dead == 0


async def test_an_earlier_crawl_of_the_other_spider_takes_no_tasks(tmp_path: Path, shop: DemoShop) -> None:
    finds, reads = two_spiders(shop.url)
    frontier = f"sqlite:{tmp_path}/f.db"
    async with App(frontier=frontier, sink=f"{tmp_path}/rows.jsonl", allow_private=True) as app:
        await app.start(reads)
        await app.work(reads, slots=4)
        first = await app.start(finds)
        await app.work(finds, slots=4)

    assert set(await dead_of(frontier, first)) == {"no running job of spider reads"}
