"""Pages that are hard to read, as they come over the wire: whatever becomes of them, everything else is stored."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.e2e.running import Ended, Running, call, progress_of, rows_of, start
from tests.e2e.small_site import serving

from trotline.testing.torture import TortureServer
from trotline.testing.torture.bombs import KINDS

TEXT = 2_000_000
"""Characters of a text node, and below the number of tags and attributes: large enough to hurt, small enough to send
in a test. What takes quadratic time takes it here too."""

BOMBS = {
    "b53-nested": b"<div>" * 1_000_000,
    "b53-attributes": b"<p " + b" ".join(b"a%d=1" % number for number in range(100_000)) + b">x</p>",
    "b53-text": b"<p>" + b"x" * TEXT,
    "b53-unclosed": b"<table><tr><td><a href=/good/1><b><i>" * 2_500,
    "b54-svg-template": b"<svg><template><svg><template></svg><p>x</template>" * 2_000,
    "b54-select": b"<select><option>a<svg><template><option>b</select></svg></template><select><hr>" * 2_000,
    "b54-foreign": b"<math><mi><table><mglyph><style><!--</style><img src=x>--></math>" * 2_000,
    "b61-json-ld": b'<script type="application/ld+json">' + b'{"a":[' * 200_000 + b"</script>",
    "b61-state": b"<script>window.__STATE__ = " + b"[" * 200_000 + b"</script>",
}
GOOD = [f"good/{number}" for number in range(12)]
LARGE = ("b53-nested", "b53-attributes", "b53-text")

SPIDER = """
from trotline import Limits, Page, Spider

site = Spider("site", pace="500/s", concurrency=32, robots=False, limits=Limits(parse=1.5), {more})


@site.page(key="url", seeds=["{seed}/"])
def page(page: Page):
    page.css('p:lexbor-contains("x" i) a, select > option, svg template').getall()
    page.json_ld()
    page.embedded("__STATE__")
    yield {{"url": page.url}}
    yield page.follow("a")
"""


@pytest.fixture
async def site() -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.Response:
        name = request.path.strip("/")
        links = "".join(f'<a href="/{each}">{each}</a>' for each in (*BOMBS, *GOOD, "a" * 60)).encode()
        body = BOMBS.get(name) or (b"<h1>good</h1>" if name in GOOD else links)
        return web.Response(body=body, content_type="text/html")

    async with serving(answer) as url:
        yield url


async def crawl(site: str, folder: Path, more: str = "") -> Ended:
    (folder / "site.py").write_text(SPIDER.format(seed=site, more=more))
    return await call(folder, "run", "site.py", "--allow-private", "--json", "--slots", "8")


async def test_b53_b54_b61_hard_pages_are_read_or_buried_and_the_worker_lives(site: str, tmp_path: Path):
    ended = await crawl(site, tmp_path)

    assert ended.code in (0, 3), ended
    stored = {row["url"].removeprefix(site).strip("/") for row in rows_of(tmp_path / "site.db")}
    assert set(GOOD) | {""} <= stored
    books = await progress_of(tmp_path, "site")
    assert (books.waiting, books.leased) == (0, 0)
    assert books.dead == len(BOMBS) - len(stored & set(BOMBS)), "a bomb is read, or it is buried"
    assert all(why.startswith("killed: reading its page") for why in ended.summary["reasons"]), ended.summary
    assert stored >= {name for name in BOMBS if name not in LARGE}, "nothing but sheer size is too much"


async def test_b79_a_pattern_that_never_comes_back_costs_the_page_whose_link_it_was(site: str, tmp_path: Path):
    """Scope patterns are the author's, but links are the site's: one can be made for the other."""
    ended = await crawl(site, tmp_path, more=r'include=[r"^http://[^/]+/$", r"/(\w+/?)+[!]$"]')

    assert ended.code == 3, ended
    assert list(ended.summary["reasons"]) == ["killed: reading its page took longer than 1.5 s"]


PACKED = [f"/bomb/{kind}/{mib}" for kind in KINDS for mib in (16, 500, 4000)] + ["/redirect/bomb"]
ALLOWED_KIB = 64 * 1024
OPENER = """
import re
from pathlib import Path

from trotline import Page, Spider

site = Spider("site", pace="500/s", concurrency=32, robots=False)


@site.page(seeds=["{origin}/packed/gzip"])
def first(page: Page):
    page.css("p").getall()
    yield {{"base": int(re.search(r"VmRSS:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])}}
    for path in {paths}:
        yield bomb.task("{origin}" + path)


@site.page
def bomb(page: Page):
    page.css("p").getall()
    yield {{"opened": page.url}}
"""


async def peak(running: Running) -> int:
    """The most memory (KiB) that a child ever had. The kernel remembers it; only what comes after the last look is
    missed, and that is the end of the run."""
    [child] = running.children()
    most = 0
    while running.process.returncode is None and (now := peak_so_far(child)):
        most = now
        await asyncio.sleep(0.02)
    return most


def peak_so_far(process: int) -> int:
    """0 if it has ended."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


async def test_b45_a_worker_process_that_meets_every_bomb_needs_64_mib_more_than_before(tmp_path: Path):
    if not sys.platform.startswith("linux"):
        pytest.skip("peak memory is read from /proc")
    with TortureServer.in_thread() as server:
        (tmp_path / "site.py").write_text(OPENER.format(origin=server.url(""), paths=PACKED))
        running = await start(tmp_path, "run", "site.py", "--allow-private", "--json")
        await running.event()
        most = await peak(running)
        ended = await running.end()

    assert ended.code in (0, 3), ended
    books = await progress_of(tmp_path, "site")
    assert books.done + books.dead == 1 + len(PACKED), ended
    assert "a worker process ended" not in ended.err
    [base] = [row["base"] for row in rows_of(tmp_path / "site.db") if "base" in row]
    assert most - base <= ALLOWED_KIB, f"{most - base} KiB above {base}"
