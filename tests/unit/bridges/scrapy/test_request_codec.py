"""Requests as tasks, and back."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import FormRequest, Item, Request, Spider
from scrapy.http import JsonRequest
from scrapy.item import Field
from scrapy.spiders import CrawlSpider, SitemapSpider

from tests.unit.rules.test_tagged_json import VALUES
from trotline.bridges.scrapy.methods import UnknownMethod
from trotline.bridges.scrapy.request_codec import SLOT, RequestCodec
from trotline.model.task import NORMAL, Task
from trotline.rules.tagged_json import BadData, NotData

STORED = Task(url="https://shop.example/", route="parse")


class Product(Item):
    name = Field()
    seen = Field()


@dataclasses.dataclass
class Shelf:
    number: int
    books: list[str]

    def __post_init__(self) -> None:
        self.books.append("made")


class Shop(Spider):
    name = "shop"

    def parse_item(self, response: Any) -> None: ...

    def failed(self, failure: Any) -> None: ...


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def codec(shop: Shop) -> RequestCodec:
    return RequestCodec(shop, frozenset({"slow.example"}))


def there_and_back(codec: RequestCodec, request: Request) -> Request:
    return codec.decode(codec.encode(request, 1, now=1.0))[0]


@given(
    meta=st.dictionaries(st.text(max_size=5), VALUES, max_size=3),
    cb_kwargs=st.dictionaries(st.text(max_size=5), VALUES, max_size=3),
    body=st.binary(max_size=20),
    priority=st.integers(-(10**9), 10**9),
    dont_filter=st.booleans(),
    header=st.binary(max_size=9).filter(lambda value: b"\n" not in value and b"\r" not in value),
)
def test_a_request_comes_back_as_it_was(
    meta: dict[str, Any], cb_kwargs: dict[str, Any], body: bytes, priority: int, dont_filter: bool, header: bytes
) -> None:
    shop = Shop()
    request = Request(
        "https://shop.example/a?b=1",
        callback=shop.parse_item,
        errback=shop.failed,
        method="PUT",
        headers={"X-One": [header, b"two"]},
        body=body,
        cookies=[{"name": "a", "value": "b"}],
        meta=meta,
        cb_kwargs=cb_kwargs,
        priority=priority,
        dont_filter=dont_filter,
        flags=["one"],
        encoding="latin-1",
    )
    assert there_and_back(RequestCodec(shop), request).to_dict(spider=shop) == request.to_dict(spider=shop)


def test_the_classes_of_requests_come_back(codec: RequestCodec, shop: Shop) -> None:
    for request in (
        JsonRequest("https://shop.example/", data={"a": [1]}),
        FormRequest("https://shop.example/", formdata={"a": "1"}),
    ):
        again = there_and_back(codec, request)
        assert type(again) is type(request)
        assert again.to_dict(spider=shop) == request.to_dict(spider=shop)


def test_items_come_back_and_no_code_of_theirs_is_run(codec: RequestCodec) -> None:
    shelf = Shelf(1, ["a"])
    meta = {"item": Product(name="x", seen=[1]), "shelf": shelf}
    again = there_and_back(codec, Request("https://shop.example/", meta=meta))
    assert again.meta == meta
    assert again.meta["shelf"].books == ["a", "made"]


def test_page_methods_come_back(codec: RequestCodec) -> None:
    page = pytest.importorskip("scrapy_playwright.page")
    methods = [page.PageMethod("click", "a", timeout=5)]
    again = there_and_back(codec, Request("https://shop.example/", meta={"methods": methods}))
    (method,) = again.meta["methods"]
    assert (method.method, method.args, method.kwargs) == ("click", ("a",), {"timeout": 5})


def test_what_operators_see_is_in_the_fields_of_the_task(codec: RequestCodec, shop: Shop) -> None:
    request = Request("https://shop.example:444/a", shop.parse_item, meta={"depth": 3}, cookies={"secret": "x"})
    task = codec.encode(request, 7, now=5.0, parent="https://shop.example/")
    assert (task.url, task.route, task.lane, task.depth, task.fingerprint, task.created_at, task.parent) == (
        "https://shop.example:444/a",
        "parse_item",
        "shop.example:444",
        3,
        7,
        5.0,
        "https://shop.example/",
    )
    assert not task.headers
    assert not task.meta


def test_sooner_requests_go_first_and_start_requests_last_of_their_priority(codec: RequestCodec) -> None:
    def priority(given: int, **meta: Any) -> int:
        return codec.encode(Request("https://shop.example/", priority=given, meta=meta), 1, now=0.0).priority

    assert priority(1) < priority(0) < priority(-1)
    assert priority(1) < priority(1, is_start_request=True) < priority(0)
    assert priority(0) == NORMAL
    assert -1_000_000 <= priority(10**12) < priority(-(10**12)) <= 1_000_000


@pytest.mark.parametrize(
    ("url", "slot", "parent", "lane"),
    [
        ("https://shop.example/", None, "", "shop.example"),
        ("https://SHOP.example:443/", None, "", "shop.example"),
        ("http://shop.example:8080/", None, "", "shop.example:8080"),
        ("http://slow.example:8080/", None, "", "slow.example"),
        ("https://shop.example/", "own", "", "own"),
        ("https://shop.example/", SLOT, "", "shop.example"),
        ("https://shop.example/", "other.example", "https://other.example/page", "shop.example"),
        ("data:,text", None, "", "data:"),
    ],
)
def test_the_lane_is_the_host_or_the_slot_that_the_project_names(
    codec: RequestCodec, url: str, slot: str | None, parent: str, lane: str
) -> None:
    request = Request(url, meta={} if slot is None else {"download_slot": slot})
    assert codec.lane(request, parent) == lane


def test_a_retry_leaves_the_objects_of_its_process_behind(codec: RequestCodec) -> None:
    request = Request("https://shop.example/", meta={"playwright_page": object(), "download_slot": SLOT, "kept": 1})
    again, _ = codec.decode(codec.encode(request, 1, now=0.0, before=STORED))
    assert again.meta == {"kept": 1}
    with pytest.raises(NotData, match="playwright_page"):
        codec.encode(request, 1, now=0.0)


def test_the_request_is_not_changed_when_it_is_stored(codec: RequestCodec) -> None:
    meta = {"download_slot": SLOT, "list": [1]}
    request = Request("https://shop.example/", meta=meta)
    codec.encode(request, 1, now=0.0, before=STORED)
    assert request.meta == meta


def test_a_retry_goes_on_without_the_objects_of_middlewares(
    codec: RequestCodec, caplog: pytest.LogCaptureFixture
) -> None:
    before = codec.encode(Request("https://shop.example/", meta={"asked": {"page": 1}, "shelf": 3}), 1, now=0.0)
    for _ in range(2):
        request, _jar = codec.decode(before)
        request.meta["session"] = object()
        request.meta["asked"]["page"] = object()
        request.meta["way"] = "proxy-7"
        stored = codec.encode(request.copy(), 1, now=0.0, before=before)
        assert codec.decode(stored)[0].meta == {"asked": {"page": 1}, "shelf": 3, "way": "proxy-7"}
    assert caplog.text.count("meta['session'] is an object of the type object") == 1
    assert caplog.text.count("meta['asked']['page'] is an object of the type object") == 1


def test_what_the_spider_itself_yields_is_refused_with_its_name(codec: RequestCodec) -> None:
    with pytest.raises(NotData, match="meta\\['session'\\] is an object"):
        codec.encode(Request("https://shop.example/", meta={"session": object()}), 1, now=0.0)


def test_other_objects_of_a_retry_are_refused(codec: RequestCodec) -> None:
    """Its callback would be called with other arguments than before."""
    request = Request("https://shop.example/", cb_kwargs={"page": object()}, meta={"session": object()})
    with pytest.raises(NotData, match="cb_kwargs\\['page'\\] is an object"):
        codec.encode(request, 1, now=0.0, before=STORED)
    with pytest.raises(NotData, match="cb_kwargs\\['page'\\] is an object"):
        codec.encode(request.replace(meta={}), 1, now=0.0, before=STORED)


@pytest.mark.parametrize("callback", [lambda response: None, print, Shop().parse_item, Spider("x").parse])
def test_a_callback_that_is_no_method_of_the_spider_is_named(codec: RequestCodec, callback: Any) -> None:
    with pytest.raises(NotData, match="is not a method of the spider 'shop'"):
        codec.encode(Request("https://shop.example/", callback), 1, now=0.0)


def test_properties_of_a_spider_are_not_called() -> None:
    class Trapped(Shop):
        @property
        def trap(self) -> Any:
            raise RuntimeError("a property is not called")

    spider = Trapped()
    task = RequestCodec(spider).encode(Request("https://shop.example/", spider.parse_item), 1, now=0.0)
    assert task.route == "parse_item"


def test_a_request_that_is_too_large_is_refused(codec: RequestCodec) -> None:
    with pytest.raises(NotData, match="1,048,576 are allowed"):
        codec.encode(Request("https://shop.example/", body=b"x" * 2**20), 1, now=0.0)


@pytest.mark.parametrize(
    "body",
    [
        b"no json",
        b"[]",
        b'{"callback": "crawler"}',
        b'{"callback": "__init__"}',
        b'{"errback": ["failed"]}',
        b'{"class": "subprocess.Popen"}',
        b'{"class": "os.system"}',
        b'{"class": "scrapy.Spider"}',
        b'{"headers": 1}',
        b'{"headers": {"\\u20ac": []}}',
        b'{"meta": {"a": {"~": ["item", ["subprocess.Popen", {"args": "true"}]]}}}',
        b'{"meta": {"a": {"~": ["item", ["tests.unit.bridges.scrapy.test_request_codec.Shelf", {"x": 1}]]}}}',
        b'{"unknown": 1}',
        b'{"meta": 5}',
        b'{"priority": "high"}',
    ],
)
def test_what_another_program_left_in_the_queue_is_refused(codec: RequestCodec, body: bytes) -> None:
    with pytest.raises(BadData):
        codec.decode(Task(url="https://shop.example/", route="parse", body=body))


def test_a_task_with_a_url_alone_is_a_request(codec: RequestCodec) -> None:
    request, jar = codec.decode(Task(url="https://shop.example/", route="parse"))
    assert (request.url, request.callback, jar) == ("https://shop.example/", None, None)


def test_what_is_in_a_queue_gets_no_account(shop: Shop) -> None:
    """Its writer did not know the jar as one of an account."""
    meta = {"cookiejar": "@buyers/anna", "a": 1}
    task = RequestCodec(shop).encode(Request("https://shop.example/", meta=meta), 1, now=1.0)
    request, _ = RequestCodec(shop, private_jars={"@buyers/anna"}).decode(task)
    assert request.meta == {"a": 1}
    assert RequestCodec(shop, private_jars={"@buyers/otto"}).decode(task)[0].meta == meta


class Busy(Shop):
    """Overrides what Scrapy calls, too."""

    helper = print

    def __init__(self) -> None:
        super().__init__()
        self.other = len
        self.same = self.parse_item

    def start_requests(self) -> Any: ...

    def closed(self, reason: str) -> None: ...

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any: ...

    def _own(self, response: Any) -> None: ...


@pytest.mark.parametrize(
    "name",
    ["start", "start_requests", "closed", "close", "from_crawler", "_set_crawler", "update_settings", "handles_request",
     "log", "__init__", "__class__", "__reduce_ex__", "helper", "other", "name", "logger"],
)  # fmt: skip
def test_what_is_no_callback_is_never_called_by_a_queue(name: str) -> None:
    spider = Busy()
    with pytest.raises(BadData, match="is no callback") as error:
        RequestCodec(spider).decode(
            Task(url="https://shop.example/", route="parse", body=b'{"callback":"%s"}' % name.encode())
        )
    assert not isinstance(error.value, UnknownMethod), "it is not tried again"


def test_a_name_of_scrapys_own_is_none_of_another_version(codec: RequestCodec) -> None:
    """The spider has no such method: it would be tried for minutes."""
    with pytest.raises(BadData, match="is no callback"):
        codec.decode(Task(url="https://shop.example/", route="parse", body=b'{"errback":"closed"}'))


@pytest.mark.parametrize("name", ["_own", "parse_item", "failed", "same", "parse"])
def test_the_spiders_own_methods_are(name: str) -> None:
    spider = Busy()
    body = b'{"callback":"%s"}' % name.encode()
    request, _ = RequestCodec(spider).decode(Task(url="https://shop.example/", route="parse", body=body))
    assert request.callback == getattr(spider, name)


class Crawl(CrawlSpider):
    name = "crawl"


class Map(SitemapSpider):
    name = "map"


@pytest.mark.parametrize(
    ("spider", "name"), [(Crawl, "_callback"), (Crawl, "_errback"), (Crawl, "parse_start_url"), (Map, "_parse_sitemap")]
)
def test_callbacks_of_scrapys_own_spiders_come_back(spider: type[Spider], name: str) -> None:
    made = spider()
    codec = RequestCodec(made)
    assert there_and_back(codec, Request("https://shop.example/", getattr(made, name))).callback == getattr(made, name)
