"""A number of records on the screen is the number of rows in the store."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.kills import EVERYTHING
from tests.e2e.running import KILLER, call, rows_of, start

SPIDER = """
import os

from trotline import Page, Spider

{name} = Spider("{name}", pace="500/s")


@{name}.page(key="name", seeds=["{url}/"])
def page(page: Page):
    name = page.css("h1::text").get()
    yield {{"name": name, "price": os.environ.get("PRICE", "1") if name.endswith("1") else "1"}}
    # Every page shows the same teaser: one row, met on each of them.
    yield {{"name": "teaser"}}
    yield page.follow("a")
"""
RUN = ("--allow-private", "--json")


def write(folder: Path, site: HeldSite, name: str = "shop") -> None:
    (folder / f"{name}.py").write_text(SPIDER.format(name=name, url=site.url))


def counts(summary: dict[str, Any]) -> tuple[int, int, int, int]:
    stored = summary["stored"]
    return summary["records"], stored["new"], stored["changed"], stored["again"]


@pytest.mark.parametrize("ending", ["db", "jsonl", "csv"])
async def test_duplicates_and_changed_rows_are_told_apart(ending: str, tmp_path: Path) -> None:
    out = tmp_path / f"rows.{ending}"
    async with HeldSite(pages=12, held=()) as site:
        write(tmp_path, site)
        first = await call(tmp_path, "run", "shop.py", *RUN, "--out", out.name)
        second = await call(tmp_path, "run", "shop.py", *RUN, "--out", out.name, env={"PRICE": "2"})

    # 13 pages and the teaser, which was found on each of them.
    assert counts(first.summary) == (14, 14, 0, 12)
    assert first.summary["found"] == 26
    # page/1 and page/11 have another price now.
    assert counts(second.summary) == (14, 0, 2, 24)
    assert len(rows_of(out)) == 14


async def test_two_spiders_in_one_sink_are_counted_apart(tmp_path: Path) -> None:
    async with HeldSite(pages=4, held=()) as site:
        for name in ("shop", "store"):
            write(tmp_path, site, name)
        await call(tmp_path, "run", "shop.py", *RUN, "--out", "rows.db")
        ended = await call(tmp_path, "run", "store.py", *RUN, "--out", "rows.db")

    assert counts(ended.summary) == (12, 6, 0, 4)
    assert len(rows_of(tmp_path / "rows.db")) == 12


@pytest.mark.parametrize("ending", ["db", "jsonl"])
async def test_after_a_kill_between_store_and_settle_the_numbers_still_hold(ending: str, tmp_path: Path) -> None:
    out = tmp_path / f"rows.{ending}"
    path = os.pathsep.join([str(KILLER), os.environ.get("PYTHONPATH", "")])
    async with HeldSite(pages=30, held=()) as site:
        write(tmp_path, site)
        doom = {"PYTHONPATH": path, "E2E_DOOM": f"after store:{EVERYTHING}:2:{tmp_path / 'struck'}"}
        words = ("run", "shop.py", *RUN, "--slots", "4", "--out", out.name)
        running = await start(tmp_path, *words, env=doom)
        assert await running.exit_code() != 0
        await running.end()
        ended = await call(tmp_path, *words, env={"PYTHONPATH": path, "E2E_DEAD_AFTER": "3600"})

    assert (tmp_path / "struck").exists()
    rows = rows_of(out)
    assert len(rows) == 32
    records, new, changed, again = counts(ended.summary)
    # All of them are new in this job, although some were stored by those who were killed before they could settle.
    assert (records, new, changed) == (32, 32, 0)
    assert again > ended.summary["found"] - 32


async def test_the_summary_says_what_happened_to_the_rows(tmp_path: Path) -> None:
    async with HeldSite(pages=2, held=()) as site:
        write(tmp_path, site)
        ended = await call(tmp_path, "run", "shop.py", "--allow-private")

    assert "records   4 in shop.db: 4 new, 2 seen again" in ended.out
