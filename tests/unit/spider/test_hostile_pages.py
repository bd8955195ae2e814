"""Pages made to mislead a handler: each ends in a value or in an error with a name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline import BadJson, Page, Spider
from trotline.errors import SpiderError
from trotline.model.answer import Answer
from trotline.model.task import Task
from trotline.rules import urls
from trotline.rules.urls import Refusal

HERE = "https://shop.example/a/page.html"


def page(body: bytes | str, kind: str = "text/html; charset=utf-8") -> Page:
    body = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    return Page(Task(url=HERE, route="r"), Answer(url=HERE, status=200, headers=(("content-type", kind),), body=body))


def json_page(body: bytes | str) -> Page:
    return page(body, "application/json")


# B55


@pytest.mark.parametrize(
    "base", ["javascript:alert(1)//", "data:text/html,x", "file:///etc/", "//[", "http://", "\x00"]
)
def test_b55_a_hostile_base_is_not_followed_anywhere_strange(base: str):
    links = page(f'<base href="{base}"><a href="x">x</a><a href="/y">y</a>').links()
    assert all(link.startswith(("http://", "https://")) for link in links), links


def test_b55_of_a_thousand_bases_the_first_counts():
    bases = "".join(f'<base href="https://other.example/{number}/">' for number in range(1_000))
    assert page(f'{bases}<a href="x">x</a>').links() == ["https://other.example/0/x"]


def test_b55_links_that_are_code_are_no_links():
    body = "".join(
        f'<a href="{href}">x</a>' for href in ("javascript:go()", " JaVaScRiPt:x", "data:,x", "mailto:a@b.c", "tel:1")
    )
    assert page(body + '<a href="z">z</a>').links() == ["https://shop.example/a/z"]


@given(st.text(max_size=60), st.text(max_size=60))
def test_b55_no_base_and_no_link_upsets_a_page(base: str, href: str):
    body = f"<base href='{base}'><a href='{href}'>x</a>".encode("utf-8", "surrogatepass")
    # Other schemes come out as they are: the gate refuses and counts them.
    assert all(
        link.startswith(("http://", "https://")) or isinstance(urls.read(link), Refusal) for link in page(body).links()
    )


# B60


@pytest.mark.parametrize(
    "body",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "[" * 100_000 + "]" * 100_000,
        "NaN",
        '{"price": NaN}',
        "[Infinity]",
        '"\\ud800"',
        "",
        "<html>",
        b"\xff\xfe{",
        '{"a": 1,}',
    ],
)
def test_b60_json_that_is_none_is_an_error_with_a_name(body: bytes | str):
    with pytest.raises(BadJson, match=HERE):
        json_page(body).json()


def test_b60_a_key_that_stands_twice_has_its_last_value():
    assert json_page('{"a": 1, "a": 2}').json() == {"a": 2}


def test_b60_numbers_beyond_all_bounds_are_refused_or_kept_whole():
    assert json_page("9" * 400).json() == int("9" * 400)
    with pytest.raises(BadJson):
        json_page("1e400").json()


@given(st.binary(max_size=200))
def test_b60_any_bytes_are_json_or_bad_json(body: bytes):
    try:
        json_page(body).json()
    except BadJson:
        return


# B61


@pytest.mark.parametrize("bomb", ["[" * 100_000, '{"a":' * 100_000, '{"@graph":' * 50_000, "NaN", "9" * 5_000])
def test_b61_embedded_bombs_are_nothing_or_a_value(bomb: str):
    body = (
        f'<script type="application/ld+json">{bomb}</script><script id="s">{bomb}</script><script>x = {bomb}</script>'
    )
    found = page(body)
    found.json_ld()
    found.embedded("s")
    found.embedded("x")


def test_b61_deep_graphs_are_flattened_or_left_out():
    deep = '{"@graph":[' * 3_000 + "{}" + "]}" * 3_000
    page(f'<script type="application/ld+json">{deep}</script>').json_ld()


# B79


@pytest.mark.parametrize("rule", ["include", "exclude"])
@pytest.mark.parametrize("pattern", ["(", "[a-", "a{2,1}", "(?P<x>a)(?P<x>b)", "*"])
def test_b79_a_pattern_that_cannot_work_is_refused_when_the_spider_is_made(rule: str, pattern: str):
    with pytest.raises(SpiderError, match="is not a regular expression"):
        Spider("s", **{rule: [pattern]})


@pytest.mark.parametrize("query", ["a[", "::", "p:nth-child(", "p:unknown(x)", "", "a::attr()"])
def test_b79_a_selector_that_cannot_work_says_which_it_is(query: str):
    with pytest.raises(ValueError, match=r"selector|CSS"):
        page("<p>x</p>").css(query).getall()
