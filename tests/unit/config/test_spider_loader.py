"""Promises of loading: whatever is wrong with an author's file, one message says what, where and what next."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.config.spider_loader import load, parse_ref
from trotline.errors import SpiderBroken, SpiderError, SpiderNotFound, SpiderRefused

GOOD = """
from trotline.spider.spider import Spider

shop = Spider("shop")


@shop.page(seeds=["https://shop.example/"])
def listing(page):
    yield {}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An empty working folder; what is imported from it is forgotten again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def broken(text: str, kind: type[SpiderError] = SpiderBroken) -> SpiderError:
    Path("shop.py").write_text(text)
    with pytest.raises(kind) as caught:
        load("shop.py")
    return caught.value


def test_the_only_spider_of_a_file_needs_no_name():
    Path("shop.py").write_text(GOOD)
    assert load("shop.py").name == "shop"
    assert list(load("shop.py:shop").routes) == ["listing"]


def test_loading_twice_gives_the_same_spider():
    Path("shop.py").write_text(GOOD)
    assert load("shop.py") is load("shop.py")


def test_a_module_is_found_from_the_working_folder(folder: Path):
    # A name of its own: a package that another test has imported stays in its process.
    (folder / "tea_and_coffee").mkdir()
    (folder / "tea_and_coffee" / "__init__.py").touch()
    (folder / "tea_and_coffee" / "tea.py").write_text(GOOD)
    assert load("tea_and_coffee.tea:shop").name == "shop"
    assert load("tea_and_coffee.tea").name == "shop"


def test_a_file_may_import_its_neighbours(folder: Path):
    (folder / "inner").mkdir()
    (folder / "inner" / "neighbour.py").write_text("NAME = 'tea'\n")
    (folder / "inner" / "shop.py").write_text("import neighbour\n" + GOOD.replace('"shop"', "neighbour.NAME"))
    assert load("inner/shop.py").name == "tea"


@pytest.mark.parametrize("name", ["json.py", "my-shop.py", "2nd.py", "trotline.py"])
def test_any_file_name_will_do(name: str):
    Path(name).write_text("import dataclasses\n" + GOOD + "\n@dataclasses.dataclass\nclass Row:\n    a: 'int'\n")
    assert load(name).name == "shop"


def test_a_missing_file_suggests_the_nearest():
    Path("shop.py").write_text(GOOD)
    with pytest.raises(SpiderNotFound, match=r"there is no file shpo\.py") as caught:
        load("shpo.py")
    assert "shop.py" in caught.value.hint


def test_a_url_in_the_place_of_a_spider_is_named_without_its_password():
    with pytest.raises(SpiderNotFound, match=r"redis://queue\.example/0 is a URL, not a spider"):
        load("redis://:hush@queue.example/0")


def test_a_missing_file_in_an_empty_folder_suggests_to_make_one():
    with pytest.raises(SpiderNotFound) as caught:
        load("shop.py")
    assert "trotline new" in caught.value.hint


@pytest.mark.parametrize("typed", ["quotes.tml", "quote.toml", "quotes.tomll"])
def test_a_typo_in_the_name_of_a_recipe_suggests_the_file(typed: str):
    Path("quotes.toml").touch()
    with pytest.raises(SpiderNotFound) as caught:
        load(typed)
    assert caught.value.hint == "Did you mean quotes.toml?"


def test_a_folder_is_not_a_spider():
    Path("shops.py").mkdir()
    with pytest.raises(SpiderNotFound, match="folder"):
        load("shops.py")


def test_a_missing_module_suggests_a_file():
    with pytest.raises(SpiderNotFound, match=r"no module 'shops\.tea'") as caught:
        load("shops.tea:shop")
    assert "shops/tea.py" in caught.value.hint


def test_a_file_without_spider_shows_how_one_is_made():
    assert "Spider(" in broken("x = 1\n", SpiderNotFound).hint


@pytest.mark.parametrize("address", ["shop.py", "shop.py:Shop"])
def test_a_spider_of_scrapy_is_run_by_scrapy(address: str):
    """Scrapy has no guard against private addresses, and so no setting for them."""
    pytest.importorskip("scrapy")
    Path("shop.py").write_text("from scrapy import Spider\nclass Shop(Spider):\n    name = 'tea'\n")
    with pytest.raises(SpiderNotFound, match=r"shop\.py has a spider of Scrapy") as caught:
        load(address)
    assert "scrapy crawl tea " in caught.value.hint
    assert "It needs no --allow-private" in caught.value.hint


def test_a_class_of_scrapy_that_is_only_imported_is_no_spider():
    pytest.importorskip("scrapy")
    assert "Spider(" in broken("from scrapy import Spider\n", SpiderNotFound).hint


