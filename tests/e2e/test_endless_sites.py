"""The endless sites of the demo shop, crawled to their end: each trap is left, counted, and shown with an example."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.e2e.running import call, progress_of, rows_of
from tests.e2e.small_site import serving

from trotline.rules.limit_cuts import cuts
from trotline.testing.shop import DemoShop

SPIDER = """
from trotline import Page, Spider, TrapRules

few = TrapRules(query_variants=40, calendar_pages=30, same_text=80, soft_404=5)
site = Spider("site", pace="1000/s", concurrency=64, robots=False, retries=0, traps=few)


@site.page(key="url", seeds=["{seed}"])
def page(page: Page):
    yield {{"url": page.url}}
    yield page.follow("a[href*='/trap/'], a[href*='/gone/'], a[href='a/'], a[href='b/']")
"""


async def test_the_shops_traps_end_and_each_is_shown_with_an_example(shop: DemoShop, tmp_path: Path):
    (tmp_path / "site.py").write_text(SPIDER.format(seed=f"{shop.url}/lab/traps"))
    ended = await call(tmp_path, "run", "site.py", "--allow-private")
    status = await call(tmp_path, "status", "site")

    books = await progress_of(tmp_path, "site")
    assert (books.waiting, books.leased) == (0, 0), "the crawl is finite"
    caught = {name.removeprefix("links refused: trap: ") for name in books.examples if "trap: " in name}
    assert caught >= {"endless calendar", "query variants", "repeated segments", "same text"}
    told = [(cut.what, cut.example) for cut in cuts(books, {})]
    told += [(name, example) for name, example in books.examples.items() if name.startswith("pages alike: ")]
    assert len(told) == len(books.examples)
    for what, example in told:
        assert example.startswith(shop.url), example
        assert what in ended.out, "the summary names every trap"
        assert what in status.out, "and so does the status"
        assert example[:60] in ended.out
    assert books.done < 900


@pytest.fixture
async def forgetful() -> AsyncIterator[str]:
    """A site that answers 200 to everything, in the same words, and always knows one more place to look."""

    async def answer(request: web.Request) -> web.Response:
        number = int(request.path.rpartition("-")[2] or 0) if "-" in request.path else 0
        links = "".join(f'<a href="/gone/page-{2 * number + step}">there</a> ' for step in (1, 2))
        text = f"<h1>Sorry</h1><p>The page {request.path} was not found. Perhaps it has moved. Try one of these:</p>"
        return web.Response(text=text + links, content_type="text/html")

    async with serving(answer) as url:
        yield url


async def test_a_site_of_soft_404s_is_left_after_a_few(forgetful: str, tmp_path: Path):
    (tmp_path / "site.py").write_text(SPIDER.format(seed=f"{forgetful}/gone/page-0"))
    ended = await call(tmp_path, "run", "site.py", "--allow-private", "--json")

    assert ended.code == 0, ended
    assert 5 <= len(rows_of(tmp_path / "site.db")) < 100
    assert ended.summary["examples"]["pages alike: soft 404"].startswith(f"{forgetful}/gone/page-")
    assert ended.summary["numbers"]["links refused: trap: soft 404"] > 0
