"""`trotline web` as a real process, and a client that shows what it answered."""

import asyncio
import json
import re
import secrets
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from tests.e2e.running import WITHIN, Ended, Running, start

VIEW = "view-" + "v" * 32
OPERATE = "operate-" + "o" * 32
SPIDER = """
from trotline import Page, Spider

shop = Spider("shop", pace="{pace}", retries=1)
SHOP = "{shop}"


@shop.page(seeds=[SHOP + path for path in {seeds!r}])
def listing(page: Page):
    for link in page.links("a[href*='/p/']"):
        yield product.task(link)


@shop.page(key="sku")
def product(page: Page):
    yield {{"sku": page.css("[itemprop=sku]::text").get(), "title": page.css("h1::text").get()}}
"""


def write_spider(
    folder: Path, shop: str, *, pace: str = "200/s", seeds: tuple[str, ...] = ("/catalog", "/down/b", "/gone")
) -> None:
    (folder / "shop.py").write_text(SPIDER.format(shop=shop, pace=pace, seeds=list(seeds)))


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, str]:
        found: dict[str, str] = self.json["error"]
        return found


class Web:
    """A running server. Without `token` requests carry none."""

    def __init__(self, url: str, running: Running, log: Path, client: aiohttp.ClientSession) -> None:
        self.url = url
        self.running = running
        self.log = log
        self.client = client
        self.token = ""

    async def call(self, method: str, path: str, **options: Any) -> Answer:
        headers = dict(options.pop("headers", None) or {})
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        options.setdefault("allow_redirects", False)
        async with self.client.request(method, self.url + path, headers=headers, **options) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.call("GET", path, **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return await self.call("POST", path, **({"json": {} if body is None else body} | options))

    async def delete(self, path: str, **options: Any) -> Answer:
        return await self.call("DELETE", path, **options)

    async def stop(self) -> Ended:
        """Ctrl-C."""
        self.running.process.send_signal(signal.SIGINT)
        code = await self.running.exit_code()
        err = self.log.read_text()
        assert "Traceback" not in err.replace('"traceback": "Traceback', ""), err
        return Ended(code, "", err)


@asynccontextmanager
async def web(folder: Path, *words: str, env: Mapping[str, str] | None = None) -> AsyncIterator[Web]:
    """Started on a free port; ended with the block, if it has not ended by itself."""
    log = folder / f"web-{secrets.token_hex(4)}.log"
    # Not a pipe: one that nobody reads would stop the server when it is full.
    with log.open("wb") as err:
        running = await start(folder, "web", "--listen", "127.0.0.1:0", *words, env=env, stderr=err)
    assert running.process.stdout is not None
    line = await asyncio.wait_for(running.process.stdout.readline(), WITHIN)
    found = re.search(rb"http://[^ /]+", line)
    if found is None:
        raise AssertionError(log.read_text())
    cookies = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=cookies) as client:
        try:
            yield Web(found[0].decode(), running, log, client)
        finally:
            if running.process.returncode is None:
                running.process.kill()
                await running.process.wait()


def tokens(folder: Path) -> list[str]:
    """The options for two tokens, in files as they should be."""
    for name, text in (("view", VIEW), ("operate", OPERATE)):
        file = folder / f"{name}.token"
        file.write_text(text + "\n")
        file.chmod(0o600)
    return ["--token-view", "file:view.token", "--token-operate", "file:operate.token"]
