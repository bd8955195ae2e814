"""XPath queries, and pages that attack the parser."""

import sys

import pytest

from tests.unit.spider.test_page import page_of
from trotline.spider.xpath_tree import UnreadableTree, XPathMissing

SHOP = """<html><body><div class="card new"><h2>Tea</h2><a href=/t>more</a><b>1.50</b></div>
<div class=card><h2>Milk &amp; honey</h2><b>0.99</b></div><table><tr><td>x</table><!-- c --></body></html>"""
BOMB = '<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><l>&b;<i>1</i></l>'
OUTSIDE = '<!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/hostname">]><l>&x;</l>'


def test_queries_give_elements_texts_attributes_and_numbers():
    page = page_of(SHOP)

    assert page.xpath("//h2/text()").getall() == ["Tea", "Milk & honey"]
    assert page.xpath("//a/@href").get() == "/t"
    assert page.xpath("//h2").get() == "<h2>Tea</h2>"
    assert (page.xpath("count(//h2)").get(), page.xpath("//h2='Tea'").get()) == ("2", "true")
    assert page.xpath("//nothing").get() is None
    assert page.xpath("//nothing").get("none") == "none"
    assert not page.xpath("//nothing")


def test_matches_are_asked_in_turn_and_each_is_one():
    page = page_of(SHOP)
    cards = page.xpath("//div")

    assert [card.xpath("./h2/text()").get() for card in cards] == ["Tea", "Milk & honey"]
    assert [card.css("b::text").get() for card in cards] == ["1.50", "0.99"]
    assert cards.css("a::attr(href)").getall() == ["/t"]
    assert cards.xpath("ancestor::body").getall() == page.xpath("//body").getall()
    assert (cards[0].tag, cards[0].attr("class"), cards[0].attrs) == ("div", "card new", {"class": "card new"})
    assert (cards.text, len(cards[1:])) == ("Teamore1.50", 1)
    assert cards.re(r"\d\.\d+") == ["1.50", "0.99"]


def test_css_and_xpath_can_be_mixed():
    page = page_of(SHOP)

    assert page.css(".card").xpath("./h2/text()").getall() == ["Tea", "Milk & honey"]
    assert [card.xpath(".//b/text()").get() for card in page.css(".card")] == ["1.50", "0.99"]
    assert page.css("tr").xpath("td/text()").get() == "x"
    assert page.css("h2::text").xpath("//p").getall() == []


def test_classes_patterns_variables_and_namespaces():
    page = page_of(SHOP)
    feed = page_of('<?xml version="1.0" encoding="latin1"?><f xmlns="urn:f"><t>é</t></f>', "application/rss+xml")

    assert page.xpath('//div[has-class("new")]/h2/text()').getall() == ["Tea"]
    assert page.xpath('//b[re:test(text(), "^0")]/text()').getall() == ["0.99"]
    assert page.xpath("//h2[text()=$name]", name='Milk & "honey"').getall() == []
    assert page.xpath("//h2[text()=$name]/text()", name="Tea").getall() == ["Tea"]
    assert feed.xpath("//f:t/text()", namespaces={"f": "urn:f"}).get() == "é"


@pytest.mark.parametrize("body", ["", "   ", "\0", "<!-- x -->", "text", "<p>\0</p>"])
def test_odd_pages_are_pages(body):
    assert page_of(body).xpath("//nothing").getall() == []


def test_every_encoding_is_read_as_css_reads_it():
    page = page_of("<meta charset=windows-1250><p>čaj</p>".encode("cp1250"), "text/html")
    assert page.xpath("//p/text()").get() == page.css("p::text").get() == "čaj"
    assert page_of(b"<p>a\xffb</p><b>end</b>").xpath("//p/text() | //b/text()").getall() == ["a\ufffdb", "end"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("//div[", "is not an XPath query"),
        ("//f:t", 'give namespaces={"prefix"'),
        ("//a[@id=$id]", "give it: page.xpath"),
        (17, "write it as text"),
    ],
)
def test_an_invalid_query_is_named(query, said):
    with pytest.raises(ValueError) as error:
        page_of(SHOP).xpath(query)
    assert said in str(error.value)
    assert str(query) in str(error.value)


@pytest.mark.parametrize("body", [BOMB, OUTSIDE])
def test_entities_are_neither_expanded_nor_fetched(body):
    with pytest.raises(UnreadableTree, match="declares XML entities"):
        page_of(body, "text/xml").xpath("string(.)")
    assert "aaaa" not in page_of(body).xpath("string(.)").get()


def test_a_page_that_would_be_cut_is_refused():
    with pytest.raises(UnreadableTree, match=r"nested too deeply.*page\.css reads it"):
        page_of("<div>" * 5_000 + "<p>x").xpath("//p")
    assert page_of("<div>" * 1_000 + "<p>x").xpath("//p/text()").get() == "x"


def test_a_missing_package_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(XPathMissing, match=r"pip install .*\[xpath\]"):
        page_of(SHOP).xpath("//p")


def test_css_needs_no_xpath_engine():
    assert "_xpath_root" in page_of(SHOP).__slots__
    page = page_of(SHOP)
    page.css("h2::text").get()
    assert page._xpath_root is None
