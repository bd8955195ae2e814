"""Pages that only lead to others are counted until records are met: a job that reads them first is not empty."""

from msgspec.structs import replace

from tests.unit.worker.fake_ports import HTML, DiaryFrontier, DiarySink, SlowFetcher, lease, one_page_spider, tools
from trotline.model.answer import Answer
from trotline.model.task import Task
from trotline.rules.job_figures import LISTING
from trotline.spider.page import Page
from trotline.spider.spider import Spider
from trotline.testing.virtual_time import run_virtual
from trotline.worker.visit import Visitor


def with_listing(spider: Spider) -> Spider:
    @spider.page
    def listing(page: Page):  # type: ignore[no-untyped-def]
        yield page.follow("a")

    return spider


def counted(spider: Spider, *routes: str) -> list[int]:
    """Of visits one after another: how many each counts as listings."""
    page = SlowFetcher(0.1, lambda task: Answer(url=task.url, status=200, headers=HTML, body=b"<h1>tea</h1>"))
    visitor = Visitor(spider, tools(DiaryFrontier([]), DiarySink([]), page, spider=spider))

    async def visits() -> list[int]:
        found = []
        for token, route in enumerate(routes, 1):
            one = lease(token)
            task = Task(url=one.task.url, route=route, lane="h.test", fingerprint=token, site="s")
            done = await visitor.visit(replace(one, task=task))
            found.append(done.settlement().tallies.get(LISTING, 0))
        return found

    return run_virtual(visits())


def test_listings_count_until_the_first_record():
    assert counted(with_listing(one_page_spider()), "listing", "listing", "page", "listing") == [1, 1, 0, 0]


def test_where_no_route_declares_records_every_page_may_have_some():
    assert counted(with_listing(Spider("s", robots=False, hosts=["h.test"])), "listing", "listing") == [0, 0]


def test_a_route_that_declares_records_is_no_listing():
    spider = with_listing(one_page_spider())
    assert [route.is_listing for route in spider.routes.values()] == [False, True]
