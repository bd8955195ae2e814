"""What handlers give, made into records, tasks and rejects."""

import datetime
import functools
import signal
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline import LATER, Harvest, Page, Record, Route, Spider, Task
from trotline.model.answer import Answer
from trotline.model.harvest import Follow
from trotline.spider.harvest import HandlerFailed, read, read_async
from trotline.spider.records import snake

URL = "https://shop.example/p/1"


@dataclass
class Product:
    sku: str
    price: float = 0.0
    tags: list[str] = field(default_factory=list)


class Offer(msgspec.Struct, rename="camel"):
    sku: str
    shop_name: str = ""


class Review(pydantic.BaseModel):
    stars: int
    text: str = ""


class Line(TypedDict):
    sku: str
    amount: int


def page_of(route: Route, body: str = "<a href=x>x</a>") -> Page:
    task = Task(url=URL, route=route.name, fingerprint=-1)
    return Page(task, Answer(url=URL, status=200, body=body.encode()))


def harvest_of(handler: Any, **settings: Any) -> Harvest:
    spider = Spider("shop")
    route = spider.page(**{"name": "product"} | settings)(handler)
    return read(spider, route, page_of(route), site="shop", seen_at=7.0)


def yielding(*items: Any, **settings: Any) -> Harvest:
    def product(page: Page):
        yield from items

    return harvest_of(product, **settings)


def only_record(harvest: Harvest) -> Record:
    assert harvest.rejects == []
    [record] = harvest.records
    return record


def only_why(harvest: Harvest) -> str:
    assert harvest.records == []
    [reject] = harvest.rejects
    return reject.why


def test_a_dict_becomes_a_record_of_its_routes_kind():
    assert only_record(yielding({"sku": "T1"}, key="sku")) == Record(
        kind="product", key="T1", data={"sku": "T1"}, url=URL, site="shop", seen_at=7.0
    )


@pytest.mark.parametrize(
    ("item", "kind", "data"),
    [
        (Product("T1", 2.5, ["a"]), "product", {"sku": "T1", "price": 2.5, "tags": ["a"]}),
        (Offer("T1", "Anna"), "offer", {"sku": "T1", "shopName": "Anna"}),
        (Review(stars=5), "review", {"stars": 5, "text": ""}),
    ],
)
def test_a_typed_object_becomes_a_record_of_its_classes_kind(item, kind, data):
    record = only_record(yielding(item))

    assert (record.kind, record.data) == (kind, data)


def test_without_key_a_record_is_named_by_its_page_and_place():
    harvest = yielding({"a": 1}, Product("T1"), {"a": 2}, Product("T2"), name="reader")

    page = "f" * 16
    assert [(record.kind, record.key) for record in harvest.records] == [
        ("reader", f"{page}:0"),
        ("product", f"{page}:0"),
        ("reader", f"{page}:1"),
        ("product", f"{page}:1"),
    ]


def test_one_bad_record_does_not_shift_the_keys_of_the_others():
    good = yielding({"a": 1}, {"a": 2}, {"a": 3})
    bad = yielding({"a": 1}, {"a": object()}, {"a": 3})

    assert [record.key for record in bad.records] == [good.records[0].key, good.records[2].key]
    assert good.records[0].key == "ffffffffffffffff:0"


@pytest.mark.parametrize(
    ("key", "item", "expected"),
    [
        ("sku", {"sku": " T1\n"}, "T1"),
        ("sku", {"sku": 17}, "17"),
        ("sku", Product("T1"), "T1"),
        ("shop_name", Offer("T1", "Anna"), "Anna"),
        ("id", {"id": uuid.UUID(int=1)}, str(uuid.UUID(int=1))),
        (("shop", "sku"), {"shop": "a:b", "sku": "c"}, "a\\:b:c"),
        (["shop", "sku"], {"shop": "a", "sku": "b:c"}, "a:b\\:c"),
        (lambda item: item["sku"].lower(), {"sku": "T1"}, "t1"),
    ],
)
def test_the_key_is_a_field_several_fields_or_a_function(key, item, expected):
    assert only_record(yielding(item, key=key)).key == expected


