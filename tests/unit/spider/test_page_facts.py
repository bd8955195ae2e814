"""What can be said of any page."""

import sys

import pytest

from tests.unit.spider.test_page import page_of
from trotline.spider.page_facts import ALL, FIELDS, MarkdownMissing, facts, markdown_of, text_of

PAGE = """<html lang=en><head><title> Tea </title><meta name=Description content="Good tea">
<script type="application/ld+json">{"@type": "Product", "sku": "T1"}</script></head>
<body><style>p {}</style><h1>Tea</h1><p>Some  <b>bold</b>\n text</p><script>var x</script>
<a href=/p>more</a></body></html>"""


def test_a_page_has_all_that_is_wanted():
    found = facts(page_of(PAGE), ALL, asked="https://shop.example/first")

    assert found["url"] == "https://shop.example/first"
    assert (found["final_url"], found["status"], found["type"]) == ("https://shop.example/a/b?c=1", 200, "text/html")
    assert (found["title"], found["description"], found["language"]) == ("Tea", "Good tea", "en")
    assert found["text"].splitlines()[0] == "Tea"
    assert "var x" not in found["text"] + found["markdown"]
    assert "# Tea" in found["markdown"]
    assert "[more](https://shop.example/p)" in found["markdown"]
    assert found["links"] == ["https://shop.example/p"]
    assert found["json_ld"] == [{"@type": "Product", "sku": "T1"}]
    assert set(facts(page_of(PAGE), ["title"])) == {"url", "final_url", "status", "type", "title"}


@pytest.mark.parametrize("body", ["", "<div>" * 3_000 + "deep", "\0", "<table><tr><td>" * 500])
def test_odd_pages_have_facts_too(body):
    assert set(facts(page_of(body), ALL)) >= set(ALL)


def test_markdown_that_would_be_cut_is_none():
    assert markdown_of(page_of("<div>" * 3_000 + "deep")) is None
    assert text_of(page_of("<div>" * 3_000 + "deep")) == "deep"


def test_what_is_no_html_is_its_own_text():
    found = facts(page_of('{"a": 1}', "application/json"), ALL)
    assert (found["text"], found["markdown"], found["title"], found["links"]) == ('{"a": 1}', '{"a": 1}', None, [])


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "html_to_markdown", None)
    with pytest.raises(MarkdownMissing, match=r"pip install .*\[markdown\]"):
        markdown_of(page_of(PAGE))
    assert "markdown" not in FIELDS


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>4<b>9</b>9 <i>EUR</i>,\n un<u>believ</u>able</p>", "499 EUR, unbelievable"),
        ("a<div>b<p>c</p>d</div>e<br>f<!-- no --><ul><li>g<li>h</ul>", "a\nb\nc\nd\ne\nf\ng\nh"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><th>c<th>d</table>", "a b\nc d"),
        ("x <pre>def f():\n    <b>re</b>turn 1\n\nf()\n</pre> y", "x\ndef f():\n    return 1\n\nf()\ny"),
        ("<p>a</p><script>no</script><svg><text>no</text></svg> \n <p> \n </p>", "a"),
    ],
)
def test_text_has_a_line_for_each_block_and_none_inside_words(html, text):
    assert text_of(page_of(html)) == text


def test_the_text_of_a_page_leaves_the_page_as_it_is():
    page = page_of(PAGE)
    text_of(page)
    assert page.css("script").getall()