def test_several_spiders_are_named():
    error = broken(GOOD + "\ntea = Spider('tea')\nalias = tea\n", SpiderNotFound)
    assert "2 spiders" in error.what
    assert error.hint == "Give one of: shop.py:shop, shop.py:tea"


def test_a_name_that_is_no_spider_says_what_it_is():
    Path("shop.py").write_text(GOOD)
    with pytest.raises(SpiderNotFound, match="'listing' is a Route, not a Spider") as caught:
        load("shop.py:listing")
    assert "shop.py:shop" in caught.value.hint
    with pytest.raises(SpiderNotFound, match="'nobody' is not there"):
        load("shop.py:nobody")


def test_a_syntax_error_shows_file_line_and_source():
    error = broken("x = 1\ny = = 2\n")
    assert "shop.py, line 2:  y = = 2" in error.what
    assert "SyntaxError" in error.what


def test_a_name_error_shows_its_line_and_a_guess():
    error = broken("\n\nshop = Spidr('shop')\n")
    assert "shop.py, line 3:  shop = Spidr('shop')" in error.what


def test_an_error_in_a_neighbour_is_shown_there():
    Path("neighbour.py").write_text("def price():\n    return 1 / 0\n")
    error = broken("import neighbour\nneighbour.price()\n")
    assert "neighbour.py, line 2:  return 1 / 0" in error.what


def test_a_missing_package_says_how_to_get_it():
    assert "pip install nowhere_to_be_found" in broken("import nowhere_to_be_found.inner\n").hint


def test_a_file_that_exits_is_broken_and_does_not_end_us():
    assert "line 2" in broken("import sys\nsys.exit(3)\n").what


def test_a_wrong_pace_is_refused_with_the_line_that_has_it():
    error = broken(GOOD.replace('Spider("shop")', 'Spider("shop", pace="fast")'), SpiderRefused)
    assert "pace" in error.what
    assert 'line 4:  shop = Spider("shop", pace="fast")' in error.what


def test_two_routes_of_one_name_are_refused_with_the_line():
    error = broken(GOOD + "\n\n@shop.page\ndef listing(page):\n    yield {}\n", SpiderRefused)
    assert "two routes named 'listing'" in error.what
    assert "shop.py, line" in error.what


def test_a_broken_file_can_be_corrected_and_loaded_again():
    broken("x = \n")
    Path("shop.py").write_text(GOOD)
    assert load("shop.py").name == "shop"


def test_a_file_that_is_no_text_is_broken():
    Path("shop.py").write_bytes(b"\x00\xff\xfe")
    with pytest.raises(SpiderBroken):
        load("shop.py")


@given(st.text(max_size=30))
def test_any_text_is_an_address_or_refused(text: str):
    try:
        ref = parse_ref(text)
    except SpiderNotFound as error:
        assert "shop.py" in error.hint
        return
    assert bool(ref.file) != bool(ref.module)


def test_three_files_of_one_name_are_three_spiders(tmp_path: Path) -> None:
    for name in ("tea", "coffee", "honey"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "shop.py").write_text(GOOD.replace('"shop"', repr(name)))

    names = [load(str(tmp_path / name / "shop.py")).name for name in ("tea", "coffee", "honey")]

    assert names == ["tea", "coffee", "honey"]


POOLED = """
from trotline import Spider

shop = Spider("shop", pool="{}")


@shop.page(pool="{}")
def listing(page): ...
"""


@pytest.mark.parametrize(
    ("own", "routes", "says"),
    [
        ("hme", "", "spider 'shop': there is no proxy pool 'hme'"),
        ("home", "hme", "spider 'shop', route 'listing': there is no proxy pool 'hme'"),
    ],
)
def test_a_spider_whose_pool_does_not_exist_is_refused_with_those_that_do(own: str, routes: str, says: str):
    Path("shop.py").write_text(POOLED.format(own, routes))
    with pytest.raises(SpiderRefused) as refused:
        load("shop.py", ("home", "datacenter"))
    assert refused.value.what == says
    assert refused.value.hint == "Did you mean 'home'? Pools: datacenter, home."
    with pytest.raises(SpiderRefused, match="no proxy pool") as refused:
        load("shop.py", ())
    assert "No proxies are set" in refused.value.hint
    assert load("shop.py").name == "shop", "not known here: not checked"


def test_a_spider_whose_pools_exist_is_loaded():
    Path("shop.py").write_text(POOLED.format("home", "datacenter"))
    assert load("shop.py", ("home", "datacenter")).pools == ("home", "datacenter")
