"""A pool with a proxy that answers in place of every site, over plain http: it is noticed on a single site."""

import asyncio
import sqlite3
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest
from tests.e2e.running import call

from trotline.rules.captive_pages import PATHS
from trotline.testing.ban_site import BanRules, BanSite
from trotline.testing.proxy import ForwardProxy

SPIDER = """
from trotline import Page, Spider

site = Spider("site", pool="dc", pace="20/s per proxy", robots=False, retries=1)

@site.page(seeds=[f"{url}/p/{{number}}" for number in range(80)], key="url")
def page(page: Page):
    yield {{"url": page.url, "title": page.css("h1::text").get()}}
"""
BODY = b"<html><h1>Pay your bill</h1></html>"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
MOVED = b"HTTP/1.1 302 Found\r\nLocation: http://portal.example/pay\r\nContent-Length: 0\r\n\r\n"


class Captive:
    """Opens every tunnel, and answers what comes through it itself."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self.requests = 0

    async def __aenter__(self) -> "Captive":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            while await reader.readuntil(b"\r\n\r\n"):
                self.requests += 1
                writer.write(self._answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@pytest.mark.parametrize("answer", [PAGE, MOVED], ids=["page", "redirect"])
async def test_a_captive_proxy_of_a_pool_costs_two_pages_and_not_all_its_turns(tmp_path: Path, answer: bytes) -> None:
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(
            BanSite(BanRules(1e6, 1e6), page=lambda path: f"<html><h1>{path}</h1></html>".encode())
        )
        ways = [await stack.enter_async_context(ForwardProxy()) for _ in range(4)]
        captive = await stack.enter_async_context(Captive(answer))
        (tmp_path / "site.py").write_text(SPIDER.format(url=shop.url("")))
        listed = ", ".join(f'"{way.url}"' for way in (*ways, captive))
        (tmp_path / "proxies.toml").write_text(f"[pools.dc]\nproxies = [{listed}]\n")

        words = ("--proxies", "proxies.toml", "--allow-private", "--processes", "1", "--json")
        ended = await call(tmp_path, "run", "site.py", *words)

    with closing(sqlite3.connect(tmp_path / "site.db")) as db:
        titles = [title for (title,) in db.execute("SELECT json_extract(data, '$.title') FROM records")]
    good = [title for title in titles if title and title.startswith("/p/")]
    # Without the comparison it would be a fifth of all pages.
    assert len(good) >= 80 - (PATHS - 1), ended
    assert captive.requests >= PATHS
    [used] = ended.summary["pools"]
    assert used["faults"] == captive.requests - (PATHS - 1), ended.summary
