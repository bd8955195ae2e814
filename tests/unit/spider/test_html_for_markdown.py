"""Markdown of hostile pages: it has the links of the page, and no others."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spider.test_page import page_of
from trotline.spider.html_for_markdown import escaped, source
from trotline.spider.page_facts import markdown_of


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        " JaVa&#x0A;Script:alert(1)",
        "&#1;javascript:alert(1)",
        "vbscript:x",
        "data:text/html,x",
        "file:///etc",
        "tel:1",
        "blob:x",
    ],
)
@pytest.mark.parametrize(
    "html",
    [
        "<a href='{}'>click</a>",
        "<img src='{}' alt=click>",
        "<a href='{}'><img src=/x.png alt=click></a>",
        "click<iframe src='{}'></iframe>",
        "click<video src='{}'></video>",
        "click<audio src='{}'></audio>",
        "<blockquote cite='{}'>click</blockquote>",
        "<h2><a href='{}'>click</a></h2>",
        "<table><tr><td><a href='{}'>click</a></table>",
        "<svg><a href='{}'>x</a></svg>click",
        "<noscript><a href='{}'>x</a></noscript>click",
        "<template><a href='{}'>x</a></template>click",
    ],
)
def test_an_address_that_is_not_of_the_web_is_left_out_and_its_text_is_not(html, address):
    made = markdown_of(page_of(html.format(address)))
    assert "click" in made
    assert ":" not in made.replace("https://shop.example/x.png", "")


def test_links_to_the_web_and_to_mail_addresses_stay():
    web = "<a href='/p?a[]=1'>one</a> <a href='HTTP://other.example/'>two</a> <img src=/i.png alt=i>"
    made = markdown_of(page_of(f"{web}<a href='mailto:a@b.example'>m</a>"))
    assert "[one](https://shop.example/p?a[]=1)" in made.replace("%5B%5D", "[]")
    assert "[two](http" in made.lower() and "[m](mailto:a@b.example)" in made
    assert "![i](https://shop.example/i.png)" in made


@pytest.mark.parametrize(
    "html",
    [
        "<p>{}</p>",
        "<h1>{}</h1>",
        "<table><tr><th>{0}<td>{0}</table>",
        "<a href=/x>{}</a>",
        "<a href=/x>a <b>{}</b></a>",
        "<li>{}",
        "<img src=/x.png alt='{}'>",
        "<img src=data:x alt='{}'>",
        "<a href=/x title='{}'>x</a>",
        "<abbr title='{}'>x</abbr>",
        "<dt>{}",
        "<math><mtext>{}</mtext></math>",
        "<button>{}</button>",
        "<textarea>{}</textarea>",
        "<summary>{}</summary>",
        "<title>{}</title>x",
        "<p>\\{}</p>",
        "<h1>\\{}</h1>",
        "<a href=/x>\\{}</a>",
    ],
)
@pytest.mark.parametrize(
    "text",
    ["[x](javascript:alert(1))", "![x](javascript:1)", "[x]: javascript:1", "&lt;javascript:1>", "&lt;script>alert(1)"],
)
def test_what_is_text_stays_text(html, text):
    made = markdown_of(page_of(html.format(text)))
    for at, letter in enumerate(made):
        # An odd number of backslashes before a bracket: it is text.
        if letter in "[]<" and not _of_a_link(made, at):
            before = made[:at]
            assert (len(before) - len(before.rstrip("\\"))) % 2 == 1, made


def _of_a_link(made, at):
    return made[at : at + 2] in ("[a", "[x", "[\\", "[!") or made[at : at + 8] == "](https:"


def test_code_stays_as_it_is():
    html = "<pre><code>a<span>[0]</span> &lt;b&gt; [p](javascript:9) \\[</code></pre><p><code>x<b>[1]</b></code></p>"
    made = markdown_of(page_of(html))
    assert "a[0] <b> [p](javascript:9) \\[" in made
    assert "`x[1]`" in made


@given(st.text())
def test_characters_of_ours_are_not_the_page_s(text):
    assert not set(escaped(source(text))) & set("\ufdd0\ufdd1\ufdd2\ufdd3")


def test_nested_elements_cost_no_quadratic_time():
    started = time.process_time()
    source("<div><code>[x]</code>[y]" * 5_000)
    assert time.process_time() - started < 4
