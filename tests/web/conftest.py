"""One browser and one fleet for all tests of pages."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.web.dashboard import OPERATE, Dashboard, dashboard

from trotline.testing.servers import missing, need

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

QUICK, SLOW = "quick", "slow"
"""Spiders: of a job that has ended, with graves; and one that is under way for longer than the tests."""


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Not for the whole session: its event loop runs in the main thread, where asyncio tests need one of their own."""
    if find_spec("playwright") is None:
        missing("playwright is not installed: pip install -r requirements/dev.txt")
    binary = need("chromium", "chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=str(binary), args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder: Path = tmp_path_factory.mktemp("fleet")
    with dashboard(folder) as opened:
        quick, slow = opened.spider(QUICK, "300/s"), opened.spider(SLOW, "0.1/s")
        for file in (quick, slow):
            opened.call("start", file, "--detach")
            opened.start("work", file, "--json", "--slots", "8")
        opened.until(opened.job_of(QUICK), lambda view: view["state"] == "finished")
        opened.until(opened.job_of(SLOW), lambda view: view["done"] >= 2)
        yield opened


class Viewer:
    """A browser that is logged in; its tabs must stay silent."""

    def __init__(self, context: "BrowserContext", fleet: Dashboard) -> None:
        self.context = context
        self.fleet = fleet
        self.heard: list[str] = []
        self.expected = ""
        """A message that is part of the test."""

    def tab(self) -> "Page":
        page = self.context.new_page()
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("pageerror", lambda error: self.heard.append(str(error)))
        return page

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not (self.expected and self.expected in text):
            self.heard.append(text)

    def log_in(self, token: str) -> "Page":
        page = self.tab()
        page.goto(f"{self.fleet.url}/login")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{self.fleet.url}/")
        return page

    def open(self, path: str) -> "Page":
        page = self.tab()
        answer = page.goto(self.fleet.url + path)
        assert answer is not None and answer.status == 200, (path, answer)
        return page


@pytest.fixture(scope="module")
def operator(browser: "Browser", fleet: Dashboard) -> Iterator[Viewer]:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    found = Viewer(context, fleet)
    found.log_in(OPERATE).close()
    yield found
    context.close()


@pytest.fixture(autouse=True)
def silent(operator: Viewer) -> Iterator[None]:
    yield
    for page in operator.context.pages:
        page.close()
    heard, operator.heard[:], operator.expected = list(operator.heard), [], ""
    assert not heard
