"""What a page's bytes and scripts can hold."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from tests.fuzz.strange import STILL_LINEAR, fuzzed, growth, mutated
from trotline.rules.charset import decode, encoding_of
from trotline.rules.charset_prescan import named_in
from trotline.spider.css_query import parse
from trotline.spider.embedded_json import assigned, json_ld, script_json

HEADS = [
    b'<!DOCTYPE html><!-- <meta charset=gbk> --><meta http-equiv="Content-Type" content="text/html; charset=koi8-r">',
    b"<?xml version='1.0'?><html a=\"<meta charset='x'>\"><META/CHARSET = 'windows-1251' / ><p title=\"x>",
    b"\xef\xbb\xbf<meta charset=utf-16le></meta/x y=z><meta name=charset content=charset=utf-8>",
]
TYPES = st.one_of(
    st.none(),
    st.text(max_size=40),
    st.sampled_from(
        ["text/html; charset=" + name for name in ("utf-7", "utf-16", "big5", "iso-2022-jp", "gbk", "x", "hz")]
    ),
    mutated([b'text/html; charset="utf-8"; x=y']).map(lambda raw: raw.decode("latin-1")),
)


@fuzzed
@given(st.one_of(st.binary(max_size=300), mutated(HEADS)), TYPES)
def test_every_page_has_a_text_and_it_can_be_stored(body: bytes, content_type: str | None) -> None:
    text, name = decode(body, content_type)
    assert name == encoding_of(body, content_type)
    assert name != "utf-7"
    text.encode()


TAGS = [
    b"<!--",
    b"<!-->",
    b"<meta charset",
    b"<meta charset=x ",
    b"<a b='",
    b"<",
    b"</",
    b"charset",
    b"<a =",
    b"<meta a/",
]


@pytest.mark.parametrize("piece", TAGS)
def test_the_prescan_grows_with_the_length_and_no_faster(piece: bytes) -> None:
    assert growth(named_in, lambda n: b"charset" + piece * n, 500) < STILL_LINEAR


@pytest.mark.parametrize("label", ["charset ", "charset = ", "charset='", "; charset=x"])
def test_a_long_content_type_grows_with_its_length_and_no_faster(label: str) -> None:
    assert growth(lambda value: decode(b"", f"{value}{id(value)}"), lambda n: label * n, 500) < STILL_LINEAR


SCRIPTS = [
    b'<!--{"@context": "https://schema.org", "@graph": [{"name": "Tea\\ud800", "price": 1e400}]}-->',
    b'window.__STATE__ = JSON.parse("{\\"a\\": [1, NaN, -Infinity, {\\"a\\": 1, \\"a\\": 2}]}"); window["__STATE__"]=0',
    b"//<![CDATA[\n[[{}], {'x': 1}]\n//]]>",
]
SCRIPT = st.one_of(st.text(max_size=120), mutated(SCRIPTS).map(lambda raw: raw.decode("utf-8", "replace")))


@fuzzed
@given(SCRIPT, st.one_of(st.just("__STATE__"), st.text(max_size=10)))
def test_no_script_is_too_strange(script: str, name: str) -> None:
    assert all(isinstance(thing, dict) for thing in json_ld([script]))
    script_json(script)
    assigned(name, [script])


@pytest.mark.parametrize("depth", [100, 900, 990, 1_000, 100_000])
@pytest.mark.parametrize(
    ("opening", "closing"), [("[", "]"), ('{"@graph":[', "]}"), ('[{"@graph":', "}]"), ('{"a":', "}")]
)
def test_b60_json_of_any_depth_is_read_or_passed_over(depth: int, opening: str, closing: str) -> None:
    text = opening * depth + '{"a":1}' + closing * depth
    json_ld([text])
    script_json(text)
    assigned("x", [f"x={text}"])
    assigned("x", [f"x=JSON.parse({json.dumps(text)})"])


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":2}', "[NaN]", "[1e400]", "[" + "1" * 5_000 + "]", '["\\ud800"]', '["' + "x" * 10_000_000 + '"]'],
)
def test_b60_odd_json_is_read_or_passed_over(text: str) -> None:
    script_json(text)
    json_ld([text])


@pytest.mark.parametrize("piece", ["x=[", "x = ", "x=JSON.parse(", 'x="', "x=[1,", "x  ", "{", "<![CDATA["])
def test_b61_looking_for_state_grows_with_the_length_and_no_faster(piece: str) -> None:
    assert growth(lambda script: assigned("x", [script]), lambda n: piece * n, 10_000) < STILL_LINEAR
    assert growth(lambda script: json_ld([script]), lambda n: piece * n, 10_000) < STILL_LINEAR


@pytest.mark.parametrize("depth", [10, 300])
def test_b61_things_in_deep_lists_cost_no_more_than_in_flat_ones(depth: int) -> None:
    things = ",".join(['{"a":1}'] * 2_000)
    found = json_ld(["[" * depth + things + "]" * depth])
    assert len(found) in (0, 2_000)


PIECES = ["a", ".b", "#c", "[d='e' i]", ":not(", ":is(", ":has(", ":nth-child(2n+1 of ", ")", "::text", "::attr(href)"]
PIECES += [" ", ",", ">", "~", "+", "*", "|", ':lexbor-contains("x" i)', "\\31 ", "\0", "é", "/*", "*/"]
SELECTORS = st.one_of(
    st.text("abc.#[]=\"'():*>+~ ,\\-_0n:^$|", max_size=30),
    st.lists(st.sampled_from(PIECES), max_size=10).map("".join),
)


@fuzzed
@given(SELECTORS)
def test_a_selector_works_or_is_refused_with_a_reason(written: str) -> None:
    document = LexborHTMLParser("<div class=b id=c><a href=x>y</a><p d=e>x</p></div>")
    try:
        query = parse(written)
    except ValueError as error:
        assert str(error)
    else:
        document.css(query.css)
