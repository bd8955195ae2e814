"""`trotline fetch`: a list of URLs as JSON lines, by a normal run."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.e2e.held_site import HeldSite
from tests.e2e.running import call, start
from tests.e2e.small_site import serving

from trotline.testing import DemoShop


async def test_a_list_of_urls_becomes_a_record_each(tmp_path: Path) -> None:
    async with DemoShop(products=6) as shop:
        lines = [f"{shop.url}/p/T{n}" for n in range(1, 4)] + [json.dumps({"url": f"{shop.url}/about"})]
        lines += ["# remark", '{"ur": 1}']
        (tmp_path / "urls.txt").write_text("\n".join(lines))
        ended = await call(
            tmp_path, "fetch", f"{shop.url}/nothing", "nonsense", "--from", "urls.txt",
            "--fields", "title,links,markdown", "--pace", "200/s", "--allow-private",
        )  # fmt: skip
        stored = await call(tmp_path, "fetch", f"{shop.url}/p/T1", "--out", "pages.db", "--allow-private")
        private = await call(tmp_path, "fetch", f"{shop.url}/p/T1")
        unknown = await call(tmp_path, "fetch", "x", "--fields", "nothing")

    rows = {row["url"]: row for row in ended.events}
    assert ended.code == 3, ended
    assert set(rows) == {f"{shop.url}/{path}" for path in ("p/T1", "p/T2", "p/T3", "about", "nothing")}
    assert rows[f"{shop.url}/nothing"]["status"] == 404
    assert set(rows[f"{shop.url}/p/T1"]) == {"url", "final_url", "status", "type", "title", "links", "markdown"}
    assert "1 seed is not visited: not a URL, such as nonsense" in ended.err
    assert "line 6: unknown field 'ur'" in ended.err
    assert (stored.code, stored.out, (tmp_path / "pages.db").exists()) == (0, "", True)
    assert "is not a public address" in private.err
    assert private.out == ""
    assert unknown.code == 2


@pytest.fixture
async def site() -> AsyncIterator[HeldSite]:
    async with HeldSite(pages=2) as opened:
        yield opened


async def test_rows_are_printed_while_other_pages_are_under_way(tmp_path: Path, site: HeldSite) -> None:
    words = ("fetch", f"{site.url}/page/1", f"{site.url}/held/slow", "--pace", "200/s", "--allow-private")
    running = await start(tmp_path, *words)
    assert (await running.event())["url"] == f"{site.url}/page/1"
    site.release()
    ended = await running.end()
    assert (ended.code, [row["url"] for row in ended.events][1:]) == (0, [f"{site.url}/held/slow"])


async def test_a_reader_that_has_enough_ends_it(tmp_path: Path, site: HeldSite) -> None:
    ours, theirs = os.pipe()
    words = ("fetch", *(f"{site.url}/{path}" for path in ("page/1", "held/slow", "page/2")), "--slots", "1")
    running = await start(tmp_path, *words, "--pace", "1/s", "--allow-private", stdout=theirs)
    os.close(theirs)
    with os.fdopen(ours, "rb") as reader:
        assert await asyncio.to_thread(reader.readline)
    site.release()
    assert (await running.end()).code == 141


async def _site_with_little_to_read(request: web.Request) -> web.Response:
    if request.path == "/robots.txt":
        return web.Response(text="User-agent: *\nDisallow: /no")
    kind = "application/pdf" if request.path.endswith(".pdf") else "text/html"
    return web.Response(body=b"<title>x</title>", content_type=kind)


async def test_urls_without_a_record_are_named_with_their_reason(tmp_path: Path) -> None:
    async with serving(_site_with_little_to_read) as url:
        words = [f"{url}/{path}" for path in ("yes", "a.pdf", "no/1")]
        ended = await call(tmp_path, "fetch", *words, "--fields", "title,type", "--pace", "200/s", "--allow-private")
        many = [f"{url}/no/{number}" for number in range(25)]
        cut = await call(tmp_path, "fetch", *many, "--pace", "500/s", "--allow-private")

    assert (ended.code, [row["url"] for row in ended.events]) == (3, [words[0]])
    assert f"{words[1]}: unwanted: content type 'application/pdf'" in ended.err
    assert f"{words[2]}: refused: robots.txt" in ended.err
    assert (cut.code, cut.err.count(": refused: robots.txt\n")) == (3, 20)
    assert "and 5 others" in cut.err


async def test_an_interrupted_fetch_names_what_was_not_fetched(tmp_path: Path, site: HeldSite) -> None:
    urls = [f"{site.url}/{path}" for path in ("page/1", "held/slow", "page/2")]
    (tmp_path / "urls.txt").write_text("\n".join(["# remark", "", *urls]))
    words = ("--from", "urls.txt", "--slots", "1", "--pace", "1/s", "--allow-private")
    running = await start(tmp_path, "fetch", *words)
    await site.arrived()
    running.process.send_signal(signal.SIGINT)
    site.release()
    ended = await running.end()

    assert ended.code == 130
    assert "interrupted" in ended.err
    assert "1 URL was not fetched" in ended.err
    assert urls[2] in ended.err
    assert urls[1] not in ended.err
