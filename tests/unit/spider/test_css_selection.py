"""What authors find with CSS: Scrapy's habits, and nothing that breaks when nothing matches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from trotline.spider.css_query import parse
from trotline.spider.css_selection import Selection

HTML = """
<body><h1 id=top> Tea <b>pot</b> 17 </h1>
<div class=quote><span class=text>To be</span><small class=author>W. S.</small></div>
<div class=quote><span class=text>Or not</span><a href="/a?x=1&amp;y=2" data-Id=7>about</a></div>
<div class=empty></div><a href>nowhere</a><a name=x>nothing</a></body>
"""


def select(query: str, html: str = HTML) -> Selection:
    return Selection((LexborHTMLParser(html),), parse(query))


def test_a_query_without_a_match_gives_nothing_and_breaks_nothing():
    nothing = select(".missing")

    assert nothing.get() is None
    assert nothing.get("?") == "?"
    assert nothing.getall() == []
    assert nothing.text is None
    assert nothing.attr("href") is None
    assert nothing.re_first(r"\d") is None
    assert nothing.css("a::text").get() is None
    assert not nothing
    assert len(nothing) == 0


def test_text_is_the_nodes_own_text_as_in_scrapy():
    assert select("h1::text").get() == " Tea "
    assert select("h1::text").getall() == [" Tea ", " 17 "]
    assert select(".author::text").get() == "W. S."


def test_text_after_a_blank_is_all_text_inside_in_page_order():
    assert select("h1 ::text").getall() == [" Tea ", "pot", " 17 "]
    assert select("h1 ::text").get() == " Tea "
    assert select("h1")[0].css("::text").getall() == [" Tea ", "pot", " 17 "]


def test_text_inside_nested_matches_is_given_once():
    assert select("div ::text", "<div>a<div>b</div>c</div>").getall() == ["a", "b", "c"]


def test_the_first_text_may_be_that_of_a_later_match():
    assert select("div::text", "<div></div><div>b</div>").get() == "b"


def test_an_attribute_is_found_by_name_in_any_case():
    assert select(".quote a::attr(href)").get() == "/a?x=1&y=2"
    assert select("a::attr(data-id)").get() == "7"
    assert select("a").attr("DATA-ID") == "7"


def test_an_attribute_without_value_is_empty_and_a_missing_one_is_left_out():
    assert select("a::attr(href)").getall() == ["/a?x=1&y=2", ""]
    assert select("a::attr(title)").getall() == []
    assert select("a")[2].attr("href") is None
    assert select("::attr(class)").getall() == ["quote", "text", "author", "quote", "text", "empty"]


def test_matches_are_searched_again_from_where_they_are():
    texts = [(box.css(".text::text").get(), box.css(".author::text").get()) for box in select(".quote")]

    assert texts == [("To be", "W. S."), ("Or not", None)]
    assert select(".quote").css(".text::text").getall() == ["To be", "Or not"]


def test_a_node_that_matches_twice_is_given_once():
    assert select(".quote, div").getall() == select("div").getall()
    assert select("div").css("span").getall() == select("span").getall()
    assert select("div", "<div><div><b>x</b></div></div>").css("b::text").getall() == ["x"]


def test_a_list_of_selectors_may_name_the_same_pseudo_element_each():
    assert select("h1::text, .author::text").getall() == [" Tea ", " 17 ", "W. S."]
    assert select('a[href="/a?x=1&y=2"]::text, :is(h1, h2) b::text').getall() == ["pot", "about"]


def test_a_query_without_pseudo_element_gives_html():
    assert select(".author").get() == '<small class="author">W. S.</small>'


def test_text_property_is_all_text_stripped():
    assert select("h1").text == "Tea pot 17"
    assert select("h1::text").text == "Tea"
    assert select("h1")[0].text == "Tea pot 17"


def test_patterns_search_the_values():
    assert select("h1 ::text").re(r"\d+") == ["17"]
    assert select("a::attr(href)").re_first(r"x=(\d)&y=(\d)") == "1"
    assert select("a::attr(href)").re(r"x=(\d)&y=(\d)") == ["1", "2"]


def test_it_can_be_indexed_sliced_counted_and_reversed():
    spans = select("span")

    assert [spans[0].text, spans[-1].text, len(spans)] == ["To be", "Or not", 2]
    assert spans[1:].getall() == ['<span class="text">Or not</span>']
    assert select("span::text")[1:].get() == "Or not"
    assert [one.text for one in reversed(spans)] == ["Or not", "To be"]
    with pytest.raises(IndexError):
        spans[2]


def test_a_match_tells_its_tag_attributes_and_html():
    link = select(".quote a")[0]

    assert (link.tag, link.attrs) == ("a", {"href": "/a?x=1&y=2", "data-id": "7"})
    assert link.html.startswith("<a href=")
    assert select("a::text")[0].css("b").get() is None


@pytest.mark.parametrize("query", ["p[", "", " ", "p;", "p::first", "p::text b", "p:nonsense(1)", "::attr()", None, 7])
def test_a_bad_selector_is_named(query):
    with pytest.raises(ValueError) as raised:
        parse(query)
    assert repr(query) in str(raised.value)


def test_a_list_that_asks_for_different_things_is_refused():
    with pytest.raises(ValueError, match="mixes ::text"):
        parse("h1::text, a::attr(href)")


def test_contains_is_answered_with_the_form_that_works():
    with pytest.raises(ValueError, match="lexbor-contains"):
        parse("p:contains(tea)")
    assert select('span:lexbor-contains("or" i)::text').get() == "Or not"


@given(st.text(max_size=40))
def test_any_text_is_a_query_or_a_value_error(query):
    try:
        select(query).getall()
    except ValueError as error:
        assert repr(query) in str(error)


@given(st.recursive(st.text("ab ", max_size=3), lambda part: st.lists(part, max_size=4), max_leaves=12))
def test_get_is_the_first_of_getall(tree):
    def html(part) -> str:
        return part if isinstance(part, str) else f"<div title={len(part)}>{''.join(map(html, part))}</div>"

    page = html([tree])
    for query in ("div::text", "div ::text", "div", "div::attr(title)", "::text", "div div::text, div::text"):
        every = select(query, page).getall()
        assert select(query, page).get() == (every[0] if every else None)
        assert [one.get() for one in select(query, page)] == every
