"""What responses through a proxy pool mean for the proxy, before Scrapy acts on them."""

import random

import pytest
from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler

from trotline.bridges.scrapy.captive_proxies import CaptiveProxies
from trotline.bridges.scrapy.pool_middlewares import GoOut, Judge
from trotline.bridges.scrapy.visits import Visit
from trotline.bridges.scrapy.way_out import WayOut
from trotline.model.lease import Lease
from trotline.model.outcome import Snooze
from trotline.model.proxy import Proxy
from trotline.model.proxy_pool import MemberResult
from trotline.model.task import Task
from trotline.rules.captive_pages import OTHERS, PATHS

PORTAL = "http://portal.example/login?from="
HONEST, CAPTIVE = (Proxy(host=f"192.0.2.{number}", port=3128) for number in (1, 2))


class World:
    """The two middlewares, connected as the scheduler connects them."""

    def __init__(self) -> None:
        crawler = get_crawler(Spider)
        self.visits: dict[Request, Visit] = {}
        self.go_out, self.judge = GoOut(crawler), Judge(crawler)
        self.go_out.captive = self.judge.captive = CaptiveProxies()
        self.judge.handles = lambda response, request: False
        for one in (self.go_out, self.judge):
            one.visits, one.chance = self.visits, random.Random(1)

    def answer(self, proxy: Proxy, path: str, *, to: str = "", scheme: str = "http") -> tuple[Visit, bool]:
        """The visit of a page, and does it go back to the frontier? `to`: a redirect."""
        url = f"{scheme}://shop.example{path}"
        task = Task(url=url, route="parse", lane="shop.example via dc", fingerprint=len(self.visits) + 1, pool="dc")
        number = len(self.visits) + 1
        visit = Visit(Lease(task, number, 0.0, 1.0, 0.0, 0.0, member=7), Request(url), WayOut(proxy))
        self.visits[visit.request] = visit
        assert self.go_out.process_request(visit.request) is None
        if to:
            got = self.go_out.process_response(visit.request, Response(url, status=302, headers={"Location": to}))
        else:
            page = HtmlResponse(url, body=f"<h1>{path}</h1>".encode())
            assert self.go_out.process_response(visit.request, page) is page
            got = self.judge.process_response(visit.request, page)
        return visit, isinstance(got, Request)


@pytest.fixture
def world() -> World:
    made = World()
    for number in range(OTHERS):
        made.answer(HONEST, f"/honest/{number}")
    return made


def test_redirects_of_a_captive_proxy_are_not_followed(world: World) -> None:
    """The page would count as moved, and the portal would be visited in its place."""
    for number in range(PATHS - 1):
        _, back = world.answer(CAPTIVE, f"/p/{number}", to=f"{PORTAL}{number}")
        assert not back

    visit, back = world.answer(CAPTIVE, "/p/last", to=f"{PORTAL}last")

    assert back
    assert visit.way is not None
    assert isinstance(visit.way.outcome, Snooze)
    assert "captive page" in visit.way.outcome.why
    assert visit.settlement().member is MemberResult.FAULT


@pytest.mark.parametrize("target", ["https://www.shop.example/p/", "/moved/"])
def test_redirects_within_a_site_are_the_sites(world: World, target: str) -> None:
    assert not any(world.answer(CAPTIVE, f"/p/{number}", to=f"{target}{number}")[1] for number in range(PATHS + 2))


def test_redirects_that_other_proxies_get_are_the_sites(world: World) -> None:
    world.answer(HONEST, "/gone", to=f"{PORTAL}gone")

    assert not any(world.answer(CAPTIVE, f"/p/{number}", to=f"{PORTAL}{number}")[1] for number in range(PATHS + 2))


def test_redirects_in_a_tunnel_are_the_sites(world: World) -> None:
    found = [world.answer(CAPTIVE, f"/p/{number}", to=PORTAL, scheme="https")[1] for number in range(PATHS + 2)]
    assert not any(found)


def test_a_page_between_redirects_is_the_sites_and_ends_their_row(world: World) -> None:
    for number in range(PATHS + 2):
        world.answer(CAPTIVE, f"/page/{number}")
        assert not world.answer(CAPTIVE, f"/p/{number}", to=f"{PORTAL}{number}")[1]
