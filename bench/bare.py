"""The floor: aiohttp, selectolax and a Python set. No frontier, robots, guard or retries; items go to one plain file.

What Trotline costs above this is what its promises cost.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import aiohttp
import can_ada
import msgspec
import uvloop
from selectolax.lexbor import LexborHTMLParser

CONCURRENCY = 64


def extract(url: str, body: bytes) -> tuple[dict[str, str | None], set[str]]:
    tree = LexborHTMLParser(body)

    def text(selector: str) -> str | None:
        node = tree.css_first(selector)
        return node.text() if node is not None else None

    def attribute(selector: str, name: str) -> str | None:
        node = tree.css_first(selector)
        return node.attributes.get(name) if node is not None else None

    item = {
        "url": url,
        "sku": text("[itemprop=sku]"),
        "title": text("h1.name"),
        "brand": text(".brand"),
        "price": text(".price .amount"),
        "currency": attribute("[itemprop=currency]", "content"),
        "availability": text(".stock"),
        "rating": text(".rating"),
        "reviews": text(".count"),
        "category": text(".category"),
        "colour": text("dd.colour"),
        "material": text("dd.material"),
        "weight": text("dd.weight"),
        "seller": attribute(".seller", "data-seller"),
        "description": text(".description p"),
    }
    return item, {href for node in tree.css("a[href]") if (href := node.attributes["href"])}


def absolute(base: str, root: str, href: str) -> str:
    """can_ada resolves the dots; joining the two halves as text is enough for the links of this site."""
    return str(can_ada.parse((root if href.startswith("/") else base) + href))


async def crawl(seed: str, out: Path) -> None:
    waiting: asyncio.Queue[str] = asyncio.Queue()
    waiting.put_nowait(seed)
    known, root = {seed}, seed.split("/shop/")[0]
    encode = msgspec.json.Encoder().encode

    async def slot(session: aiohttp.ClientSession) -> None:
        while True:
            url = await waiting.get()
            async with session.get(url) as response:
                body = await response.read()
            item, hrefs = extract(url, body)
            lines.write(encode(item) + b"\n")
            base = url.rpartition("/")[0] + "/"
            for href in hrefs:
                target = absolute(base, root, href)
                if target not in known:
                    known.add(target)
                    waiting.put_nowait(target)
            waiting.task_done()

    connector = aiohttp.TCPConnector(limit=CONCURRENCY)
    with out.open("wb", buffering=1 << 20) as lines:
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
            slots = [asyncio.create_task(slot(session)) for _ in range(CONCURRENCY)]
            await waiting.join()
            for task in slots:
                task.cancel()


if __name__ == "__main__":
    uvloop.run(crawl(os.environ["BENCH_SEED"], Path(os.environ["BENCH_OUT"])))
