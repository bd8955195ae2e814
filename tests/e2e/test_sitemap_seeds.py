"""Sitemaps as seeds of a real run: one pace for them and the pages of their host."""

import asyncio
from pathlib import Path

from tests.e2e.raw_site import ok, site
from tests.e2e.running import Ended, call, rows_of

SPIDER = """
from trotline import Page, RobotsSitemaps, Sitemap, Spider

site = Spider("site", pace="20/s", robots={robots}, include=["/p/"])


@site.page(key="name", sitemap={seed})
def page(page: Page):
    yield {{"name": page.css("h1::text").get()}}
"""
PACE, SLACK = 20.0, 0.25


def listing(kind: str, item: str, *urls: str) -> bytes:
    entries = "".join(f"<{item}><loc>{url}</loc></{item}>" for url in urls)
    return f"<{kind}>{entries}</{kind}>".encode()


class Shop:
    """An index of twelve sitemaps with two pages each; remembers when it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, float]] = []
        self.origin = ""

    async def reply(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        path = request.split(b" ")[1].decode()
        if path != "/robots.txt":
            self.asked.append((path, asyncio.get_running_loop().time()))
        writer.write(self._answer(path))

    def _answer(self, path: str) -> bytes:
        if path == "/robots.txt":
            return ok(f"Sitemap: {self.origin}/index.xml\n".encode())
        if path == "/index.xml":
            return ok(listing("sitemapindex", "sitemap", *(f"{self.origin}/{n}.xml" for n in range(12))))
        if path.startswith("/deep/"):
            below = f"{self.origin}/deep/{int(path[6:-4]) + 1}.xml"
            return ok(listing("sitemapindex", "sitemap", below, f"{self.origin}/0.xml"))
        if path.endswith(".xml"):
            return ok(listing("urlset", "url", *(f"{self.origin}/p/{path[1:-4]}-{n}" for n in range(2))))
        if path.startswith("/p/"):
            return ok(f"<h1>{path}</h1>".encode(), "Content-Type: text/html")
        return ok(b"", status="404 Not Found")


async def run(folder: Path, seed: str, robots: bool = True) -> tuple[Shop, Ended]:
    shop = Shop()
    async with site(shop.reply) as there:
        shop.origin = there.url("")
        (folder / "site.py").write_text(SPIDER.format(seed=seed.replace("ORIGIN", shop.origin), robots=robots))
        return shop, await call(folder, "run", "site.py", "--allow-private", "--slots", "8", "--json")


async def test_sitemaps_and_pages_of_one_host_keep_one_pace(tmp_path: Path) -> None:
    shop, ended = await run(tmp_path, '"ORIGIN/index.xml"')

    assert ended.code == 0, ended.err
    assert len(rows_of(tmp_path / "site.db")) == 24
    assert len([path for path, _ in shop.asked if path.endswith(".xml")]) == 13
    moments = [moment for _, moment in shop.asked]
    for first, begin in enumerate(moments):
        for last in range(first + 1, len(moments)):
            window = moments[last] - begin
            assert last - first + 1 <= PACE * (window + SLACK) + 1, (first, last, window)


async def test_a_sitemap_that_is_gone_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    _, ended = await run(tmp_path, '"ORIGIN/none.txt"')

    assert ended.code == 3, ended.err
    assert ended.summary["reasons"] == {"gone: 404": 1}


async def test_robots_txt_names_the_sitemaps(tmp_path: Path) -> None:
    _, ended = await run(tmp_path, 'RobotsSitemaps("ORIGIN/", match="/p/7")', robots=False)

    assert ended.code == 0, ended.err
    assert {row["name"] for row in rows_of(tmp_path / "site.db")} == {"/p/7-0", "/p/7-1"}


async def test_what_a_limit_cuts_is_named_with_its_setting_and_the_run_says_so(tmp_path: Path) -> None:
    shop, ended = await run(tmp_path, '"ORIGIN/deep/0.xml"')

    assert ended.code == 5, ended.err
    [cut] = ended.summary["cuts"]
    assert (cut["count"], cut["setting"]) == (2, "Limits(sitemap_depth)")
    assert cut["example"] == f"{shop.origin}/deep/3.xml"
