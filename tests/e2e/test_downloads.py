"""Downloads of a spider: streamed into a folder, with a record each."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.contract.s3_servers import own_prefix, s3
from tests.unit.adapters.test_file_store import picture

from trotline import App, Files, HandlerFailed, Page, Spider
from trotline.adapters.s3.object_store import S3Objects
from trotline.adapters.s3.s3_url import address_of
from trotline.errors import SpiderRefused
from trotline.testing import visit
from trotline.testing.seaweedfs_server import KEY, SECRET

LINKS = ("/a.png", "/copy.png", "/text.png", "/huge", "/packed", "/gone", "/moved", "/page.html", "/slow")


@pytest.fixture
async def site() -> AsyncIterator[str]:
    async def page(request: web.Request) -> web.Response:
        links = "".join(f'<img src="{link}">' for link in LINKS)
        return web.Response(text=links, content_type="text/html")

    async def big(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/pdf"})
        await answer.prepare(request)
        for _ in range(64):
            await answer.write(b"x" * 65536)
        return answer

    async def moved(request: web.Request) -> web.Response:
        raise web.HTTPFound("/a.png")

    async def packed(request: web.Request) -> web.Response:
        headers = {"Content-Encoding": "gzip", "Content-Type": "image/svg+xml"}
        return web.Response(body=gzip.compress(b"<svg/>"), headers=headers)

    def fixed(body: bytes, kind: str):  # type: ignore[no-untyped-def]
        async def handler(request: web.Request) -> web.Response:
            return web.Response(body=body, content_type=kind)

        return handler

    app = web.Application()
    app.router.add_get("/", page)
    for path in ("/a.png", "/copy.png"):
        app.router.add_get(path, fixed(picture(), "image/png"))
    app.router.add_get("/text.png", fixed(b"not a picture", "image/png"))
    app.router.add_get("/page.html", fixed(b"<p>captcha", "text/html"))
    app.router.add_get("/slow", fixed(b"", "application/pdf"))
    app.router.add_get("/huge", big)
    app.router.add_get("/packed", packed)
    app.router.add_get("/moved", moved)
    runner = web.AppRunner(app)
    await runner.setup()
    server = web.TCPSite(runner, "127.0.0.1", 0)
    await server.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


def spider_of(site: str, files: Files | str) -> Spider:
    spider = Spider("files", pace="200/s", retries=0, robots=False, files=files)

    @spider.page(seeds=[f"{site}/"])
    def page(page: Page):  # type: ignore[no-untyped-def]
        for src in page.css("img::attr(src)").getall():
            yield page.download(src)

    return spider


async def crawl(site: str, files: Files | str) -> dict[str, dict[str, Any]]:
    """Path -> the record of its file."""
    async with App(allow_private=True) as app:
        return {one.key.removeprefix(site): one.data async for one in app.records(spider_of(site, files))}


async def test_files_are_stored_once_by_content_with_a_record_each(site: str, tmp_path: Path) -> None:
    rows = await crawl(site, Files(folder=str(tmp_path / "out"), largest=1_000_000))

    assert set(rows) == set(LINKS) - {"/huge", "/gone"}
    assert rows["/a.png"]["path"] == rows["/copy.png"]["path"] == rows["/moved"]["path"]
    assert (tmp_path / "out" / rows["/a.png"]["path"]).read_bytes() == picture()
    assert rows["/a.png"] | {"path": "", "sha256": ""} == {
        "url": f"{site}/a.png", "path": "", "type": "image/png", "size": len(picture()), "sha256": "",
        "page": f"{site}/",
    }  # fmt: skip
    assert (tmp_path / "out" / rows["/packed"]["path"]).read_bytes() == b"<svg/>"
    assert rows["/slow"]["size"] == 0
    stored = [file for file in (tmp_path / "out").rglob("*") if file.is_file()]
    assert len(stored) == 5, "nothing is left of the one that was too large"


async def test_only_images_that_are_images_are_kept(site: str, tmp_path: Path) -> None:
    rows = await crawl(site, Files(folder=str(tmp_path / "out"), images=True))

    assert set(rows) == {"/a.png", "/copy.png", "/moved"}
    assert (rows["/a.png"]["width"], rows["/a.png"]["height"]) == (3, 2)


def test_what_cannot_be_meant_is_refused() -> None:
    for wrong in (17, "", Files(folder=""), Files(folder="x", largest=0), Files(folder="x", types=("nonsense",))):
        with pytest.raises(SpiderRefused, match="files"):
            Spider("s", files=wrong)  # type: ignore[arg-type]
    spider = Spider("s")

    @spider.page
    def page(page: Page):  # type: ignore[no-untyped-def]
        yield page.download("/x")

    with pytest.raises(HandlerFailed, match=r"has no place for files: give Spider\('s', files="):
        visit(page, "<p>")


async def test_downloads_go_to_s3(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    place = s3().url(own_prefix())

    found = await crawl(site, place)

    objects = S3Objects(address_of(place))
    assert found["/a.png"]["path"] == found["/copy.png"]["path"]
    assert await objects.get(found["/a.png"]["path"]) == picture()
    assert await objects.size_of(found["/huge"]["path"]) == found["/huge"]["size"] == 64 * 65536