@pytest.mark.parametrize("value", [None, "", "  ", True, [1], {"a": 1}])
def test_a_record_without_a_usable_key_is_rejected(value):
    harvest = yielding({"sku": value}, {"sku": "T2"}, key="sku")

    assert [record.key for record in harvest.records] == ["T2"]
    assert harvest.rejects[0].why.startswith("sku:")


def test_a_record_without_the_key_field_is_rejected():
    assert only_why(yielding({"title": "Tea"}, key="sku")) == "sku: the key is missing"


def test_a_typed_object_is_checked_against_its_annotations():
    harvest = yielding(Product(None), Product("T2", "dear"), Product("T3", tags=[1]), Product("T4"))  # type: ignore[arg-type, list-item]

    assert [record.data["sku"] for record in harvest.records] == ["T4"]
    assert [reject.why for reject in harvest.rejects] == [
        "sku: expected str, got null",
        "price: expected float, got str",
        "tags[0]: expected str, got int",
    ]
    assert harvest.rejects[0].kind == "product"
    assert harvest.rejects[0].data == '{"sku":null,"price":0.0,"tags":[]}'


def test_dicts_are_converted_to_the_routes_model():
    record = only_record(yielding({"sku": "T1", "price": "2.5"}, model=Product, key="sku", name="reader"))

    assert (record.kind, record.data) == ("product", {"sku": "T1", "price": 2.5, "tags": []})
    assert only_record(yielding({"stars": "4"}, model=Review)).data == {"stars": 4, "text": ""}
    assert only_record(yielding({"sku": "T1", "amount": 2}, model=Line)).kind == "line"


@pytest.mark.parametrize(
    ("model", "item", "why"),
    [
        (Product, {"price": 1.0}, "object missing required field sku"),
        (Product, {"sku": "T1", "price": "dear"}, "price: expected float, got str"),
        (Offer, {"sku": 1}, "sku: expected str, got int"),
        (Line, {"sku": "T1"}, "object missing required field amount"),
        (Review, {"stars": "many"}, "stars: Input should be a valid integer"),
        (Review, {}, "stars: Field required"),
    ],
)
def test_a_dict_that_does_not_fit_the_model_is_rejected_with_the_field(model, item, why):
    assert only_why(yielding(item, model=model)).startswith(why)


@pytest.mark.parametrize("value", [object(), {1, object()}, {"deep": [object()]}, (lambda: 1), {object(): 1}])
def test_what_cannot_be_written_as_json_is_rejected_with_the_field(value):
    harvest = yielding({"fine": 1, "odd": value}, {"fine": 2})

    assert [record.data for record in harvest.records] == [{"fine": 2}]
    assert harvest.rejects[0].why.startswith("odd: ")
    assert harvest.rejects[0].data


def test_half_a_surrogate_pair_becomes_a_replacement_character():
    odd = "a\ud800b"
    record, typed, other = yielding(
        {"sku": odd, odd: [odd, {"deep": (odd, Decimal("1.50"))}], 3: odd}, Product(odd), Offer(sku="x", shop_name=odd)
    ).records
    whole = "a\ufffdb"
    assert record.data == {"sku": whole, whole: [whole, {"deep": [whole, "1.50"]}], "3": whole}
    assert (typed.data["sku"], other.data["shopName"]) == (whole, whole)
    assert only_record(yielding({"sku": odd}, key="sku")).key == whole


def test_what_cannot_be_written_is_named_also_beside_half_a_surrogate_pair():
    assert only_why(yielding({"half": "\ud800", "odd": object()})).startswith("odd: ")


def test_a_value_that_contains_itself_is_rejected():
    circle: dict[str, Any] = {}
    circle["self"] = circle

    assert "self" in only_why(yielding(circle))


