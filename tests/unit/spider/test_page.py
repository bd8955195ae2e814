"""What a handler can ask of a page."""

import msgspec
import pytest

from trotline.model.answer import Answer
from trotline.model.task import LATER, NORMAL, SOON, Task
from trotline.spider.page import BadJson, Page
from trotline.spider.spider import Spider

URL = "https://shop.example/a/b?c=1"


def page_of(body: str | bytes, content_type: str = "text/html; charset=utf-8", *, url: str = URL, **task) -> Page:
    raw = body.encode() if isinstance(body, str) else body
    headers = (("content-type", content_type), ("set-cookie", "a=1"), ("set-cookie", "b=2"))
    return Page(
        Task(url="https://shop.example/first", route="listing", **task),
        Answer(url=url, status=200, headers=headers, body=raw),
    )


def test_a_page_tells_where_it_came_from():
    page = page_of("<title> Tea\n pots </title>", meta={"shelf": 3}, depth=2)

    assert (page.url, page.status, page.route) == (URL, 200, "listing")
    assert (page.title, page.meta, page.depth) == ("Tea pots", {"shelf": 3}, 2)
    assert page_of("<p>x").title is None


def test_headers_are_found_in_any_case_and_repeats_are_kept():
    headers = page_of("").headers

    assert headers["Content-Type"] == headers["content-type"] == "text/html; charset=utf-8"
    assert headers["Set-Cookie"] == "a=1"
    assert headers.getall("SET-COOKIE") == ["a=1", "b=2"]
    assert headers.get("x-none") is None
    assert "Set-Cookie" in headers
    assert list(headers) == ["content-type", "set-cookie"]
    assert len(headers) == 2


@pytest.mark.parametrize(
    ("body", "content_type", "encoding"),
    [
        ("<p>čaj</p>".encode(), "text/html; charset=utf-8", "utf-8"),
        ("<p>čaj</p>".encode(), "text/html", "utf-8"),
        (b"\xef\xbb\xbf" + "<p>čaj</p>".encode(), "text/html", "utf-8"),
        ("<meta charset=windows-1250><p>čaj</p>".encode("cp1250"), "text/html", "windows-1250"),
        ("<p>čaj</p>".encode("cp1250"), "text/html; charset=windows-1250", "windows-1250"),
        (b"\xff\xfe" + "<p>čaj</p>".encode("utf-16-le"), "text/html", "utf-16le"),
    ],
)
def test_text_and_selectors_agree_in_every_encoding(body, content_type, encoding):
    page = page_of(body, content_type)

    assert page.css("p::text").get() == "čaj"
    assert page.encoding == encoding
    assert page.text.endswith("<p>čaj</p>")
    assert not page.text.startswith("\ufeff")
    assert page_of(body, content_type).re_first("<p>(.*)</p>") == "čaj"


def test_a_byte_order_mark_is_no_text_of_the_page():
    assert page_of(b"\xef\xbb\xbf<p>x").css("body ::text").getall() == ["x"]


def test_wrong_bytes_become_replacement_characters():
    assert page_of(b"<p>\xff</p>").css("p::text").get() == page_of(b"<p>\xff</p>").re_first("<p>(.)") == "\ufffd"


def test_patterns_search_the_text():
    page = page_of("<p>id=17 id=18")

    assert page.re(r"id=(\d+)") == ["17", "18"]
    assert page.re_first(r"none") is None


def test_links_are_absolute_unique_and_in_page_order():
    page = page_of(
        '<a href="z">1</a><a href="/y">2</a><a href="z">3</a><a href="?p=2">4</a><a href="//cdn.example/x">5</a>'
        '<a href="https://other.example/">6</a><a href="z#part">7</a><a name=none>8</a><a href>9</a>'
    )

    assert page.links() == [
        "https://shop.example/a/z",
        "https://shop.example/y",
        "https://shop.example/a/b?p=2",
        "https://cdn.example/x",
        "https://other.example/",
    ]


def test_links_that_lead_to_no_page_are_left_out():
    assert page_of('<a href="#top"></a><a href="javascript:x()"></a><a href="MAILTO:a@b"></a>').links() == []


def test_the_first_base_with_an_address_counts():
    page = page_of('<base target=_blank><BASE HREF="/shop/"><base href="/other/"><a href="p/1">1</a>')

    assert page.base == "https://shop.example/shop/"
    assert page.links() == ["https://shop.example/shop/p/1"]
    assert page.task("p/2").url == "https://shop.example/shop/p/2"


def test_a_base_that_leads_nowhere_is_ignored():
    assert page_of('<base href="javascript:1"><a href="x">').links() == ["https://shop.example/a/x"]


def test_a_match_without_href_stands_for_the_links_inside():
    page = page_of("<li class=card><a href=1></a><a href=2></a></li><li class=card><p>none</p></li><a href=3></a>")

    assert page.links(".card") == ["https://shop.example/a/1", "https://shop.example/a/2"]
    assert page.links(".card, a") == [f"https://shop.example/a/{number}" for number in (1, 2, 3)]


def test_links_may_stand_in_another_attribute():
    assert page_of("<div data-url=/x></div>").links("div::attr(data-url)") == ["https://shop.example/x"]
    with pytest.raises(ValueError, match="asks for text"):
        page_of("").links("a::text")


def test_following_makes_one_bundle_for_the_pages_own_route():
    follow = page_of("<ul><li class=next><a href=?page=2>").follow("li.next a")

    assert (follow.route, follow.urls) == ("listing", ["https://shop.example/a/b?page=2"])
    assert (follow.priority, follow.meta) == (NORMAL, {})
    assert page_of("<p>last page").follow("li.next a").urls == []


