"""The pools that tasks can name, and what is said about others."""

import time

from trotline.rules import pool_names
from trotline.rules.known_pools import KnownPools, proxied

BOTH = KnownPools(("home", "isp"), {"@buyers": ("anna", "bert"), "@slots": ("1", "2")})


def test_pools_of_both_kinds_and_single_accounts_exist():
    for name in ("home", "@buyers", "@buyers/anna", "@slots/2"):
        assert pool_names.refusal(name, BOTH) == ""
        assert name in set(BOTH)
    assert len(BOTH) == len(set(BOTH)) == 8
    for name in ("buyers", "@home", "@buyers/", "@buyers/carl", "home/anna", "@sellers/anna", 7):
        assert name not in BOTH


def test_a_refusal_lists_pools_or_the_accounts_of_the_right_pool():
    assert pool_names.refusal("hom", BOTH) == (
        "there is no proxy pool 'hom'. Did you mean 'home'? Pools: @buyers, @slots, home, isp."
    )
    assert pool_names.refusal("@buyer", BOTH) == (
        "there is no account pool '@buyer'. Did you mean '@buyers'? Pools: @buyers, @slots, home, isp."
    )
    assert pool_names.refusal("@buyers/ana", BOTH) == (
        "there is no account '@buyers/ana'. Did you mean '@buyers/anna'? Accounts of @buyers: anna, bert."
    )
    assert "Pools: @buyers" in pool_names.refusal("@sellers/zoe", BOTH)


def test_a_refusal_stays_short_and_cheap_with_many_accounts():
    many = KnownPools((), {"@buyers": [f"user{number}" for number in range(10_000)]})
    begun = time.perf_counter()
    for _ in range(100):
        said = pool_names.refusal("@buyers/user", many)
    assert time.perf_counter() - begun < 1.0
    assert said.endswith("and 9,980 more.")
    assert len(said) < 300


def test_account_pools_alone_are_no_proxies():
    assert proxied(BOTH)
    assert proxied(("home",))
    assert not proxied(KnownPools((), {"@buyers": ("anna",)}))
    assert not proxied(("@buyers",))
    assert not proxied(())
    assert not proxied(None)


def test_the_hint_for_a_spider_without_a_pool_names_a_proxy_pool():
    what, hint = pool_names.unnamed("spider 'shop'", BOTH)
    assert "names no proxy pool" in what
    assert "Spider(pool='home')" in hint
    assert "Pools: @buyers, @slots, home, isp." in hint
