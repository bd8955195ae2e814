"""Requests of scrapy-redis as tasks of the Scrapy bridge."""

import json
import pickle
from typing import Any

import pytest
from scrapy import FormRequest, Request, Spider
from scrapy_redis.dupefilter import RFPDupeFilter

from trotline.bridges.scrapy.pools import POOL
from trotline.bridges.scrapy.request_codec import ACCOUNT, LOGIN, RequestCodec
from trotline.rules.scrapy_meta import OF_THE_SPIDER
from trotline.rules.scrapy_redis import fingerprint, read, task
from trotline.rules.tagged_json import NotData


class Shop(Spider):
    name = "shop"

    def parse_item(self, response: Any) -> None: ...


SHOP = Shop()
REQUESTS = [
    Request("https://shop.example/?b=1&a=2"),
    Request("https://shop.example:444/x", SHOP.parse_item, priority=3, meta={"a": [1, (2,)]}, cb_kwargs={"b": b"1"}),
    FormRequest("https://shop.example/", formdata={"q": "1"}, headers={"X-One": "é"}, cookies={"a": "b"}),
    Request("https://shop.example/", dont_filter=True, flags=["x"], encoding="latin-1"),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_of_its_queue_comes_out_of_ours_as_it_was(request_: Request) -> None:
    entry = pickle.dumps(request_.to_dict(spider=SHOP), protocol=-1)
    again, _ = RequestCodec(SHOP).decode(task(read(entry), 1, 5.0))
    assert again.to_dict(spider=SHOP) == request_.to_dict(spider=SHOP)


@pytest.mark.parametrize("request_", REQUESTS)
def test_fingerprints_are_those_of_its_filter(request_: Request) -> None:
    theirs = RFPDupeFilter(None, "key").request_fingerprint(request_)
    assert fingerprint(request_.method, request_.url, request_.body).hex() == theirs


def test_requests_that_are_not_filtered_are_all_kept() -> None:
    fields = read(pickle.dumps(REQUESTS[3].to_dict(spider=SHOP)))
    assert task(fields, 1, 0.0).fingerprint != task(fields, 2, 0.0).fingerprint


def test_a_queue_with_a_json_serializer_is_read_too() -> None:
    fields = {"url": "https://shop.example/", "method": "GET", "body": "", "priority": 2, "callback": "parse_item"}
    made = task(read(json.dumps(fields).encode()), 1, 0.0)
    assert (made.url, made.route, made.lane) == ("https://shop.example/", "parse_item", "shop.example")


@pytest.mark.parametrize("entry", [b"", b"{}", b"{", pickle.dumps([1]), pickle.dumps({"url": 5}), pickle.dumps(Shop)])
def test_a_hostile_entry_is_refused(entry: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read(entry)


@pytest.mark.parametrize(
    ("url", "named"),
    [("file:///etc/passwd", "'file'"), ("FTP://shop.example/", "'FTP'"), ("data:,text", "'data'"), ("/etc", "''"),
     ("s3://bucket/key", "'s3'"), ("x" * 500 + "://", "'xxxxxxxxxxxxxxxxxxxx'")],
)  # fmt: skip
def test_only_urls_of_the_web_are_read(url: str, named: str) -> None:
    with pytest.raises(ValueError, match=f"^its URL begins with {named}; http and https are read$"):
        task({"url": url}, 1, 0.0)
    assert task({"url": "HTTPS://shop.example/"}, 1, 0.0).lane == "shop.example"


def test_a_url_counts_for_the_size_of_its_request() -> None:
    with pytest.raises(NotData, match="1,048,576 are allowed"):
        task({"url": "https://shop.example/" + "x" * 2**20}, 1, 0.0)


@pytest.mark.parametrize("keeps_proxy", [False, True])
@pytest.mark.parametrize("key", [POOL, ACCOUNT, LOGIN])
def test_a_queue_chooses_no_way_out(key: str, keeps_proxy: bool) -> None:
    with pytest.raises(ValueError, match=f"meta\\['{key}'\\] is set by the spider only"):
        task({"url": "https://shop.example/", "meta": {key: "buyers", 5: 6}}, 1, 0.0, keeps_proxy=keeps_proxy)
    assert key in OF_THE_SPIDER
    assert task({"url": "https://shop.example/", "meta": {"depth": 3, 5: 6}}, 1, 0.0).url


def test_a_queue_chooses_a_proxy_only_where_its_owner_says_so() -> None:
    """A retry of a project with a proxy middleware has the proxy of its last attempt."""
    fields = {"url": "https://shop.example/", "meta": {"proxy": "http://evil.example:3128"}}
    with pytest.raises(ValueError, match="meta\\['proxy'\\] names a proxy; --keep-proxies moves such requests"):
        task(fields, 1, 0.0)
    assert b"http://evil.example:3128" in task(fields, 1, 0.0, keeps_proxy=True).body
