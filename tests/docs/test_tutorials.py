"""The README and the tutorials: their spiders run, and their commands print the output that is shown.

Only hosts and paces are replaced: the demo shop is on a free port, and tests use a high pace.
"""

import asyncio
import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.docs.console import trotline
from tests.docs.pages import DOCS, ROOT, blocks
from trotline.errors import SinkRejects, SinkUnreachable
from trotline.testing.shop import DemoShop
from trotline.testing.sink_contract import product

README = ROOT / "README.md"
TUTORIAL = DOCS / "learn" / "first-spider.md"
FLEET = DOCS / "learn" / "from-laptop-to-fleet.md"
EMBEDDING = DOCS / "how-to" / "embed-it.md"


@pytest.fixture(scope="module")
def shop() -> Iterator[DemoShop]:
    with DemoShop.in_thread() as opened:
        yield opened


def here(text: str, shop: DemoShop) -> str:
    """The text of a page with the URL of this test's shop and a high pace."""
    text = re.sub(r'pace="\d+/s"', 'pace="200/s"', text)
    return re.sub(r"http://127\.0\.0\.1:8010|https://(?:shop|quotes)\.example", shop.url, text)


def session(page: Path) -> dict[str, str]:
    """Command -> the output shown in the page's console blocks."""
    said: dict[str, str] = {}
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            said.setdefault(command, output.strip())
    return said


def plain(output: str) -> list[str]:
    """The output of a finished run without times."""
    lines = [line for line in output.strip().splitlines() if not re.match(r"\s*\d+:\d\d  waiting", line)]
    return [re.sub(r"\d+(\.\d+)? (m?s|min)\b.*", "TIME", line).rstrip() for line in lines]


def test_the_first_spider_of_the_readme_runs_and_says_what_the_readme_says(shop: DemoShop, tmp_path: Path) -> None:
    (tmp_path / "quotes.py").write_text(here(blocks(README, "python")[0].text, shop))
    said = session(README)

    code, out = trotline(tmp_path, "run", "quotes.py", "--allow-private")

    assert code == 0, out
    assert plain(out) == plain(said["trotline run quotes.py --allow-private"])
    _, rows = trotline(tmp_path, "export", "quotes")
    assert rows.splitlines()[:2] == said["trotline export quotes | head -2"].splitlines()
    assert [json.loads(row)["text"] for row in rows.splitlines()] == [quote.text for quote in shop.quotes]


