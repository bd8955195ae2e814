"""Cookies and headers of spiders and routes: what cannot work is refused."""

import pytest

from trotline import Page, Secret, Spider
from trotline.errors import SpiderRefused


def route(spider: Spider, **arguments: object):
    @spider.page(**arguments)
    def page(page: Page):
        yield {}

    return page


def test_a_route_says_what_its_requests_have_of_their_own():
    made = route(Spider("s"), headers={"x-a": "1", "authorization": "t"}, user_agent="Own/1", cookies="route")
    assert made.request is not None
    assert made.request.headers == {"x-a": "1", "User-Agent": "Own/1"}
    assert list(made.request.secret_headers) == ["authorization"]
    assert route(Spider("s")).request is None
    assert route(Spider("s")).keeps_cookies


@pytest.mark.parametrize(
    "arguments", [{"cookies": "jar"}, {"cookies": True}, {"user_agent": "a", "headers": {"User-Agent": "b"}}]
)
def test_what_cannot_be_meant_is_refused(arguments):
    with pytest.raises(SpiderRefused):
        route(Spider("s"), **arguments)


def test_a_session_without_cookies_has_no_effect_and_is_refused():
    for made in (route(Spider("s", cookies=False)), route(Spider("s"), cookies=False)):
        with pytest.raises(ValueError, match="session has no effect: page keeps no cookies"):
            made.task("https://shop.example/", session="anna")


def test_accounts_need_cookies():
    with pytest.raises(SpiderRefused, match="cookies=False with the accounts @buyers"):
        route(Spider("s", cookies=False), pool="@buyers")
    with pytest.raises(SpiderRefused, match="cookies=False"):
        Spider("s", cookies=False).login("@buyers")(lambda session: True)


def test_secrets_of_a_route_need_hosts_too():
    spider = Spider("s")
    route(spider, headers={"x-key": Secret("k")})
    with pytest.raises(SpiderRefused, match="has secrets"):
        _ = spider.secret_scope
