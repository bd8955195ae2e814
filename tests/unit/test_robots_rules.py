"""The quick look at a robots.txt never allows what the real matcher forbids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from trotline.rules.robots import Prefilter, products_only

PATTERNS = st.text("/ab?=*$.%é", max_size=8)
NAMES = st.sampled_from(
    ["Disallow: ", "disallow:", "Disallow ", "Disallow\t", "Dissalow : ", "Allow: ", " DISALLOW:  "]
)
LINES = st.lists(st.one_of(st.tuples(NAMES, PATTERNS).map("".join), st.just("# note"), st.just("User-agent: x")))
PATHS = st.text("/ab?=.%é;", max_size=10).map(lambda rest: f"/{rest}")


@given(LINES, PATHS)
def test_what_is_surely_allowed_is_allowed(lines: list[str], path: str) -> None:
    text = "\n".join(["User-agent: *", *lines])
    if Prefilter(text).surely_allowed(path):
        assert Protego.parse(text).can_fetch(f"https://a.example{path}", "trotline")


@given(LINES, PATHS)
def test_when_nothing_is_disallowed_everything_is_allowed(lines: list[str], path: str) -> None:
    text = "\n".join(["User-agent: *", *lines])
    if Prefilter(text).empty:
        assert Protego.parse(text).can_fetch(f"https://a.example{path}", "trotline")


def test_ordinary_pages_need_no_closer_look() -> None:
    quick = Prefilter("User-agent: *\nDisallow: /admin/\nDisallow: /*?sort=\nDisallow: /cart$\n")
    assert quick.surely_allowed("/p/tea?x=1")
    assert not quick.surely_allowed("/admin/x")
    assert not quick.surely_allowed("/p?sort=1")
    assert not quick.surely_allowed("/cart")
    assert not quick.surely_allowed("/p/%61")
    assert not quick.empty


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("User-agent: FooBot", "User-agent: FooBot"),
        ("User-agent: Foo Bar", "User-agent: Foo"),
        ("user-agent:FooBot/2.1 (+http://foo.example) # ours", "user-agent:FooBot# ours"),
        ("USER AGENT: foo-bot_x 7", "USER AGENT: foo-bot_x"),
        ("  User-agent : Foo Bar\r", "  User-agent : Foo\r"),
        ("User-agent: *", "User-agent: *"),
        ("User-agent: * everybody", "User-agent: *"),
        ("User-agent: 360Spider", "User-agent: 360Spider"),
        ("User-agent:", "User-agent:"),
        ("Disallow: /user-agent: a b", "Disallow: /user-agent: a b"),
    ],
)
def test_an_agent_is_named_by_its_product_alone(line: str, read: str) -> None:
    assert products_only(f"{line}\nDisallow: /x y\n") == f"{read}\nDisallow: /x y\n"
