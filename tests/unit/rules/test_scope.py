"""Scope: what belongs to the crawl, and the reason when it does not."""

from typing import Any

import pytest

from trotline.rules.scope import Scope, out_of_scope
from trotline.rules.urls import Address, read


def at(url: str) -> Address:
    address = read(url)
    assert isinstance(address, Address)
    return address


def test_no_rules_admit_everything_at_any_depth() -> None:
    assert out_of_scope(Scope(), at("http://any.example/"), 1_000_000) is None


def test_max_depth_counts_links_from_a_seed() -> None:
    assert out_of_scope(Scope(max_depth=20), at("http://any.example/"), 20) is None
    assert out_of_scope(Scope(max_depth=20), at("http://any.example/"), 21) == "depth"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://shop.example/", None),
        ("https://SHOP.example./x", None),
        ("http://www.shop.example/", None),
        ("http://a.b.shop.example:8080/", None),
        ("http://notshop.example/", "host"),
        ("http://shop.example.evil.test/", "host"),
        ("http://example/", "host"),
        ("http://127.0.0.1:8000/", None),
        ("http://127.0.0.2:8000/", "host"),
        ("http://[::1]/", None),
        ("http://xn--mnchen-3ya.example/", None),
        ("http://api.example:81/", None),
        ("http://v2.api.example:81/", None),
        ("http://api.example/", "host"),
    ],
)
def test_a_host_admits_itself_and_its_subdomains(url: str, why: str | None) -> None:
    scope = Scope(hosts=["Shop.Example", "127.0.0.1", "[::1]", "münchen.example", "api.example:81"])

    assert out_of_scope(scope, at(url), 0) == why


def test_patterns_are_searched_in_the_url_and_exclude_wins() -> None:
    scope = Scope(include=[r"/p/\d+", "/list"], exclude=[r"[?&]sort="])

    assert out_of_scope(scope, at("http://a.example/p/17"), 1) is None
    assert out_of_scope(scope, at("http://a.example/list"), 1) is None
    assert out_of_scope(scope, at("http://a.example/about"), 1) == "not included"
    assert out_of_scope(scope, at("http://a.example/list?sort=up"), 1) == "excluded"


def test_reasons_come_in_a_stable_order() -> None:
    scope = Scope(hosts=["a.example"], include=["/p/"], exclude=["/x/"], max_depth=1)

    assert out_of_scope(scope, at("http://b.example/x/"), 9) == "host"
    assert out_of_scope(scope, at("http://a.example/x/"), 9) == "excluded"
    assert out_of_scope(scope, at("http://a.example/y/"), 9) == "not included"
    assert out_of_scope(scope, at("http://a.example/p/"), 9) == "depth"


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ({"include": ["("]}, r"'\('.*not a regular expression.*write it like"),
        ({"exclude": ["[a"]}, r"'\[a'.*not a regular expression"),
        ({"hosts": ["https://shop.example/"]}, "write the host alone"),
        ({"hosts": [""]}, "write the host alone"),
        ({"hosts": ["a b"]}, "write the host alone"),
        ({"hosts": "shop.example"}, r"write a list: hosts=\['shop.example'\]"),
        ({"include": "/p/"}, "write a list"),
        ({"max_depth": -1}, "write 0 for the seeds alone"),
    ],
)
def test_a_scope_that_cannot_work_says_what_to_write(wrong: dict[str, Any], advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        Scope(**wrong)


def test_a_scope_of_many_hosts_answers_like_one_of_few() -> None:
    scope = Scope(hosts=[f"h{number}.example" for number in range(10_000)])

    assert out_of_scope(scope, at("http://www.h9999.example/"), 0) is None
    assert out_of_scope(scope, at("http://h10000.example/"), 0) == "host"
