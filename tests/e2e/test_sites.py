"""One spider for many configured sites: whose data it is goes from the seed to links, records and graves."""

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from aiohttp import web
from tests.e2e.running import call
from tests.e2e.small_site import serving

from trotline.testing.redis_server import redis

SPIDER = """
from trotline import Page, Spider

TITLES = {"7": "h1", "8": "h2"}
catalog = Spider("catalog", pace="200/s", hosts=["127.0.0.1"])


@catalog.page(name="scrape_product_list")
def listing(page: Page):
    yield page.follow("a", to=product)
    yield page.task("/gone", to=product)


@catalog.page(key="title", name="product", priority=20)
def product(page: Page):
    yield {"title": page.css(TITLES[page.site] + "::text").get(), "site": page.site, "found": page.meta.get("list")}
    if page.url.endswith("/gone"):
        raise ValueError("nothing to read")
"""
PAGES = {
    "/seven": '<a href="/seven/tea">tea</a>',
    "/eight": '<a href="/eight/cup">cup</a>',
    "/seven/tea": "<h1>Tea</h1><h2>no</h2>",
    "/eight/cup": "<h1>no</h1><h2>Cup</h2>",
    "/eight/pushed": "<h2>Jar</h2>",
    "/gone": "<h1>gone</h1><h2>gone</h2>",
}


@pytest.fixture
async def site() -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.Response:
        if request.path not in PAGES:
            return web.Response(status=404)
        return web.Response(text=PAGES[request.path], content_type="text/html")

    async with serving(answer) as url:
        yield url


@pytest.fixture(params=["file", "redis"])
def frontier(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "file":
        yield f"sqlite:{tmp_path}/frontier.db"
    else:
        with redis() as server:
            yield server.url


def seed(url: str, site_id: int, **more: object) -> dict[str, object]:
    """As the seed documents have it."""
    return {
        "task_id": "5f0c0f0e-3f0d-4f7e-9d5e-000000000000",
        "job_type": "scrape_product_list",
        "url": url,
        "site_id": site_id,
        "depth": 2,
        "retry_count": 0,
        "max_retries": 3,
        "proxy_pool": "",
        "created_at": "2025-03-01T12:00:00Z",
        **more,
    }


async def test_the_site_of_a_seed_is_that_of_all_it_leads_to(tmp_path: Path, site: str, frontier: str):
    (tmp_path / "catalog.py").write_text(SPIDER)
    pushed = seed(f"{site}/eight/pushed", 8, job_type="product", priority=5, meta={"list": "wanted"})
    seeds = [seed(f"{site}/seven", 7), seed(f"{site}/eight", 8), pushed]
    (tmp_path / "seeds.jsonl").write_text("".join(json.dumps(each) + "\n" for each in seeds))
    at = {"env": {"TROTLINE_FRONTIER": frontier, "TROTLINE_ALLOW_PRIVATE": "yes"}}

    started = await call(tmp_path, "run", "catalog.py", "--seeds", "seeds.jsonl", "--json", **at)

    assert (started.code, started.summary["dead"]) == (3, 1), started
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as db:
        rows = db.execute("SELECT site, key, data FROM records ORDER BY key").fetchall()
    assert [(whose, key, json.loads(data)) for whose, key, data in rows] == [
        ("8", "Cup", {"title": "Cup", "site": "8", "found": None}),
        ("8", "Jar", {"title": "Jar", "site": "8", "found": "wanted"}),
        ("7", "Tea", {"title": "Tea", "site": "7", "found": None}),
    ]

    [grave] = (await call(tmp_path, "dead", "catalog", "--json", **at)).events
    assert grave["task"]["job_type"] == "product"
    # Two sites led to one page: it is the first one's.
    assert grave["task"]["site_id"] in (7, 8)
    assert (grave["task"]["depth"], grave["task"]["max_retries"], grave["task"]["url"]) == (3, 3, f"{site}/gone")
    # What came out goes in again.
    (tmp_path / "again.jsonl").write_text(json.dumps(grave["task"]) + "\n")
    again = await call(tmp_path, "run", "catalog.py", "--fresh", "--seeds", "again.jsonl", "--json", **at)
    assert again.summary["dead"] == 1, again
