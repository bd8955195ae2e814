"""Files that cannot be written, and files that are gone: a run says so, ends with a reason, and goes on later."""

import resource
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.running import Running, call, rows_of, start

RUN = ("run", "site.py", "--allow-private", "--json")
ROOM = 1_000_000
"""Bytes that a file may have on the full disk of these tests."""
MANY = 700
LARGE_FRONTIER = f"""
    if page.css("h1::text").get() == "home":
        for number in range({MANY}):
            yield leaf.task(f"{{page.url}}page/1?n={{number}}&x={{'x' * 1800}}")


@site.page(key="n")
def leaf(page: Page):
    yield {{"name": "leaf", "n": page.url.split("?")[1][:5]}}
"""


@pytest.fixture
async def site() -> AsyncIterator[HeldSite]:
    async with HeldSite(pages=8) as opened:
        yield opened


def _little_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))


def _filling(site: HeldSite, file: str) -> str:
    """A spider that has more for the file than there is room."""
    if file == "site.frontier.db":
        return site.spider(pace="5000/s") + LARGE_FRONTIER
    return site.spider().replace('"name":', '"ballast": "x" * 300_000, "name":')


async def _held_back(running: Running, what: str) -> str:
    while what not in (said := (await running.event())["held_back"]):
        pass
    return said


@pytest.mark.parametrize("file", ["rows.db", "rows.jsonl", "site.frontier.db"])
async def test_a_full_disk_ends_the_run_after_a_stated_time_and_nothing_is_lost(
    site: HeldSite, tmp_path: Path, file: str
):
    (tmp_path / "site.py").write_text(_filling(site, file))
    site.release()
    out = ("--out", file if file.startswith("rows") else "rows.db")
    running = await start(tmp_path, *RUN, *out, "--storage-patience", "3s", "--grace", "1s", preexec_fn=_little_room)
    said = await _held_back(running, "the run ends in")
    ended = await running.end()

    assert file in said
    assert ended.code == 2, ended
    assert file in ended.err
    assert "storage_patience" in ended.err
    assert "the same command again" in ended.err

    again = await call(tmp_path, *RUN, *out)
    assert again.code == 0, again
    rows = [row["name"] for row in rows_of(tmp_path / out[1])]
    assert sorted({*rows} - {"leaf"}) == sorted(site.names)
    assert rows.count("leaf") == (MANY if file == "site.frontier.db" else 0)


async def _stored(running: Running, pages: int) -> None:
    while (await running.event())["done"] < pages:
        pass


def _remove(file: Path) -> None:
    for part in file.parent.glob(f"{file.name}*"):
        part.unlink()


@pytest.mark.parametrize("file", ["rows.db", "rows.jsonl", ".trotline/rows.csv.index"])
async def test_a_sink_that_vanishes_in_the_middle_of_a_run_is_named(site: HeldSite, tmp_path: Path, file: str):
    (tmp_path / "site.py").write_text(site.spider())
    out = tmp_path / Path(file).name.removesuffix(".index")
    running = await start(tmp_path, *RUN, "--out", out.name)
    await site.arrived()
    await _stored(running, 9)
    _remove(tmp_path / file)
    site.release()
    ended = await running.end()

    assert ended.code == 2, ended
    assert out.name in ended.err
    assert "--fresh" in ended.err
    assert not (tmp_path / file).exists(), "no half of the rows is left behind as if it were all"

    resumed = await call(tmp_path, *RUN, "--out", out.name)
    assert resumed.code == 2, "it would finish without the rows of before"
    assert "none of them is in" in resumed.err
    assert out.name in resumed.err
    if out.suffix == ".db":
        assert not out.exists(), "a refused run leaves no empty database"

    again = await call(tmp_path, *RUN, "--out", out.name, "--fresh")
    assert again.code == 0, again
    assert sorted(row["name"] for row in rows_of(out)) == sorted(site.names)


async def test_a_frontier_that_vanishes_in_the_middle_of_a_run_is_named(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    running = await start(tmp_path, *RUN)
    await site.arrived()
    await _stored(running, 9)
    _remove(tmp_path / ".trotline/site.frontier.db")
    site.release()
    ended = await running.end()

    assert ended.code == 2, ended
    assert "site.frontier.db was deleted or moved" in ended.err


@pytest.mark.parametrize("file", ["rows.db", "rows.jsonl"])
async def test_a_sink_that_vanishes_after_its_last_row_is_named_too(site: HeldSite, tmp_path: Path, file: str):
    quiet = '    if page.css("h1::text").get() == "held/slow":\n        return\n    yield {"name":'
    (tmp_path / "site.py").write_text(site.spider().replace('    yield {"name":', quiet))
    running = await start(tmp_path, *RUN, "--out", file, "--no-visits")
    await site.arrived()
    await _stored(running, 9)
    _remove(tmp_path / file)
    site.release()
    ended = await running.end()

    assert ended.code == 2, ended
    assert file in ended.err