def test_following_to_another_route_takes_its_priority():
    spider = Spider("shop")

    @spider.page(priority=SOON)
    def product(page): ...

    page = page_of("<a href=1>")

    assert page.follow(to=product).route == "product"
    assert page.follow(to=product).priority == SOON
    assert page.follow(to=product, priority=LATER, meta={"a": 1}).priority == LATER
    assert page.follow(to="product").route == "product"
    assert page.of(product).follow().priority == SOON


def test_a_page_gives_its_chain_to_what_it_finds():
    page = page_of("<a href=/2>next</a>", chain="catalog")

    assert page.chain == "catalog"
    assert page.follow("a", chain=page.chain).chain == "catalog"
    assert page.task("/2", chain=page.chain).chain == "catalog"
    assert page_of("").chain == page.follow("a").chain == ""
    with pytest.raises(ValueError, match="chain of follow"):
        page.follow("a", chain="x" * 1_001)


def test_a_task_of_a_page_is_relative_to_it():
    spider = Spider("shop", retries=1, pool="mobile")

    @spider.page
    def product(page): ...

    page = page_of("", session="anna")

    assert page.task("../x").route == "listing"
    task = page.task("../x", to=product, priority=SOON, form={"q": "tea pot", "n": 2})
    assert (task.route, task.retries, task.pool, task.priority) == ("product", 1, "mobile", SOON)
    assert (task.method, task.body) == ("POST", b"q=tea+pot&n=2")
    assert task.headers == (("content-type", "application/x-www-form-urlencoded"),)
    with pytest.raises(ValueError, match="not a link"):
        page.task("javascript:void(0)")
    with pytest.raises(ValueError, match="absolute"):
        page.task("ftp://shop.example/")


def test_json_is_decoded_and_checked():
    class Item(msgspec.Struct):
        sku: str

    page = page_of('\ufeff{"sku": "T1"}', "application/json")

    assert page.json() == {"sku": "T1"}
    assert page.json(Item) == Item("T1")
    assert page_of('{"a": "č"}'.encode("utf-16"), "application/json").json() == {"a": "č"}
    assert page_of('{"a": "č"}'.encode("cp1250"), "application/json; charset=windows-1250").json() == {"a": "č"}


def test_html_inside_json_does_not_decide_its_encoding():
    assert page_of('{"a": "<meta charset=windows-1250>č"}', "application/json").json()["a"].endswith("č")


@pytest.mark.parametrize("body", ["", "<html>", '{"a": 1', "[" * 100_000, b"\xff"])
def test_a_page_that_is_no_json_says_what_it_is(body):
    with pytest.raises(BadJson) as raised:
        page_of(body, "text/html").json()
    assert URL in str(raised.value)
    assert "text/html" in str(raised.value)


def test_json_that_does_not_fit_its_model_says_where():
    class Item(msgspec.Struct):
        sku: str

    with pytest.raises(BadJson, match=r"\$\.sku"):
        page_of('{"sku": 1}').json(Item)


def test_json_ld_is_flattened_and_broken_blocks_are_skipped():
    page = page_of("""
        <script type="application/ld+json">{"@type": "Product", "name": "Tea
        pot"}</script>
        <script type="Application/LD+JSON; charset=utf-8">[{"@type": "A"}, {"@graph": [{"@type": "B"}, 7]}]</script>
        <script type="application/ld+json">//<![CDATA[
          {"@type": "C"};
        //]]></script>
        <script type="application/ld+json">{"@type": "broken"</script>
        <script type="application/ld+json"></script>
        <script>{"@type": "no"}</script>
    """)

    assert [thing["@type"] for thing in page.json_ld()] == ["Product", "A", "B", "C"]


def test_embedded_state_is_found_by_script_id():
    page = page_of('<script id="__NEXT_DATA__" type="application/json">{"props": {"a": "</b>"}}</script>')

    assert page.embedded("__NEXT_DATA__") == {"props": {"a": "</b>"}}
    assert page.embedded("missing") is None


@pytest.mark.parametrize(
    "script",
    [
        'window.__STATE__ = {"a": "};", "b": [1]};  other()',
        'window["__STATE__"]={"a": "};", "b": [1]}',
        'var my__STATE__ = 1; var __STATE__\n=\n{"a": "};", "b": [1]}',
        'if (__STATE__ == 1) {}; __STATE__ = undefined; __STATE__ = {"a": "};", "b": [1]}',
        r'window.__STATE__ = JSON.parse("{\"a\": \"};\", \"b\": [1]}")',
    ],
)
def test_embedded_state_is_found_by_variable_name(script):
    assert page_of(f"<script>{script}</script>").embedded("__STATE__") == {"a": "};", "b": [1]}


def test_embedded_state_that_is_no_json_is_none():
    assert page_of("<script>var s = {a: 1}; var t = " + "[" * 100_000 + "</script>").embedded("s") is None
    assert page_of("<script>var t = " + "[" * 100_000 + "</script>").embedded("t") is None


def test_an_empty_body_is_an_empty_page():
    page = page_of(b"")

    assert (page.text, page.title, page.links(), page.css("p").get()) == ("", None, [], None)
    assert page.json_ld() == []


def test_a_route_named_by_text_brings_its_priority_and_the_spiders_retries() -> None:
    spider = Spider("shop", retries=7)
    spider.page(name="product", priority=SOON)(lambda page: None)
    listing = spider.page(name="listing")(lambda page: None)
    page = Page(Task(url="https://shop.example/", route="listing"), Answer(url="https://shop.example/", status=200))

    task = page.of(listing).task("/p/1", to="product")

    assert (task.route, task.retries, task.priority) == ("product", 7, SOON)
