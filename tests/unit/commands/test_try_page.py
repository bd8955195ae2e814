"""What `trotline try` says about a page that could not be fetched."""

import asyncio
from typing import Any

import click
import pytest

from trotline import Page, Spider
from trotline.adapters.http.robots import RobotsTxt
from trotline.cli.try_view import facts, lines
from trotline.commands.try_page import Trial, Trier
from trotline.config.components import open_gate
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits

URL = "https://shop.example/p/1"
ROBOTS = "https://shop.example/robots.txt"


class Site:
    """One result for robots.txt, another for all pages."""

    def __init__(self, robots: Answer | Failure, page: Answer | Failure) -> None:
        self._robots = robots
        self._page = page

    async def fetch_start(self, *_: object) -> Answer | Failure:
        return self._robots

    async def fetch(self, *_: object) -> Answer | Failure:
        return self._page


def no_answer(trouble: FailureKind, why: str) -> Site:
    return Site(Failure(url=ROBOTS, trouble=trouble, why=why), Failure(url=URL, trouble=trouble, why=why))


def tried(site: Any) -> Trial:
    spider = Spider("shop", hosts=["*"])

    @spider.page
    def product(page: Page) -> None:
        """Nothing is extracted."""

    robots = RobotsTxt(site, agent="test", limits=Limits())
    trier = Trier(spider, site, open_gate(spider, {}), robots)
    return asyncio.run(trier.attempt(product, product.task(URL)))


def shown(site: Site) -> list[str]:
    return [click.unstyle(line) for line in lines(tried(site), "product")]


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        (FailureKind.CONNECT, "no connection: Connection refused"),
        (FailureKind.DNS, "shop.example does not resolve now: timeout"),
        (FailureKind.NO_SUCH_HOST, "shop.example does not exist"),
        (FailureKind.TLS, "certificate refused: expired"),
        (FailureKind.PROXY, "the proxy does not answer"),
    ],
)
def test_a_host_that_cannot_be_reached_is_said_to_be_so(trouble: FailureKind, why: str) -> None:
    headline, *rows = shown(no_answer(trouble, why))
    assert headline.startswith(f"unreachable: {why}  {URL}")
    assert rows[0] == "  robots   not asked"


def test_an_address_that_is_not_allowed_is_refused_and_its_robots_txt_was_not_asked() -> None:
    headline, *rows = shown(no_answer(FailureKind.GUARD, "port 9 is not a web port"))
    assert headline.startswith("refused: port 9 is not a web port")
    assert rows[0] == "  robots   not asked"


def test_a_robots_txt_that_cannot_be_read_is_named_and_no_refusal() -> None:
    site = Site(Answer(url=ROBOTS, status=503), Answer(url=URL, status=200, body=b"x"))
    headline, *rows = shown(site)
    assert headline.startswith("unreachable: robots.txt: 503")
    assert rows == ["  robots   cannot be read now; a run asks again before it visits the page"]


def test_a_robots_txt_that_forbids_the_page_is_a_refusal() -> None:
    rules = Answer(url=ROBOTS, status=200, body=b"User-agent: *\nDisallow: /p/")
    headline, *rows = shown(Site(rules, Answer(url=URL, status=200, body=b"x")))
    assert headline.startswith("refused: robots.txt")
    assert rows == ["  robots   forbidden"]


def test_a_robots_txt_that_leads_to_a_host_that_is_down_was_asked() -> None:
    moved = Failure(url="https://cdn.example/robots.txt", trouble=FailureKind.CONNECT, why="no connection")
    headline, *_ = shown(Site(moved, Answer(url=URL, status=200, body=b"x")))
    assert headline.startswith("unreachable: robots.txt: no connection")


def test_json_tells_whether_robots_txt_was_asked() -> None:
    down = facts(tried(no_answer(FailureKind.CONNECT, "no connection")), "product")
    assert (down["verdict"].kind, down["hops"][0]["robots"].asked) == ("unreachable", False)
    up = facts(tried(Site(Answer(url=ROBOTS, status=404), Answer(url=URL, status=200, body=b"x"))), "product")
    assert (up["verdict"].kind, up["hops"][0]["robots"].asked) == ("ok", True)
