"""A package of its own brings a sink and a frontier: installed beside Trotline, every command works with its URLs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.running import call

from trotline.testing import DemoShop

PLUGIN = Path(__file__).parent.parent / "plugin"
SPIDER = """
from trotline import Page, Spider

shop = Spider("shop", pace="200/s", concurrency=32)


@shop.page(seeds=["{url}/catalog"])
def listing(page: Page):
    yield page.follow(".card a", to=product)
    yield page.follow(".pager a")


@shop.page(key="sku")
def product(page: Page):
    yield {{"sku": page.css("[itemprop=sku]::text").get()}}
"""
PLACES = ("--frontier", "journal:tasks.db", "--sink", "folder:rows")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the package's own files and installed where nothing else is."""
    built, target = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", built, PLUGIN], check=True)
    [wheel] = built.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", target, wheel], check=True)
    return target


async def test_every_command_works_with_the_urls_of_another_package(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed)}

    async def trotline(*words: str) -> str:
        ended = await call(tmp_path, *words, env=environment)
        assert ended.code == 0, (words, ended)
        return ended.out

    async with DemoShop(products=20) as shop:
        (tmp_path / "shop.py").write_text(SPIDER.format(url=shop.url))
        assert "folder:rows will be made by the first run" in await trotline("doctor", "shop.py", *PLACES)
        summary = await trotline("run", "shop.py", "--allow-private", *PLACES)
        assert "records   20 in rows" in summary
        assert "ls rows/*.json" in summary
        assert "folder:rows opens" in await trotline("doctor", "shop.py", *PLACES)
        rows = [json.loads(line) for line in (await trotline("export", "shop", *PLACES)).splitlines()]
        assert len({row["sku"] for row in rows}) == 20
        told = await trotline("trace", rows_url(tmp_path), "--spider", "shop.py", *PLACES)
        assert "1 row" in told
        watched = await trotline("watch", "shop", "--json", "--frontier", PLACES[1])
        assert json.loads(watched.splitlines()[-1])["done"] > 20
    calls = [json.loads(line)["call"] for line in (tmp_path / "tasks.db.journal").read_text().splitlines()]
    assert {"put", "lease", "settle", "seal", "announce"} <= set(calls)


def rows_url(folder: Path) -> str:
    """The page of one of the rows."""
    url: str = json.loads(next((folder / "rows").glob("*.json")).read_text())[3]
    return url
