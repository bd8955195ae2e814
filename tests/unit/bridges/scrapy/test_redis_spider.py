"""Spiders of scrapy-redis after a change of their import."""

from typing import Any

import pytest
from scrapy import Spider
from scrapy.settings import Settings

from trotline.bridges.scrapy import RedisSpider
from trotline.bridges.scrapy.redis_spider import inbox_of
from trotline.bridges.scrapy.start_urls import request_of, tasks_of
from trotline.errors import SettingsError
from trotline.model.task import Task


class Listed(RedisSpider):
    name = "listed"


def place(spider: Spider, **given: Any) -> str:
    return inbox_of(spider, Settings(given))


def test_the_list_is_that_of_scrapy_redis() -> None:
    assert (
        place(Listed(), TROTLINE="redis://host:1/2?shards=4") == "redis://host:1/2?inbox=listed%3Astart_urls&end=left"
    )
    assert place(Listed(), TROTLINE="sqlite:x.db", REDIS_URL="redis://host/0").startswith("redis://host/0?inbox=")
    assert place(Listed(), TROTLINE="redis://host/0", MAX_IDLE_TIME_BEFORE_CLOSE=5).endswith("&idle=5s")
    own = Listed()
    own.redis_key = "%(name)s-urls"
    assert "inbox=listed-urls&" in place(own, TROTLINE="redis://host/0")


def test_other_spiders_have_an_inbox_only_if_a_setting_names_it() -> None:
    assert place(Spider("x"), TROTLINE="redis://host/0") == ""
    assert place(Spider("x"), TROTLINE_INBOX="redis://host/0?inbox=a") == "redis://host/0?inbox=a"


@pytest.mark.parametrize(
    "given",
    [
        {"TROTLINE": "sqlite:x.db"},
        {"TROTLINE": "redis://host/0", "REDIS_START_URLS_AS_SET": True},
        {"TROTLINE": "redis://host/0", "REDIS_START_URLS_AS_ZSET": True},
    ],
)
def test_what_cannot_be_read_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as error:
        place(Listed(), **given)
    assert error.value.hint


async def test_without_the_add_on_it_says_so() -> None:
    with pytest.raises(SettingsError, match="which is not in this project's settings"):
        [one async for one in Listed().start()]


def test_entries_become_requests_as_in_scrapy_redis() -> None:
    plain: Any = request_of(b" https://shop.example/ \n")
    assert (plain.url, plain.dont_filter) == ("https://shop.example/", True)
    posted: Any = request_of(b'{"url": "https://shop.example/", "method": "post", "meta": {"a": 1}, "q": "x", "n": 2}')
    assert (posted.method, posted.meta, posted.body) == ("POST", {"a": 1}, b"q=x&n=2")


def test_an_entry_that_makes_no_request_is_parked_and_holds_up_no_other() -> None:
    def task(request: Any) -> Task:
        return Task(url=request.url, route="parse")

    entries = [b"no url", b"https://shop.example/1", b'{"a": 1}', b"{", b"\xff", b"https://shop.example/2"]
    tasks, parked = tasks_of(entries, request_of, task)
    assert [one.url[-1] for one in tasks] == ["1", "2"]
    assert sorted(parked) == [0, 2, 3, 4]
    assert tasks_of([b"x"], lambda data: None, task)[1].keys() == {0}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (b"file:///etc/passwd", "begins with http"),
        (b"s3://bucket/secret", "begins with http"),
        (b'{"url": "FILE:///etc/passwd"}', "begins with http"),
        (b'{"url": "https://shop.example/", "meta": {"trotline_pool": "@buyers"}}', "set by the spider only"),
        (b'{"url": "https://shop.example/", "meta": {"proxy": "http://10.0.0.1:3128"}}', "set by the spider only"),
    ],
)
def test_an_entry_reads_no_file_and_chooses_no_way_out(entry: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        request_of(entry)
