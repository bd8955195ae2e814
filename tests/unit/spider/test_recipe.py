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
        ("start = 'https://a.example/'\n[fields]\na = {css = 'h1', typo = 1}", "unknown field `typo`"),
        ("start = 'https://a.example/'\n[fields]\na = 'h1'\n[spider]\npace = 'fast'", "pace"),
        ("start = 'https://a.example/'\n[fields]\na = 'h1'\n[spider]\nspeed = 1", "[spider]"),
        ("start = 'https://a.example/{1..9999999}'\n[fields]\na = 'h1'", "is not a range"),
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
    ],
)
def test_numbers_as_people_write_them(text: str, decimal: str, value: float | None):
    assert number(text, decimal) == value
