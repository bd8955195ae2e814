"""What runs a Python block of the docs: an empty folder with the catalog of the README, beside the demo shop."""

import ast
import asyncio
import json
import re
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.docs.console import trotline
from tests.docs.pages import ROOT, blocks
from trotline import Page, Spider
from trotline.testing import DemoShop, visit

CATALOG = blocks(ROOT / "README.md", "python")[1].text


class Reader:
    """Runs a block in an empty folder that has the README's catalog as shop.py."""

    def __init__(self, folder: Path, shop: DemoShop) -> None:
        self.folder = folder
        self.shop = shop
        self.skus = {product.sku for product in shop.truth}
        self.write("shop.py", CATALOG)

    def here(self, text: str) -> str:
        """The text with the URL of this test's shop and a high pace."""
        host = self.shop.url.removeprefix("http://")
        text = re.sub(r'pace="\d+/s"', 'pace="200/s"', text)
        text = re.sub(r'(Spider\(\s*"\w+")(?![^)]*pace=)', r'\1, pace="200/s"', text)
        text = re.sub(r"https://(?:shop|quotes)\.example/?(?=\")", f"{self.shop.url}/", text)
        return re.sub(r"https://shop\.example", self.shop.url, text).replace('"shop.example"', f'"{host}"')

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_text(self.here(text))

    def crawl(self, text: str, *words: str) -> list[dict[str, object]]:
        """The rows of a run of the block."""
        self.write("spider.py", text)
        out = self.folder / "rows.jsonl"
        code, said = trotline(self.folder, "run", "spider.py", "--allow-private", "--out", "rows.jsonl", *words)
        assert code == 0, said
        return [json.loads(line) for line in out.read_text().splitlines()]

    def execute(self, text: str, **given: object) -> dict[str, object]:
        module = {"__name__": "docs_block", **given}
        exec(compile(self.here(text), "block", "exec"), module)  # noqa: S102 - our own pages
        return module

    def save(self, path: str, name: str) -> None:
        """Save a page of the shop with `trotline try --save`."""
        code, said = trotline(
            self.folder, "try", "shop.py", "product", self.shop.url + path, "--allow-private", "--save", name
        )
        assert code == 0, said

    def yields(self, text: str, *before: str) -> list[object]:
        """What a fragment of a handler yields, on the shop's home page, with other blocks before it."""
        module = self.execute("\n".join(before))
        handler = f"async def handler(page):\n{textwrap.indent(text, '    ')}"
        drafts: list[object] = []

        async def run(page: object) -> None:
            namespace = dict(module)
            exec(self.here(handler), namespace)  # noqa: S102 - our own pages
            made = namespace["handler"]
            assert callable(made)
            async for draft in made(page):
                drafts.append(draft)

        spider = Spider("fragment")

        @spider.page
        async def start(page: Page) -> object:
            await run(page)
            yield {"drafts": len(drafts)}

        harvest = visit(start, "<a href=/>home</a>", url=f"{self.shop.url}/")
        assert harvest.records, harvest
        return drafts


Runner = Callable[[Reader, str], None]
RUNNERS: dict[str, Runner] = {}


def runner(name: str) -> Callable[[Runner], Runner]:
    def keep(run: Runner) -> Runner:
        RUNNERS[name] = run
        return run

    return keep


def executes(reader: Reader, text: str) -> None:
    reader.execute(text)


def crawls(reader: Reader, text: str) -> None:
    rows = reader.crawl(text)
    assert {row["sku"] for row in rows} == reader.skus


def calls_its_functions(reader: Reader, text: str, **given: object) -> None:
    """Call every test function of the block."""
    reader.save("/p/T1", "pages/tea.html")
    functions = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    module = reader.execute(text)
    assert functions
    for name in functions:
        test = module[name]
        assert callable(test)
        result = test(**given)
        if isinstance(result, Awaitable):
            asyncio.run(_awaited(result))


async def _awaited(result: Awaitable[object]) -> None:
    await result
