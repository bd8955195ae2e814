"""Proxy pools in a spider: of all its tasks, of a route, of one task; and paces per proxy."""

from typing import Any

import pytest

from trotline import Page, Spider
from trotline.errors import SpiderRefused
from trotline.model.answer import Answer
from trotline.model.pace import Pace, Rate
from trotline.model.task import Task


def page_of(spider: Spider, route: str = "listing") -> Page:
    answer = Answer(url="https://shop.example/", status=200, body=b'<a href="/p/1">one</a>')
    return Page(Task(url=answer.url, route=route), answer, spider.routes[route])


def shop(**fields: Any) -> Spider:
    spider = Spider("shop", **fields)

    @spider.page(seeds=["https://shop.example/"], sitemap="https://shop.example/sitemap.xml")
    def listing(page: Page): ...

    @spider.page(pool="residential")
    def product(page: Page): ...

    return spider


def test_a_route_has_its_own_pool_or_the_spiders() -> None:
    spider = shop(pool="datacenter")
    assert [route.pool for route in spider.routes.values()] == ["datacenter", "residential"]
    assert spider.pools == ("datacenter", "residential")
    assert [task.pool for task in spider.seeds()] == ["datacenter", "datacenter"]
    assert spider.route("product").task("https://shop.example/p/1").pool == "residential"
    assert spider.route("product").task("https://shop.example/p/1", pool="mobile").pool == "mobile"
    assert spider.route("product").seed_defaults()["proxy_pool"] == "residential"
    assert Spider("plain").pools == ()


def test_followed_links_take_the_pool_of_their_route() -> None:
    page = page_of(shop(pool="datacenter"))
    assert page.follow("a").pool == "datacenter"
    assert page.follow("a", to="product").pool == "residential"
    assert page.follow("a", to="product", pool="mobile").pool == "mobile"
    with pytest.raises(ValueError, match="letters, digits"):
        page.follow("a", pool="a via b")


@pytest.mark.parametrize("pool", ["a b", "a via b", 7, None, "x" * 65, "a\nb"])
def test_the_name_of_a_pool_is_checked(pool: Any) -> None:
    with pytest.raises(SpiderRefused, match="pool"):
        Spider("shop", pool=pool)
    with pytest.raises(SpiderRefused, match=r"route 'page'.*pool"):
        Spider("shop").page(name="page", pool=pool)(lambda page: None)


def test_a_pace_may_be_per_proxy() -> None:
    spider = shop(pool="home", pace="30/m per proxy")
    pace = spider.rules.default
    assert (pace.rate, pace.per_proxy) == (Rate(0.5), True)
    # One visit at a time through each proxy is the limit: eight would waste the ninth.
    assert pace.concurrency == 10_000
    assert Spider("shop", pool="home", pace="1/s per proxy", concurrency=20).rules.default.concurrency == 20
    assert Spider("shop").rules.default == Pace()


@pytest.mark.parametrize("pace", ["1/s per proxy", " 1/s  per  proxy ", Pace(per_proxy=True)])
def test_per_proxy_without_a_pool_is_refused(pace: Any) -> None:
    with pytest.raises(SpiderRefused, match='pace is "per proxy", and there is no proxy pool') as refused:
        Spider("shop", pace=pace)
    assert 'pool="residential"' in refused.value.hint
    with pytest.raises(SpiderRefused, match=r"lanes\['shop.example'\] is \"per proxy\""):
        Spider("shop", lanes={"shop.example": pace})


@pytest.mark.parametrize(
    "pace", ["per proxy", "fast per proxy", "1/s per host", "1/s per proxy please", "1/sper proxy"]
)
def test_what_is_no_pace_is_refused_with_the_forms(pace: str) -> None:
    with pytest.raises(SpiderRefused, match='write it like "2/s"'):
        Spider("shop", pool="home", pace=pace)


def test_the_pace_of_a_host_holds_through_the_pools_of_the_spider() -> None:
    spider = shop(pool="datacenter", lanes={"shop.example": "2/s", "api.example via residential": "5/s"})
    rates = {lane: str(pace.rate) for lane, pace in spider.rules.lanes.items()}
    assert rates == {
        "shop.example": "2/s",
        "shop.example via datacenter": "2/s",
        "shop.example via residential": "2/s",
        "api.example via residential": "5/s",
    }


def test_a_pace_per_proxy_is_never_that_of_a_direct_lane() -> None:
    spider = Spider("shop", pool="home", lanes={"shop.example": "1/s per proxy", "b.example via dc": "2/s per proxy"})
    assert {lane: pace.per_proxy for lane, pace in spider.rules.lanes.items()} == {
        "shop.example via home": True,
        "b.example via dc": True,
    }