def test_the_catalog_of_the_readme_stores_every_product_once(shop: DemoShop, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(here(blocks(README, "python")[1].text, shop))

    code, out = trotline(tmp_path, "run", "shop.py", "--allow-private", "--out", "rows.jsonl")

    assert code == 0, out
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert sorted(tuple(row.values()) for row in rows) == sorted((one.sku, one.title, one.price) for one in shop.truth)


def test_the_catalog_of_the_readme_is_the_example(shop: DemoShop) -> None:
    def bare(text: str) -> list[str]:
        lines = here(text, shop).replace('f"{SHOP}', f'"{shop.url}').splitlines()
        return [line for line in lines if line.strip() and not re.match(r'import os|SHOP =|"""', line)]

    assert bare(blocks(README, "python")[1].text) == [
        line.replace('pace="50/s"', 'pace="200/s"') for line in bare((ROOT / "examples" / "shop.py").read_text())
    ]


def test_the_tutorial_goes_as_it_says(shop: DemoShop, tmp_path: Path) -> None:
    said = session(TUTORIAL)
    spider, test = blocks(TUTORIAL, "python")
    [repair] = blocks(TUTORIAL, "diff")
    wrong, right = (line[1:] for line in repair.text.splitlines())
    seed = f"{shop.url}/c/tea"

    def same(command: str, out: str) -> None:
        """Every line that the page shows was printed; `...` stands for lines that are left out."""
        shown = [line for line in plain(here(said[command], shop)) if line.strip() not in ("...", "")]
        assert [line for line in shown if line not in plain(out)] == [], out

    code, out = trotline(tmp_path, "new", "teas", seed)
    same("trotline new teas http://127.0.0.1:8010/c/tea", out)
    code, out = trotline(tmp_path, "try", "teas.py", "--allow-private")
    same("trotline try teas.py --allow-private", out)

    (tmp_path / "teas.py").write_text(here(spider.text, shop))
    code, out = trotline(tmp_path, "run", "teas.py", "--allow-private")
    assert code == 3
    same("trotline run teas.py --allow-private", out)
    _, out = trotline(tmp_path, "dead", "teas", "--limit", "1")
    assert "teas-1: 20 dead" in out

    assert wrong in spider.text
    (tmp_path / "teas.py").write_text(here(spider.text.replace(wrong, right), shop))
    page = f"{shop.url}/p/T1"
    _, out = trotline(tmp_path, "try", "teas.py", "product", page, "--allow-private", "--save", "tea.html")
    same("trotline try teas.py product http://127.0.0.1:8010/p/T1 --allow-private", out)
    _, out = trotline(tmp_path, "dead", "teas", "--why", "handler", "--revive")
    same("trotline dead teas --why handler --revive", out)
    code, out = trotline(tmp_path, "run", "teas.py", "--allow-private")
    assert code == 0, out
    assert "20 in teas.db" in out
    assert "dead" not in re.sub(r"dead \d+", "", out), "those that were revived are not dead any more"

    _, out = trotline(tmp_path, "export", "teas", "teas.csv")
    same("trotline export teas teas.csv", out)
    # Which of several pages is stored first is not promised: the header is, and that the rows are there.
    lines = (tmp_path / "teas.csv").read_text().splitlines()
    assert lines[0] == said["head -3 teas.csv"].splitlines()[0]
    assert set(said["head -3 teas.csv"].splitlines()) <= set(lines)
    with (tmp_path / "teas.csv").open(newline="") as rows:
        assert {row["sku"] for row in csv.DictReader(rows)} == {one.sku for one in shop.truth if one.category == "tea"}
    _run_test(here(test.text, shop), tmp_path)


def _run_test(text: str, folder: Path) -> None:
    """Run the tutorial's test in the tutorial's folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        patch.delitem(__import__("sys").modules, "teas", raising=False)
        module: dict[str, object] = {}
        exec(text, module)  # noqa: S102 - our own page
        [test] = [value for name, value in module.items() if name.startswith("test_")]
        assert callable(test)
        test()


def test_the_fleet_of_the_tutorial_works_without_any_service(shop: DemoShop, tmp_path: Path) -> None:
    said = session(FLEET)
    (tmp_path / "teas.py").write_text(here(blocks(FLEET, "python")[0].text, shop))

    def told(command: str, job: str) -> list[str]:
        return [line.replace("teas-3", job) for line in plain(here(said[command], shop))]

    code, out = trotline(tmp_path, "start", "teas.py", "--detach")
    assert code == 0, out
    assert plain(out) == told("trotline start teas.py --detach", "teas-1")
    lane = shop.url.removeprefix("http://")
    for command in ("trotline pause teas", "trotline resume teas", "trotline pace --host 127.0.0.1:8010 50/s"):
        words = command.replace("127.0.0.1:8010", lane).split()[1:]
        said_back = [line.replace("127.0.0.1:8010", lane) for line in told(command, "teas-1")]
        assert plain(trotline(tmp_path, *words).out) == said_back

    code, out = trotline(tmp_path, "work", "teas.py", "--allow-private", "--until-finished")
    assert code == 0, out
    assert plain(out)[0] == "teas-1: joined with 1 process"
    skus = {json.loads(row)["sku"] for row in trotline(tmp_path, "export", "teas").out.splitlines()}
    assert skus == {one.sku for one in shop.truth if one.category in ("tea", "honey")}


def catalog_of_the_readme(shop: DemoShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the module `shop`."""
    catalog = ModuleType("shop")
    exec(here(blocks(README, "python")[1].text, shop), vars(catalog))  # noqa: S102 - our own page
    monkeypatch.setitem(__import__("sys").modules, "shop", catalog)


def test_a_script_and_a_notebook_get_the_records(
    shop: DemoShop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, notebook = (block.text for block in blocks(EMBEDDING, "python")[:2])
    catalog_of_the_readme(shop, monkeypatch)
    names: dict[str, object] = {"__name__": "script"}
    exec(script.replace("run(shop)", "run(shop, allow_private=True)"), names)  # noqa: S102 - our own page
    assert {row["sku"] for row in names["rows"]} == {one.sku for one in shop.truth}
    capsys.readouterr()
    exec(notebook.replace("App()", "App(allow_private=True)"), {"__name__": "notebook"})  # noqa: S102 - our own page
    assert len(capsys.readouterr().out.splitlines()) == len(shop.truth)


def test_a_program_that_embeds_a_spider_gets_its_rows(
    shop: DemoShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, sink = (block.text for block in blocks(EMBEDDING, "python")[2:4])
    program = program.replace('sink="sqlite:shop.db"', 'sink=FolderSink(Path("out")), allow_private=True')
    catalog_of_the_readme(shop, monkeypatch)
    monkeypatch.chdir(tmp_path)

    names: dict[str, object] = {"__name__": "embedding"}
    exec(sink + program.replace("asyncio.run(main())", ""), names)  # noqa: S102 - our own page
    main = names["main"]
    assert callable(main)
    asyncio.run(main())

    stored = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("*.json")]
    assert {row["key"] for row in stored} == {one.sku for one in shop.truth}


async def test_a_sink_tells_what_cannot_be_stored_now_and_what_never_can() -> None:
    class Client:
        async def post(self, rows: list[dict[str, Any]]) -> None:
            raise ConnectionResetError("reset")

    names: dict[str, Any] = {}
    exec(blocks(EMBEDDING, "python")[5].text, names)  # noqa: S102 - our own page
    sink = names["RowsApi"](Client())

    with pytest.raises(SinkUnreachable, match="rows API: reset"):
        await sink.write([product("T1")])
    with pytest.raises(SinkRejects) as refused:
        await sink.write([product("T1"), product("x" * 201)])
    assert refused.value.rejected == {1: "key over 200 characters"}
