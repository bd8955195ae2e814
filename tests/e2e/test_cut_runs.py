"""What a limit leaves out is told first, with the setting that did it, and a default that cuts ends with code 5."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.e2e.running import call, rows_of
from tests.e2e.small_site import serving

PAGES = 60
LINKS = {"/heavy": ["/large", "/away"], "/lists": [f"/list?page={number}" for number in range(60)]}
SPIDER = """
from trotline import Limits, Page, Spider

site = Spider("site", pace="1000/s", robots=False, retries=0{more})


@site.page(key="url", seeds=["{seed}"])
def page(page: Page):
    yield {{"url": page.url}}
    yield page.follow()
"""


async def _page(request: web.Request) -> web.Response:
    """Page after page, each with one link to the next; /long has a link that no URL limit lets through, /heavy one to a
    page over the limits, /lists more queries than a spider may allow."""
    if request.path in LINKS:
        links = "".join(f'<a href="{link}">link</a>' for link in LINKS[request.path])
        return web.Response(text=f"<p>words</p>{links}", content_type="text/html")
    if request.path == "/large":
        return web.Response(text="x" * 3_000, content_type="text/html")
    if request.path == "/away":
        raise web.HTTPFound(f"/{'y' * 3_000}")
    if request.path == "/list":
        return web.Response(text=f"<p>{request.query_string}</p>", content_type="text/html")
    if request.path == "/long":
        return web.Response(text=f'<p>words</p><a href="/{"x" * 3_000}">long</a>', content_type="text/html")
    number = int(request.match_info["number"])
    following = f'<a href="/page/{number + 1}">next</a>' if number < PAGES else ""
    return web.Response(text=f"<h1>Page {number}</h1>{following}", content_type="text/html")


async def _deep_sitemap(request: web.Request) -> web.Response:
    """Two pages, and between them elements inside each other, more than are read."""
    first, second = (f"<url><loc>http://{request.host}/page/{number}</loc></url>" for number in (PAGES, 1))
    deep = "<a>" * 40 + "</a>" * 40
    return web.Response(text=f"<urlset>{first}{deep}{second}</urlset>", content_type="application/xml")


async def _long_robots(request: web.Request) -> web.Response:
    """Names a sitemap at its beginning, and another where nobody reads any more."""
    line = f"Sitemap: http://{request.host}/sitemap.xml\n"
    return web.Response(text=line + "# talk\n" * 80_000 + line.replace(".xml", "2.xml"))


@pytest.fixture
async def url() -> AsyncIterator[str]:
    application = web.Application()
    for path in ("/long", "/large", "/away", "/list", *LINKS):
        application.router.add_get(path, _page)
    application.router.add_get("/sitemap.xml", _deep_sitemap)
    application.router.add_get("/robots.txt", _long_robots)
    application.router.add_get(r"/page/{number:\d+}", _page)
    async with serving(application) as url:
        yield url


async def test_next_links_are_followed_to_the_end_by_default(url: str, tmp_path: Path):
    (tmp_path / "site.py").write_text(SPIDER.format(seed=f"{url}/page/1", more=""))
    ended = await call(tmp_path, "run", "site.py", "--allow-private")

    assert (ended.code, len(rows_of(tmp_path / "site.db"))) == (0, PAGES), ended.out
    assert "cut" not in ended.out


async def test_a_depth_limit_is_told_first_and_traced_to_the_page_where_it_struck(url: str, tmp_path: Path):
    (tmp_path / "site.py").write_text(SPIDER.format(seed=f"{url}/page/1", more=", max_depth=20"))
    ended = await call(tmp_path, "run", "site.py", "--allow-private")
    cut = f"links deeper than max_depth=20: 1, e.g. {url}/page/22 (raise max_depth)"

    assert ended.code == 0, "the spider asked for it"
    assert cut in ended.out.split("site: finished")[1].splitlines()[1]
    status, watched, traced = await asyncio.gather(
        call(tmp_path, "status", "site"),
        call(tmp_path, "watch", "site", "--once"),
        call(tmp_path, "trace", f"{url}/page/22"),
    )
    assert cut in status.out
    assert cut in watched.out
    assert "refused: depth, links deeper than max_depth=20 (raise max_depth)" in traced.out
    assert f"{url}/page/21" in traced.out
    assert "no page" not in traced.out


async def test_a_default_limit_that_cuts_ends_run_and_work_with_code_5(url: str, tmp_path: Path):
    (tmp_path / "site.py").write_text(SPIDER.format(seed=f"{url}/long", more=""))
    cut = "links longer than 2,083 characters: 1, e.g. "
    ended = await call(tmp_path, "run", "site.py", "--allow-private")

    assert ended.code == 5, ended
    assert "site: finished, but cut by limits" in ended.out
    assert cut in ended.out.split("cut by limits")[1].splitlines()[1]
    assert "(raise Limits(url))" in ended.out

    started = await call(tmp_path, "start", "site.py", "--fresh", "--detach")
    assert started.code == 0, started
    worked = await call(tmp_path, "work", "site.py", "--until-finished", "--allow-private", "--json")
    assert (worked.code, worked.summary["ending"]) == (5, "finished, but cut by limits"), worked
    [told] = worked.summary["cuts"]
    assert (told["count"], told["setting"], told["own"]) == (1, "Limits(url)", False)

    tried = await call(tmp_path, "try", "site.py", "page", f"{url}/long", "--allow-private")
    assert "links longer than 2,083 characters (raise Limits(url)): 1" in tried.out
    traced = await call(tmp_path, "trace", f"{url}/{'x' * 3_000}")
    assert "refused: it is too long, links longer than 2,083 characters (raise Limits(url))" in traced.out
    assert f"at {url}/long" in traced.out


async def test_a_page_that_a_limit_refused_is_named_with_its_setting_by_run_try_and_trace(url: str, tmp_path: Path):
    (tmp_path / "site.py").write_text(SPIDER.format(seed=f"{url}/heavy", more=", limits=Limits(wire_body=2_048)"))
    ended = await call(tmp_path, "run", "site.py", "--allow-private")

    assert ended.code == 3, ended
    assert f"pages with a body over 2 KiB: 1, e.g. {url}/large (raise Limits(wire_body))" in ended.out
    assert f"redirect to a URL over 2,083 characters: 1, e.g. {url}/away (raise Limits(url))" in ended.out
    tried, traced = await asyncio.gather(
        call(tmp_path, "try", "site.py", "page", f"{url}/large", "--allow-private"),
        call(tmp_path, "trace", f"{url}/large"),
    )
    assert "pages with a body over 2 KiB (raise Limits(wire_body))" in tried.out
    assert "dead: refused: body over" in traced.out
    assert "(raise Limits(wire_body))" in traced.out


async def test_try_counts_the_links_of_a_page_for_the_traps_as_a_run_does(url: str, tmp_path: Path):
    rules = ", traps=TrapRules(query_variants=10, query_values=20)"
    spider = SPIDER.format(seed=f"{url}/lists", more=rules).replace("import Limits", "import TrapRules")
    (tmp_path / "site.py").write_text(spider)
    ended = await call(tmp_path, "run", "site.py", "--allow-private", "--json")
    tried = await call(tmp_path, "try", "site.py", "page", f"{url}/lists", "--allow-private")

    assert ended.code == 0, "the spider set this limit itself"
    [cut] = ended.summary["cuts"]
    assert (cut["setting"], cut["own"]) == ("TrapRules(query_values)", True)
    assert f"queries of a path (raise TrapRules(query_values)): {cut['count']}" in tried.out


async def test_a_limit_of_the_spiders_own_cuts_and_ends_well(url: str, tmp_path: Path):
    (tmp_path / "site.py").write_text(SPIDER.format(seed=f"{url}/long", more=", limits=Limits(url=2_000)"))
    ended = await call(tmp_path, "run", "site.py", "--allow-private")

    assert ended.code == 0, ended
    assert "links longer than 2,000 characters: 1" in ended.out


async def test_a_sitemap_that_a_fixed_limit_cuts_ends_with_code_5_and_its_url(url: str, tmp_path: Path):
    spider = SPIDER.format(seed=url, more="").replace(f'seeds=["{url}"]', f'sitemap="{url}/sitemap.xml"')
    (tmp_path / "site.py").write_text(spider)
    ended = await call(tmp_path, "run", "site.py", "--allow-private")

    assert (ended.code, len(rows_of(tmp_path / "site.db"))) == (5, 1), ended
    first = ended.out.split("site: finished, but cut by limits")[1].splitlines()[1]
    assert "sitemaps with more than 32 elements inside each other, read up to there: 1" in first
    assert f"e.g. {url}/sitemap.xml (a fixed limit: " in first
    assert "skipped" not in ended.out


async def test_a_robots_file_that_is_longer_than_its_limit_is_a_cut_of_its_sitemaps(url: str, tmp_path: Path):
    spider = SPIDER.format(seed=url, more="").replace(f'seeds=["{url}"]', f'sitemap=RobotsSitemaps("{url}/")')
    (tmp_path / "site.py").write_text(spider.replace("import Limits", "import RobotsSitemaps"))
    ended = await call(tmp_path, "run", "site.py", "--allow-private")

    assert ended.code == 5, ended
    assert f"robots.txt files over 512 KiB, searched for sitemaps up to there: 1, e.g. {url}/robots.txt" in ended.out
    assert "(raise Limits(robots))" in ended.out
