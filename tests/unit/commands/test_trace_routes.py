"""In which routes a URL is looked for where the spider's file is not known."""

from types import SimpleNamespace
from typing import Any

from trotline import Page, Spider
from trotline.commands.trace import routes_seen
from trotline.model.job import Job, LaneRules
from trotline.model.queue_job import SCRAPY, SOURCE

shop = Spider("shop")


@shop.page
def listing(page: Page) -> None: ...


@shop.page(name="item")
def product(page: Page) -> None: ...


def console(*of_tasks: str) -> Any:
    async def in_flight(most: int) -> list[Any]:
        return [SimpleNamespace(route=route) for route in of_tasks]

    async def graves(limit: int) -> list[Any]:
        return []

    return SimpleNamespace(in_flight=in_flight, graves=graves)


def job(rules: LaneRules) -> Job:
    return Job(id="shop-1", spider="shop", started_at=0.0, rules=rules)


async def test_a_job_names_the_routes_of_its_spider() -> None:
    """Also those of which no task was leased yet: what waits is found."""
    assert await routes_seen(job(shop.rules), console()) == ("listing", "item")


async def test_a_job_of_an_older_version_names_those_of_its_tasks() -> None:
    assert await routes_seen(job(LaneRules()), console("item"), ["named"]) == ("named", "item")


async def test_a_queue_has_its_usual_route_and_a_scrapy_job_none() -> None:
    assert await routes_seen(job(LaneRules(source=SOURCE)), console("parse")) == ("task", "parse")
    assert await routes_seen(job(LaneRules(source=SCRAPY)), console("parse")) == ()
