"""An object that several requests of a page carry is named once: each of them has a copy of it."""

from dataclasses import dataclass, field
from typing import Any

import pytest
import scrapy
from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from trotline.bridges.scrapy.request_tasks import STARTED
from trotline.bridges.scrapy.shared_objects import MOST, SharedObjects
from trotline.bridges.scrapy.visits import Visit
from trotline.model.lease import Lease
from trotline.model.task import Task


class Product(scrapy.Item):
    name = scrapy.Field()


@dataclass
class Offer:
    prices: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Shelf:
    name: str = "a"


def page(route: str = "parse") -> Visit:
    lease = Lease(Task(url="https://shop.example/", route=route), 1, 0.0, 0.0, 0.0, 0.0)
    return Visit(lease, Request("https://shop.example/"))


def to(number: int, **more: Any) -> Request:
    return Request(f"https://shop.example/{number}", **more)


@pytest.mark.parametrize("value", [{}, [], set(), Product(), Offer()], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("where", ["meta", "cb_kwargs"])
def test_an_item_in_two_requests_of_one_page_is_named(where: str, value: Any, caplog: pytest.LogCaptureFixture) -> None:
    shared, visit = SharedObjects(), page()
    for number in (1, 2):
        shared.look(to(number, **{where: {"item": value, "page": "text"}}), visit)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("scrapy.shared_object parse yields several requests")
    assert f"the same object in {where}['item']" in said
    assert "https://shop.example/2" in said
    assert "from page to page" in said


def test_it_is_said_once_for_each_callback(caplog: pytest.LogCaptureFixture) -> None:
    shared = SharedObjects()
    for route in ("parse", "parse", "parse_shelf"):
        visit, item = page(route), dict[str, str]()
        for number in range(3):
            shared.look(to(number, meta={"item": item}), visit)
    assert len(caplog.records) == 2


def test_requests_of_start_are_looked_at_too(caplog: pytest.LogCaptureFixture) -> None:
    shared, item = SharedObjects(), Product()
    for number in (1, 2):
        shared.look(to(number, cb_kwargs={"item": item}), STARTED)
    assert "scrapy.shared_object start yields" in caplog.text


def test_an_item_that_travels_from_page_to_page_is_fine(caplog: pytest.LogCaptureFixture) -> None:
    shared, visit = SharedObjects(), page()
    visit.request.meta["item"] = Product()
    shared.look(to(1, meta=visit.request.meta), visit)
    for number in range(3):
        # Freed before the next is made: its id may be the same.
        shared.look(to(number, meta={"item": {}}), visit)
    assert not caplog.records


def test_values_that_cannot_change_and_those_of_scrapy_are_fine(caplog: pytest.LogCaptureFixture) -> None:
    shared, visit = SharedObjects(), page()
    codes, jar, urls = [404], {"a": 1}, ["https://shop.example/moved"]
    meta = {"handle_httpstatus_list": codes, "cookiejar": jar, "redirect_urls": urls, "playwright_page_methods": []}
    plain = {"name": "x", "number": 10**20, "pair": (1, 2), "shelf": Shelf(), "some": frozenset((1,)), "nothing": None}
    for number in (1, 2):
        shared.look(to(number, meta={**meta, **plain}, cb_kwargs=plain), visit)
    assert not caplog.records


def test_one_request_may_carry_an_object_twice(caplog: pytest.LogCaptureFixture) -> None:
    item = Product()
    SharedObjects().look(to(1, meta={"item": item, "again": item}, cb_kwargs={"item": item}), page())
    assert not caplog.records


def test_the_links_of_a_rule_share_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Shop(CrawlSpider):
        name = "shop"
        rules = (Rule(LinkExtractor(), cb_kwargs={"seen": {}}),)

    body = b"".join(b'<a href="/%d">x</a>' % number for number in range(5))
    requests = list(Shop()._requests_to_follow(HtmlResponse("https://shop.example/", body=body)))
    shared, visit = SharedObjects(), page()
    for request in requests:
        shared.look(request, visit)
    assert len(requests) == 5
    assert not caplog.records


def test_a_page_with_many_requests_holds_some_of_their_objects(caplog: pytest.LogCaptureFixture) -> None:
    shared, visit = SharedObjects(), page()
    for number in range(MOST + 100):
        shared.look(to(number, meta={"item": [number]}), visit)
    assert len(visit.given) == MOST
    assert not caplog.records
