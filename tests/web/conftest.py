"""One browser and one fleet for all tests of pages."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.web.dashboard import Dashboard, dashboard

from trotline.testing.servers import missing, need

if TYPE_CHECKING:
    from playwright.sync_api import Browser

QUICK, SLOW = "quick", "slow"
"""Spiders: of a job that has ended, with graves; and one that is under way for longer than the tests."""


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    if find_spec("playwright") is None:
        missing("playwright is not installed: pip install -r requirements/dev.txt")
    binary = need("chromium", "chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=str(binary), args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder: Path = tmp_path_factory.mktemp("fleet")
    with dashboard(folder) as opened:
        quick, slow = opened.spider(QUICK, "300/s"), opened.spider(SLOW, "0.5/s")
        for file in (quick, slow):
            opened.call("start", file, "--detach")
            opened.start("work", file, "--json", "--slots", "8")
        opened.until(opened.job_of(QUICK), lambda view: view["state"] == "finished")
        opened.until(opened.job_of(SLOW), lambda view: view["done"] >= 2)
        yield opened
