"""`--high-water` holds for links too: a fleet on Redis reads a large site branch by branch above it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.e2e.running import call, rows_of
from tests.e2e.small_site import serving

from trotline.testing.redis_server import redis

LINKS, DEPTH, MARK = 8, 3, 30
PAGES = sum(LINKS**level for level in range(DEPTH + 1))
SPIDER = """
from trotline import Page, Spider

tree = Spider("tree", pace="1000/s", robots=False)


@tree.page(seeds=["{url}/"], key="url")
def page(page: Page):
    yield {{"url": page.url}}
    yield page.follow("a")
"""


class Tree:
    """Pages that lead to others, and what somebody who asked for them has not asked for yet."""

    def __init__(self) -> None:
        self.known = 1
        self.asked = 0
        self.most = 0

    async def answer(self, request: web.Request) -> web.Response:
        deep = request.path.count("/") - 1
        links = [f'<a href="{request.path}{number}/">{number}</a>' for number in range(LINKS if deep < DEPTH else 0)]
        self.asked += 1
        self.known += len(links)
        self.most = max(self.most, self.known - self.asked)
        return web.Response(text=f"<h1>{request.path}</h1>{''.join(links)}", content_type="text/html")


@pytest.fixture
async def tree() -> AsyncIterator[tuple[Tree, str]]:
    made = Tree()
    async with serving(made.answer) as url:
        yield made, url


async def test_start_gives_a_job_its_high_water_and_nothing_is_left_out(tmp_path: Path, tree: tuple[Tree, str]):
    site, url = tree
    (tmp_path / "tree.py").write_text(SPIDER.format(url=url))
    slots = 4
    with redis() as server:
        env = {"TROTLINE_FRONTIER": server.url, "TROTLINE_SINK": f"sqlite:{tmp_path}/rows.db"}
        started = await call(tmp_path, "start", "tree.py", "--detach", "--high-water", str(MARK), env=env)
        assert started.code == 0, started.err
        words = ("work", "tree.py", "--until-finished", "--allow-private", "--slots", str(slots), "--prefetch", "0")
        worked = await call(tmp_path, *words, env=env)

    assert worked.code == 0, worked.err
    assert site.asked == len(rows_of(tmp_path / "rows.db")) == PAGES
    # What is asked for and not settled yet is a batch and a few slots; in the order of arrival 400 would wait.
    assert site.most <= 0.5 * LINKS**DEPTH, site.most
