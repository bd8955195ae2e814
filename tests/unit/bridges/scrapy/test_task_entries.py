"""Entries in the JSON form of tasks, for spiders that have no form of their own."""

import base64
import json
from typing import Any

import pytest
from scrapy import Request, Spider

from trotline.bridges.scrapy.request_codec import RequestCodec
from trotline.bridges.scrapy.task_entries import TaskEntries
from trotline.model.task import Task
from trotline.model.task_json import to_seed

URL = "https://shop.example/p/17"


class Shop(Spider):
    name = "shop"

    def parse_product(self, response: Any) -> None: ...


SHOP = Shop()


def made(*, trusted: bool = False, **fields: Any) -> Request:
    return TaskEntries(SHOP, trusted=trusted).request(json.dumps({"url": URL, **fields}).encode())


def test_a_task_is_a_request_and_not_form_data() -> None:
    request = made(v=1, task_id="17", priority=20, depth=2, meta={"shelf": 3}, created_at="2026-03-01T12:00:00Z")
    assert (request.url, request.method, request.body) == (URL, "GET", b"")
    assert (request.meta, request.callback, request.dont_filter) == ({"shelf": 3, "depth": 2}, None, True)
    task = RequestCodec(SHOP).encode(request, 1, now=0.0)
    assert (task.priority, task.depth) == (20, 2)


def test_a_plain_url_is_an_entry_too() -> None:
    entries = TaskEntries(SHOP, trusted=False)
    assert [entries.request(text).url for text in (f" {URL}\n".encode(), f"\ufeff{URL}".encode())] == [URL, URL]


def test_priorities_have_the_order_of_the_form() -> None:
    found = [made(priority=priority).priority for priority in (-7, 0, 20, 50, 80, 1000)]
    assert found == sorted(found, reverse=True)
    assert made(priority=50).priority == made().priority == 0


def test_a_trusted_producer_names_the_callback_and_what_is_sent() -> None:
    body = base64.b64encode(b'{"q": 1}').decode()
    request = made(trusted=True, job_type="parse_product", method="POST", headers={"X-One": "1"}, body=body)
    assert (request.callback, request.method, request.body) == (SHOP.parse_product, "POST", b'{"q": 1}')
    assert request.headers.getlist("X-One") == [b"1"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"q": "x"}, "unknown field 'q': known are body, .*make_request_from_data"),
        ({"prioritty": 20}, "unknown field 'prioritty'"),
        ({"max_retries": 1}, "the field 'max_retries' means nothing to a spider of Scrapy"),
        ({"proxy_pool": "dc"}, "the field 'proxy_pool' means nothing"),
        ({"job_type": "parse_product"}, "the field 'job_type' is for trusted producers only.*trust=yes"),
        ({"headers": {"Cookie": "a=b"}}, "the field 'headers' is for trusted producers only"),
        ({"v": 2}, "v is '2'"),
        ({"url": "file:///etc/passwd"}, "http"),
        ({"url": 5}, "url"),
        ({"meta": [1]}, "meta"),
        ({"meta": {"proxy": "http://192.0.2.1:3128"}}, "set by the spider only"),
        ({"meta": {"retry_times": 1}}, "controls Scrapy"),
    ],
)
def test_what_an_entry_may_not_say_is_named(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        made(**fields)


def test_a_callback_that_the_spider_does_not_have_is_named() -> None:
    with pytest.raises(ValueError, match="the spider 'shop' has no method 'product'"):
        made(trusted=True, job_type="product")


def test_of_an_exported_task_the_first_field_that_means_nothing_is_named() -> None:
    exported = to_seed(Task(url=URL, route="parse_product"))
    with pytest.raises(ValueError, match="the field 'max_retries' means nothing"):
        TaskEntries(SHOP, trusted=True).request(json.dumps(exported).encode())
