"""Spiders of scrapy-redis after a change of their import."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider
from scrapy.settings import Settings

from trotline.bridges.scrapy import RedisSpider
from trotline.bridges.scrapy.redis_settings import redis_server
from trotline.bridges.scrapy.redis_spider import TRUSTS_INBOX, inbox_of
from trotline.bridges.scrapy.request_codec import RequestCodec
from trotline.bridges.scrapy.start_urls import request_of, tasks_of
from trotline.errors import SettingsError
from trotline.model.task import Task
from trotline.rules.scrapy_meta import is_control

READ = re.compile(
    r"""\bmeta(?:\.get\(|\.pop\(|\.setdefault\(|\[)\s*["']([a-z_]+)["']|["']([a-z_]+)["'] (?:not )?in \w+\.meta\b"""
)


SHOP = b'"url": "https://shop.example/"'


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
    assert request_of(b'{"url": "https://shop.example/", "meta": null}').url == "https://shop.example/"
    assert (plain.url, plain.dont_filter) == ("https://shop.example/", True)
    posted: Any = request_of(b'{"url": "https://shop.example/", "method": "post", "meta": {"a": 1}, "q": "x", "n": 2}')
    assert (posted.method, posted.meta, posted.body) == ("POST", {"a": 1}, b"q=x&n=2")


def test_an_entry_that_makes_no_request_is_parked_and_holds_up_no_other() -> None:
    def task(request: Any) -> Task:
        return Task(url=request.url, route="parse")

    entries = [b"no url", b"https://shop.example/1", b'{"a": 1}', b"{", b"\xff", b"https://shop.example/2"]
    tasks, parked = tasks_of(entries, request_of, task)
    assert [(place, one.url[-1]) for place, one in tasks] == [(1, "1"), (5, "2")]
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


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (b"{" + SHOP + b', "meta": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}", "nested too deeply"),
        (b"{" + SHOP + b', "meta": {"a": ' + b"[" * 150 + b"]" * 150 + b"}}", "nested more than 100 deep"),
        (b"{" + SHOP + b', "method": "GET\\ud800"}', "its method 'GET\\ud800' is not one of HTTP"),
        (b"{" + SHOP + b', "method": "GET /x HTTP/1.1\\r\\nX: 1"}', "is not one of HTTP"),
        (b"{" + SHOP + b', "method": "' + b"A" * 1_000_000 + b'"}', "is not one of HTTP"),
        (b"http://a\0b/", "its host or download slot is"),
        (b'{"url": "http://a\\ud800/"}', "UnicodeEncodeError"),
        (b"{" + SHOP + b', "meta": {"a": ' + b"9" * 5_000 + b"}}", "ValueError"),
    ],
)
def test_no_entry_stops_the_others(entry: bytes, why: str) -> None:
    codec = RequestCodec(Listed())
    entries = [b"https://shop.example/1", entry, b"https://shop.example/2"]

    tasks, parked = tasks_of(entries, request_of, lambda request: codec.encode(request, 1, now=0.0))

    assert [place for place, _ in tasks] == [0, 2]
    assert why in parked[1]


def test_whatever_the_spider_raises_is_the_reason_of_its_entry() -> None:
    def make(data: bytes) -> Any:
        if data == b"bad":
            raise ZeroDivisionError("of the spider")
        return request_of(data)

    tasks, parked = tasks_of(
        [b"bad", b"https://shop.example/"], make, lambda request: Task(url=request.url, route="parse")
    )

    assert parked == {0: "ZeroDivisionError: of the spider"}
    assert len(tasks) == 1


CONTROL = (
    "retry_times", "max_retry_times", "dont_obey_robotstxt", "download_slot", "playwright", "playwright_page_methods",
    "download_timeout", "handle_httpstatus_all", "dont_merge_cookies", "cookiejar", "bindaddress", "depth", "rule",
)  # fmt: skip


@pytest.mark.parametrize("key", CONTROL)
def test_what_controls_scrapy_is_for_trusted_producers(key: str) -> None:
    entry = json.dumps({"url": "https://shop.example/", "meta": {"a": 1, key: 1}}).encode()

    with pytest.raises(ValueError, match=f"meta\\['{key}'\\] controls Scrapy.* trust=yes"):
        request_of(entry)
    trusted: Any = request_of(entry, trusted=True)
    assert trusted.meta == {"a": 1, key: 1}


def test_a_spider_trusts_its_list_if_the_url_says_so() -> None:
    entry = b"{" + SHOP + b', "meta": {"depth": 2}}'
    spider = Listed()
    with pytest.raises(ValueError, match="trust=yes"):
        spider.make_request_from_data(entry)
    setattr(spider, TRUSTS_INBOX, True)
    assert spider.make_request_from_data(entry).meta == {"depth": 2}


def test_a_trusted_producer_chooses_no_way_out_either() -> None:
    with pytest.raises(ValueError, match="set by the spider only"):
        request_of(b"{" + SHOP + b', "meta": {"proxy": "http://10.0.0.1:3128"}}', trusted=True)


@pytest.mark.parametrize("package", ["scrapy", "scrapy_playwright"])
def test_all_keys_that_scrapy_reads_are_known(package: str) -> None:
    """A version with a new one fails here: it belongs into rules/scrapy_meta.py."""
    (folder,) = pytest.importorskip(package).__path__
    texts = [file.read_text() for file in Path(folder).rglob("*.py") if "templates" not in file.parts]
    found = {key for text in texts for pair in READ.findall(text) for key in pair if key}

    assert {"playwright", "playwright_context"} <= found or {"retry_times", "download_timeout"} <= found
    assert [key for key in sorted(found) if key != "proxy" and not is_control(key)] == []


@pytest.mark.parametrize(
    ("given", "server"),
    [
        ({}, "redis://frontier/0"),
        ({"REDIS_HOST": "old", "REDIS_PORT": 6380}, "redis://old:6380/0"),
        ({"REDIS_HOST": "old", "REDIS_DB": 3}, "redis://old:6379/3"),
        ({"REDIS_PORT": "6380"}, "redis://localhost:6380/0"),
        ({"REDIS_HOST": "::1"}, "redis://[::1]:6379/0"),
        ({"REDIS_PARAMS": {"host": "old", "password": "a@b", "db": 2}}, "redis://:a%40b@old:6379/2"),
        ({"REDIS_PARAMS": {"host": "old", "ssl": True, "username": "u"}}, "rediss://u:@old:6379/0"),
        ({"REDIS_PARAMS": {"host": "old"}, "REDIS_HOST": "older"}, "redis://older:6379/0"),
        ({"REDIS_PARAMS": {"socket_timeout": 5}}, "redis://frontier/0"),
        ({"REDIS_URL": "redis://old/1", "REDIS_HOST": "no", "REDIS_PARAMS": {"password": "x"}}, "redis://:x@old/1"),
        ({"REDIS_URL": "redis://:y@old/1", "REDIS_PARAMS": {"password": "x"}}, "redis://:y@old/1"),
        ({"REDIS_URL": "redis://old", "REDIS_DB": 4}, "redis://old/4"),
        ({"REDIS_PARAMS": {"url": "redis://old/1", "redis_cls": "x.Y"}}, "redis://old/1"),
    ],
)
def test_the_server_is_the_one_that_scrapy_redis_would_use(given: dict[str, Any], server: str) -> None:
    """A list on another server than the one that producers write to would look empty for ever."""
    assert redis_server(Settings({"TROTLINE": "redis://frontier/0", **given})) == server


def test_a_way_to_the_server_that_is_not_known_is_refused() -> None:
    with pytest.raises(SettingsError, match="redis_cls") as error:
        place(Listed(), TROTLINE="redis://frontier/0", REDIS_PARAMS={"redis_cls": "x.Y"})
    assert "REDIS_URL" in error.value.hint
    with pytest.raises(SettingsError, match="port of the Redis server is 'x'"):
        place(Listed(), TROTLINE="redis://frontier/0", REDIS_PORT="x")


def test_the_encoding_of_entries_is_that_of_the_settings() -> None:
    spider = Listed()
    spider.settings = Settings({"REDIS_ENCODING": "latin-1"})
    entry = '{"url": "https://shop.example/", "meta": {"name": "Käse"}}'.encode("latin-1")
    assert spider.make_request_from_data(entry).meta == {"name": "Käse"}
    spider.redis_encoding = "utf-8"
    with pytest.raises(UnicodeDecodeError):
        spider.make_request_from_data(entry)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("next_requests", "make_request_from_data"),
        ("schedule_next_requests", "make_request_from_data"),
        ("pop_list_queue", "make_request_from_data"),
        ("pop_priority_queue", "make_request_from_data"),
        ("fetch_data", "make_request_from_data"),
        ("spider_idle", "signals.spider_idle"),
        ("setup_redis", "from_crawler"),
    ],
)
@pytest.mark.parametrize("more", [{}, {"TROTLINE_INBOX": "redis://host/0?inbox=a"}])
def test_a_method_that_would_never_be_called_is_refused(name: str, remedy: str, more: dict[str, str]) -> None:
    """The team's own code was left out without a word: pages were visited with another callback, or none was."""
    base = type("Base", (RedisSpider,), {"name": "own", name: lambda self: None})
    with pytest.raises(SettingsError, match=f"Base.{name}") as error:
        place(type("Own", (base,), {})(), TROTLINE="redis://host/0", **more)
    assert remedy in error.value.hint


def test_the_client_of_the_server_is_there_for_the_spider() -> None:
    spider = Listed()
    spider.settings = Settings({"TROTLINE": "sqlite:x.db", "REDIS_HOST": "old", "REDIS_DB": 3})
    reached = spider.server.connection_pool.connection_kwargs
    assert (reached["host"], reached["db"]) == ("old", 3)
    assert spider.server is spider.server
