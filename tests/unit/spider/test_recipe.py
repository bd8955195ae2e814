"""Recipes: what they extract, what is refused, and the Python that is written from them."""

from pathlib import Path

import pytest

from trotline.config.spider_loader import load
from trotline.errors import SpiderError
from trotline.spider.recipe import read, spider_of
from trotline.spider.recipe_code import code_of
from trotline.spider.recipe_values import number
from trotline.testing import visit

RECIPE = """
start = ["https://shop.example/catalog?page={1..3}", "https://shop.example/new"]
key = ["sku", "size"]
kind = "product"
[spider]
pace = "5/s"
headers = { "accept-language" = "de" }
[listing]
links = ".card a"
pager = [".pager a", ".more"]
[fields]
sku = "[itemprop=sku]::text"
size = { const = 3 }
price = { css = ".price::text", type = "number", decimal = "," }
tags = { css = ".tag::text", all = true }
image = { xpath = "//img/@src", url = true }
name = { json_ld = "offers.seller.name" }
no = { css = "h1::text", re = 'No\\. (\\d+)' }
box = { css = ".box", type = "html" }
"""
PAGE = """<script type="application/ld+json">{"offers": [{"seller": {"name": "Demo"}}]}</script>
<h1> Tea  No. 17 </h1><b itemprop=sku> T1\n</b><i class=price>1.234,50 EUR</i><p class=tag>a</p>
<p class=tag> </p><p class=tag>b</p><img src=/i.png><img src="http://["><div class=box><u>x</u></div>"""
DATA = {
    "sku": "T1",
    "size": 3,
    "price": 1234.5,
    "tags": ["a", "b"],
    "image": "https://example.com/i.png",
    "name": "Demo",
    "no": "17",
    "box": '<div class="box"><u>x</u></div>',
}


def written(folder: Path, text: str, name: str = "teas.toml") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_recipe_is_a_spider(tmp_path: Path):
    spider = load(written(tmp_path, RECIPE))

    assert spider.name == "teas"
    assert [task.url for task in spider.seeds()] == [
        *(f"https://shop.example/catalog?page={n}" for n in (1, 2, 3)),
        "https://shop.example/new",
    ]
    [record] = visit(spider.route("product"), PAGE).records
    assert (record.kind, record.data) == ("product", DATA)
    tasks = visit(
        spider.route("listing"), "<p class=card><a href=/p/1></a></p><p class=pager><a href=/2></a></p>"
    ).tasks
    assert [(task.url, task.route) for task in tasks] == [
        ("https://example.com/p/1", "product"),
        ("https://example.com/2", "listing"),
    ]