def test_data_becomes_plain_json():
    when = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
    record = only_record(yielding({"price": Decimal("1.50"), "when": when, "pair": (1, 2), 3: "three"}))

    assert record.data == {"price": "1.50", "when": "2026-03-01T00:00:00Z", "pair": [1, 2], "3": "three"}


def test_a_long_reject_is_cut():
    [reject] = yielding({"sku": "", "text": "x" * 100_000}, key="sku").rejects

    assert len(reject.data) < 5_000


@pytest.mark.parametrize("item", ["https://shop.example/", 7, b"x", ["https://shop.example/"], Product])
def test_what_is_neither_record_nor_task_is_rejected_with_what_would_be(item):
    assert "yield a dict" in only_why(yielding(item))


@pytest.mark.parametrize(("item", "named"), [(7, "an int is"), ("x", "a str is"), (object(), "an object is")])
def test_the_type_of_what_was_yielded_has_its_article(item, named):
    assert only_why(yielding(item)).startswith(named)


def test_an_explicit_record_keeps_kind_and_key_and_is_seen_when_leased():
    def product(page: Page):
        yield page.record("price", "T1", {"price": Decimal("1.5")})
        yield Record(kind="price", key="T2", data={}, url="https://a.example/", site="theirs", seen_at=99.0)
        yield Record(kind="", key="T3", data={}, url="", site="", seen_at=0.0)

    harvest = harvest_of(product)

    assert harvest.records == [
        Record(kind="price", key="T1", data={"price": "1.5"}, url=URL, site="shop", seen_at=7.0),
        Record(kind="price", key="T2", data={}, url="https://a.example/", site="theirs", seen_at=7.0),
    ]
    assert len(harvest.rejects) == 1


def test_tasks_and_follows_are_gathered_and_none_is_ignored():
    spider = Spider("shop")

    @spider.page
    def product(page: Page): ...

    @spider.page(priority=LATER)
    def listing(page: Page):
        yield None
        yield product.task("https://shop.example/p/2")
        yield page.follow()
        yield page.follow("li.next a")

    harvest = read(spider, listing, page_of(listing), site="shop", seen_at=0.0)

    assert [task.route for task in harvest.tasks] == ["product"]
    assert harvest.follows == [
        Follow(route="listing", urls=["https://shop.example/p/x"], priority=LATER, query="a[href]"),
        Follow(route="listing", urls=[], priority=LATER, query="li.next a"),
    ]


@pytest.mark.parametrize(
    ("given_back", "records"),
    [(None, 0), ({"a": 1}, 1), (Product("T1"), 1), ([{"a": 1}, {"a": 2}], 2), (({"a": n} for n in range(3)), 3)],
)
def test_a_plain_function_may_return_nothing_one_thing_or_many(given_back, records):
    assert len(harvest_of(lambda page: given_back).records) == records


async def test_async_handlers_yield_or_return_alike():
    spider = Spider("shop")

    @spider.page
    async def listing(page: Page):
        yield {"a": 1}
        yield page.follow()

    @spider.page
    async def product(page: Page):
        return {"a": 2}

    @spider.page
    async def nothing(page: Page): ...

    async def harvest(route: Route) -> Harvest:
        return await read_async(spider, route, page_of(route), site="shop", seen_at=0.0)

    assert listing.is_async
    assert product.is_async
    assert len((await harvest(listing)).records) == len((await harvest(listing)).follows) == 1
    assert only_record(await harvest(product)).data == {"a": 2}
    assert await harvest(nothing) == Harvest()


async def test_async_handlers_are_known_behind_decorators_and_as_objects():
    spider = Spider("shop")

    def shouting(handler):
        @functools.wraps(handler)
        def wrapper(page):
            return handler(page)

        return wrapper

    @spider.page
    @shouting
    async def decorated(page: Page):
        yield {"a": 1}

    class Handler:
        async def __call__(self, page: Page):
            return {"a": 2}

    called = spider.page(name="called")(Handler())

    for route, data in ((decorated, {"a": 1}), (called, {"a": 2})):
        assert route.is_async
        assert only_record(await read_async(spider, route, page_of(route), site="", seen_at=0.0)).data == data


