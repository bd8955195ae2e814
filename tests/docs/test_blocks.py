"""Every Python block of the docs runs, against the demo shop where it needs a site.

Hosts and paces are replaced, nothing else: the demo shop is on a free port, and tests use a high pace. A block
is named by its page and its number among the Python blocks there; `block_runners.py` says how each is run. The README,
the tutorials and the page on embedding are run in test_tutorials.py.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import block_runners  # noqa: F401 - they register themselves
from tests.docs.block_reader import RUNNERS, Reader
from tests.docs.console import trotline
from tests.docs.pages import DOCS, ROOT, Block, all_blocks, blocks
from trotline.testing import DemoShop
from trotline.testing.shop.account import PASSWORD, USER

IN_TUTORIALS = {
    "README.md",
    "docs/learn/first-spider.md",
    "docs/learn/from-laptop-to-fleet.md",
    "docs/how-to/embed-it.md",
}


def names() -> dict[str, Block]:
    """`docs/how-to/log-in.md 1` -> the first Python block of that page."""
    found: dict[str, Block] = {}
    for page in sorted({block.page for block in all_blocks("python")}):
        for number, block in enumerate(blocks(page, "python"), 1):
            found[f"{page.relative_to(ROOT)} {number}"] = block
    return found


BLOCKS = {name: block for name, block in names().items() if name.rpartition(" ")[0] not in IN_TUTORIALS}


@pytest.fixture(scope="module")
def shop() -> Iterator[DemoShop]:
    with DemoShop.in_thread(products=24) as opened:
        yield opened


def test_every_block_has_a_runner() -> None:
    assert set(BLOCKS) == set(RUNNERS), "add a runner for a new block to RUNNERS"


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_of_the_docs_runs(name: str, shop: DemoShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    for key, value in (("SHOP_USER", USER), ("SHOP_PASSWORD", PASSWORD), ("SHOP_TOKEN", "a token")):
        monkeypatch.setenv(key, value)

    RUNNERS[name](Reader(tmp_path, shop), BLOCKS[name].text)


def test_the_recipe_of_the_docs_runs(shop: DemoShop, tmp_path: Path) -> None:
    reader = Reader(tmp_path, shop)
    [recipe] = blocks(DOCS / "how-to" / "recipes.md", "toml")
    reader.write("teas.toml", recipe.text.replace('pace = "5/s"', 'pace = "200/s"'))
    code, said = trotline(tmp_path, "run", "teas.toml", "--allow-private", "--out", "rows.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert code == 0, said
    assert {row["sku"] for row in rows} == reader.skus
    assert all(isinstance(row["price"], float) and row["title"] and row["name"] for row in rows)
