"""What `trotline shell` makes of the page in front of its user."""

import asyncio
from collections.abc import Iterator
from typing import Any

import click
import pytest

from trotline import Page, Spider
from trotline.cli.shell_console import ShellConsole
from trotline.cli.try_view import lines
from trotline.commands.shell import ShellSession
from trotline.commands.try_page import Trier
from trotline.config.components import open_gate
from trotline.errors import SpiderRefused
from trotline.model.answer import Answer
from trotline.model.verdict import Kind
from trotline.processes.watchdog import Guard

URL = "https://shop.example/p/1"


class Site:
    """Every page is the same."""

    def __init__(self, status: int) -> None:
        self._status = status

    async def fetch(self, *_: object) -> Answer:
        headers = (("content-type", "text/html"),)
        return Answer(url=URL, status=self._status, headers=headers, body=b"<h1>Not here</h1>")


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def session(runner: asyncio.Runner, status: int) -> ShellSession:
    spider = Spider("shop", hosts=["*"], pace="1000/s")

    @spider.page
    def product(page: Page) -> Iterator[dict[str, Any]]:
        yield {"title": page.css("h1::text").get()}

    @spider.page(status=404)
    def missing(page: Page) -> Iterator[dict[str, Any]]:
        yield {"missing": page.url}

    site: Any = Site(status)
    return ShellSession(spider, product, Trier(spider, site, open_gate(spider, {}), None), runner, Guard())


def test_a_page_that_a_run_would_not_read_is_not_read(runner: asyncio.Runner) -> None:
    here = session(runner, 404)
    assert here.fetch(URL).css("h1::text").get() == "Not here"
    tried = here.trial()
    assert (tried.verdict.kind, tried.harvest) == (Kind.GONE, None)
    shown = [click.unstyle(line) for line in lines(tried, "product")]
    assert "  read     no: only a route with status=404 reads it" in shown


def test_each_route_says_which_statuses_it_reads(runner: asyncio.Runner) -> None:
    here = session(runner, 404)
    here.fetch(URL)
    tried = here.trial("missing")
    assert tried.harvest is not None
    assert (tried.verdict.kind, len(tried.harvest.records)) == (Kind.OK, 1)
    assert here.trial("product").harvest is None
    assert here.trial(here.spider.routes["missing"]).harvest is not None


def test_a_saved_page_is_read_whatever_it_says(runner: asyncio.Runner) -> None:
    here = session(runner, 404)
    here.fetch(URL)
    empty = Answer(url=URL, status=200, body=b"")
    here.show_saved(here.spider.routes["product"].task(URL), empty)
    assert here.trial().harvest is not None
    here.fetch(URL)
    assert here.trial().harvest is None


def test_what_is_no_route_is_refused_with_the_routes_there_are(runner: asyncio.Runner) -> None:
    here: Any = session(runner, 200)
    here.fetch(URL)
    for wrong in ("nope", 3):
        with pytest.raises(SpiderRefused, match=r"has no route '(nope|3)'\n  It has: product, missing"):
            here.trial(wrong)


def test_an_error_and_its_hint_are_two_lines(runner: asyncio.Runner, capsys: pytest.CaptureFixture[str]) -> None:
    here = session(runner, 200)
    here.fetch(URL)
    console = ShellConsole({"try_": here.trial})
    assert console.run_one("try_('no\\x1bpe')")
    assert console.failed
    assert capsys.readouterr().err == "spider 'shop' has no route 'no\\x1bpe'\n  It has: product, missing.\n"