def test_a_plain_handler_that_gives_something_to_await_has_failed():
    async def later(page: Page): ...

    with pytest.raises(HandlerFailed, match="async def"):
        harvest_of(lambda page: later(page))


def test_a_handler_that_raises_tells_the_line_of_the_authors_file():
    def product(page: Page):
        yield {"a": 1}
        int("dear\nvery dear")

    with pytest.raises(HandlerFailed) as raised:
        harvest_of(product)

    line = product.__code__.co_firstlineno + 2
    assert raised.value.what == (
        r"ValueError: invalid literal for int() with base 10: 'dear\nvery dear' "
        f"at test_harvest.py:{line} in product"
    )
    assert isinstance(raised.value.__cause__, ValueError)


def test_the_line_is_the_authors_even_when_our_code_or_a_library_raises():
    def product(page: Page):
        return page.css("p[").get() if page.status != 200 else page.json()

    with pytest.raises(HandlerFailed, match=r"^BadJson: .* at test_harvest\.py:\d+ in product$"):
        harvest_of(product)


async def test_an_async_handler_that_raises_tells_its_line():
    spider = Spider("shop")

    @spider.page
    async def product(page: Page):
        raise KeyError("price")
        yield {}

    with pytest.raises(HandlerFailed, match=r"^KeyError: 'price' at test_harvest\.py:\d+ in product$"):
        await read_async(spider, product, page_of(product), site="shop", seen_at=0.0)


def test_a_handler_that_ends_the_program_has_failed():
    def product(page: Page):
        raise SystemExit

    with pytest.raises(HandlerFailed, match="SystemExit at"):
        harvest_of(product)


@pytest.fixture
def child_process() -> Iterator[None]:
    """Signals as a worker's child has them: Ctrl-C is the supervisor's business."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


async def test_a_keyboard_interrupt_that_a_handler_raises_is_its_own_pages_failure(child_process: None):
    def product(page: Page):
        raise KeyboardInterrupt

    async def product_async(page: Page):
        raise KeyboardInterrupt

    spider = Spider("shop")
    with pytest.raises(HandlerFailed, match=r"^KeyboardInterrupt at test_harvest\.py:\d+ in product$"):
        harvest_of(product)
    route = spider.page(product_async)
    with pytest.raises(HandlerFailed, match=r"^KeyboardInterrupt at test_harvest\.py:\d+ in product_async$"):
        await read_async(spider, route, page_of(route), site="shop", seen_at=0.0)
    with pytest.raises(HandlerFailed, match="KeyboardInterrupt"):
        Spider("shop", blocked=[product]).says_blocked(page_of(route))


def test_ctrl_c_ends_a_handler_outside_of_workers():
    def product(page: Page):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        harvest_of(product)


def test_a_key_function_that_raises_has_failed():
    with pytest.raises(HandlerFailed, match="KeyError: 'sku' at test_harvest"):
        yielding({"a": 1}, key=lambda item: item["sku"])


def test_a_task_for_a_route_of_another_spider_has_failed():
    other = Spider("other").page(name="elsewhere")(lambda page: None)

    with pytest.raises(HandlerFailed, match="no route 'elsewhere'; it has product"):
        yielding(other.task("https://shop.example/"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Product", "product"),
        ("ProductPage", "product_page"),
        ("HTTPThing2", "http_thing2"),
        ("already_so", "already_so"),
    ],
)
def test_kinds_are_written_in_snake_case(name, expected):
    assert snake(name) == expected


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.just("\udc00"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), json_like, max_size=4))
def test_every_record_kept_can_be_written_and_read_back(item):
    harvest = yielding(item)

    assert len(harvest.records) + len(harvest.rejects) == 1
    for record in harvest.records:
        assert msgspec.json.decode(msgspec.json.encode(record.data)) == record.data