@pytest.mark.parametrize("listing", ["links = '.card a'", "items = '.card'\npager = '.next'", "pager = '.next'"])
def test_the_python_that_is_written_from_it_does_the_same(tmp_path: Path, listing: str):
    text = RECIPE.replace('links = ".card a"\npager = [".pager a", ".more"]', listing)
    if "items" in listing:
        text = text.replace('name = { json_ld = "offers.seller.name" }\n', "")
    recipe = read(Path(written(tmp_path, text)))
    spider = spider_of(recipe, tmp_path / "teas.toml")
    code = code_of(recipe, spider.name, "teas")
    again = load(written(tmp_path, code, f"teas_{listing[:2]}.py"))

    assert list(again.seeds()) == list(spider.seeds())
    assert set(again.routes) == set(spider.routes)
    html = f"<div class=card><a href=/p/1>x</a>{PAGE}</div><a class=next href=/2>2</a>"
    for name in spider.routes:
        one, other = visit(spider.route(name), html), visit(again.route(name), html)
        assert one == other
        assert one.records or one.tasks


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Object missing required field `fields`"),
        ("[fields]\na = 'h1'", "start is empty"),
        ("start = 'https://a.example/'\nkey = 'b'\n[fields]\na = 'h1'", "key names 'b', which is no field"),
        ("start = 'https://a.example/'\n[fields]\na = 'h1['", "fields.a.css"),
        ("start = 'https://a.example/'\n[fields]\na = {xpath = '//['}", "fields.a.xpath"),
        ("start = 'https://a.example/'\n[fields]\na = {css = 'h1', re = '('}", "fields.a.re"),
        ("start = 'https://a.example/'\n[fields]\na = {css = 'h1', json_ld = 'x'}", "fields.a has css and json_ld"),
        ("start = 'https://a.example/'\n[fields]\na = {css = 'h1', typ = 1}", "fields.a has no key 'typ'"),
        ("start = 'https://a.example/'\n[fields]\na = {css = 'h1', type = 'txt'}", "fields.a.type is 'txt'"),
        ("start = 'https://a.example/'\n[fields]\na = {css = 'h1', decimal = ';'}", "fields.a.decimal is ';'"),
        ("start = 'https://a.example/'\n[listing]\nlink = 'a'\n[fields]\na = 'h1'", "listing has no key 'link'"),
        ("start = 'https://a.example/'\nkinds = 'a'\n[fields]\na = 'h1'", "the recipe has no key 'kinds'"),
        ("start = 'https://a.example/'\n[fields]\na = 'h1'\n[spider]\nmax_page = 1", "[spider] has no key 'max_page'"),
        ("start = 'https://a.example/'\n[fields]\na = 'h1'\n[spider]\npace = 'fast'", "pace"),
        ("start = 'https://a.example/'\n[fields]\na = 'h1'\n[spider]\nspeed = 1", "[spider]"),
        ("start = 'https://a.example/{1..9999999}'\n[fields]\na = 'h1'", "is not a range"),
        ("start = 'https://a.example/{nmae}'\n[fields]\na = 'h1'", "start has {nmae}, which stands for nothing"),
        ("start = ['https://a.example/', 'https://a.example/{1...9}']\n[fields]\na = 'h1'", "start has {1...9}"),
        ("start = 'https://a.example/{1..3}/{1..3}'\n[fields]\na = 'h1'", "start has {1..3}"),
        ("start = 'https://a.example/{1..3'\n[fields]\na = 'h1'", "start has {1..3"),
        ("start = 'https://a.example/1}'\n[fields]\na = 'h1'", "start has }"),
        ("sitemap = 'https://a.example/{1..3}.xml'\n[fields]\na = 'h1'", "sitemap has {1..3}"),
        ("start = ", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named_with_its_key(tmp_path: Path, text: str, said: str):
    with pytest.raises(SpiderError) as error:
        load(written(tmp_path, text))
    assert said in str(error.value)
    assert "teas.toml" in str(error.value) or "range" in said


def test_a_recipe_cannot_put_code_into_what_is_written(tmp_path: Path):
    evil = '\\"); import os; os.abort() #'
    text = f'start = "https://a.example/?{evil}"\nkind = "a-b"\n[fields]\n"{evil}" = {{ const = "{evil}" }}'
    recipe = read(Path(written(tmp_path, text)))
    code = code_of(recipe, "teas", "teas")
    compiled = compile(code, "x", "exec")
    assert "abort" not in compiled.co_names


@pytest.mark.parametrize(
    ("text", "decimal", "value"),
    [
        ("€1,234.50", ".", 1234.5),
        ("1.234,50 EUR", ",", 1234.5),
        ("1 234", ".", 1234),
        ("-5 %", ".", -5),
        ("from 10.", ".", 10),
        ("none", ".", None),
        ("SKU-42", ".", 42),
        ("$.99", ".", 0.99),
        ("−1 234 567,5", ",", -1234567.5),
        ("5,– €", ",", 5),
    ],
)
def test_numbers_as_people_write_them(text: str, decimal: str, value: float | None):
    assert number(text, decimal) == value


@pytest.mark.parametrize(
    ("text", "decimal"),
    [
        ("12, 14 left", "."),
        ("Sizes 38 40 42", "."),
        ("v1.2.3", "."),
        ("4,99 €", "."),
        ("1.234,50 EUR", "."),
        ("1,234.567,89", "."),
        ("1,234 567", "."),
        ("0,123", "."),
        ("10-20", "."),
        ("2 for 5", "."),
        ("9" * 5_000, "."),
    ],
)
def test_a_number_is_never_made_up(text: str, decimal: str):
    assert number(text, decimal) is None


ELEMENTS = """
start = "https://shop.example/"
[fields]
code = "main h1"
path = { xpath = "//main/h1" }
link = { css = "main a", url = true }
picture = { xpath = "//main/img", url = true }
lazy = { css = "main img::attr(data-src)", url = true }
none = { css = "main h1", url = true }
price = { css = "main [data-id]", type = "number" }
offer = { css = ".offer", type = "number" }
part = { css = "main h1", re = '^(\\w+)' }
markup = { css = "main h1", type = "html" }
"""


def test_an_element_stands_for_its_text_or_its_link(tmp_path: Path):
    html = """<main><h1 class=x> Green\n <b>tea</b></h1><a class=more href=/p/1>no URL</a>
        <img src=/i.png data-src=/big.png><i data-id=77>from 4.50 EUR</i>
        <p class=offer>sale</p><p class=offer>2 for 5</p><p class=offer>9</p></main>"""
    recipe = read(Path(written(tmp_path, ELEMENTS)))
    spider = spider_of(recipe, tmp_path / "teas.toml")
    again = load(written(tmp_path, code_of(recipe, spider.name, "teas"), "teas_elements.py"))
    for each in (spider, again):
        [record] = visit(each.route("item"), html).records
        assert record.data == {
            "code": "Green tea",
            "path": "Green tea",
            "link": "https://example.com/p/1",
            "picture": "https://example.com/i.png",
            "lazy": "https://example.com/big.png",
            "none": None,
            "price": 4.5,
            # The first text with a digit decides: the next one may be of another product.
            "offer": None,
            "part": "Green",
            "markup": '<h1 class="x"> Green\n <b>tea</b></h1>',
        }


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[fields]\na = {css = 'h1', typ = 'text'}", "Did you mean type? Keys: css, xpath, json_ld, const, re, type, "),
        ("[fields]\na = {css = 'h1', type = 'txt'}", "Did you mean text? Values: html, number, text"),
        ("[fields]\na = 'h1'\n[spider]\nmax_page = 1", "Did you mean max_pages? Keys: "),
    ],
)
def test_a_wrong_key_or_value_is_answered_with_the_valid_ones(tmp_path: Path, text: str, hint: str):
    with pytest.raises(SpiderError) as error:
        load(written(tmp_path, f"start = 'https://a.example/'\n{text}"))
    assert error.value.hint.startswith(hint)


def test_an_escaped_brace_belongs_to_the_url(tmp_path: Path):
    recipe = read(Path(written(tmp_path, "start = 'https://a.example/%7Bid%7D?p={1..2}'\n[fields]\na = 'h1'")))
    assert recipe.starts == ["https://a.example/%7Bid%7D?p=1", "https://a.example/%7Bid%7D?p=2"]


@pytest.mark.parametrize(
    ("written_as", "numbers"),
    [("{001..003}", ["001", "002", "003"]), ("{08..10}", ["08", "09", "10"]), ("{0..2}", ["0", "1", "2"])],
)
def test_numbers_of_start_are_padded_as_in_the_shell(tmp_path: Path, written_as: str, numbers: list[str]):
    recipe = read(Path(written(tmp_path, f"start = 'https://a.example/{written_as}'\n[fields]\na = 'h1'")))
    assert recipe.starts == [f"https://a.example/{number}" for number in numbers]
