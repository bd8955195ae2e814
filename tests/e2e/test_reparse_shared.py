"""One re-parse by several processes: each unit is parsed, also those of a process that is killed."""

import asyncio
import json
import signal
import sqlite3
from contextlib import closing

import pytest
from tests.e2e.running import call, start

from trotline import Queue
from trotline.adapters.archive.archive import ObjectArchive
from trotline.adapters.archive.folder_store import FolderStore
from trotline.testing.archive_contract import capture

UNITS, PAGES = 8, 5
SPIDER = """
import os, time
from trotline import Page, Spider

shop = Spider("shop")


@shop.page(key="key")
def product(page: Page):
    time.sleep(float(os.environ.get("SLOW", "0")))
    yield {"key": page.url, "size": len(page.body)}
"""
WORDS = ("reparse", "shop.py", "--archive", "file:pages", "--sink", "sqlite:rows.db", "--json", "--processes", "1")


@pytest.fixture
async def folder(tmp_path):
    """Six files, and two writers that have not rolled theirs."""
    (tmp_path / "shop.py").write_text(SPIDER)
    for unit in range(UNITS):
        writer = ObjectArchive(FolderStore(tmp_path / "pages"), f"w{unit}")
        await writer.write([capture(unit * PAGES + page) for page in range(PAGES)])
        if unit < UNITS - 2:
            await writer.close()
    return tmp_path


def stored(folder):
    if not (folder / "rows.db").exists():
        return 0
    with closing(sqlite3.connect(folder / "rows.db", timeout=30)) as db:
        try:
            return db.execute("SELECT count(*) FROM records").fetchone()[0]
        except sqlite3.OperationalError:
            return 0


async def first_rows(folder):
    async with asyncio.timeout(60):
        while not stored(folder):  # noqa: ASYNC110 - other processes have no event of ours
            await asyncio.sleep(0.05)


@pytest.mark.slow("processes that share work, and one that is killed")
async def test_units_of_a_killed_process_are_parsed_by_the_others(folder, both):
    frontier, _ = both.places()
    words = (*WORDS, "--share", "july", "--frontier", frontier)
    victim = await start(folder, *words, env={"SLOW": "0.2"})
    await first_rows(folder)
    others = [await start(folder, *words, env={"SLOW": "0.05"}) for _ in range(2)]
    victim.signal_all(signal.SIGKILL)
    await victim.process.wait()
    ended = [await other.end() for other in others]
    assert [one.code for one in ended] == [0, 0], ended
    reports = [json.loads(one.out) for one in ended]
    assert stored(folder) == UNITS * PAGES
    assert {one["done"] for one in reports} == {UNITS}
    # It died with a unit in its hands: before or after the settle of the first one.
    assert victim.process.returncode == -signal.SIGKILL
    assert 0 < sum(one["units"] for one in reports) <= UNITS
    late = await call(folder, *words)
    assert (late.code, json.loads(late.out)["was_over"]) == (0, True)


@pytest.mark.slow("a run with a damaged file")
async def test_a_damaged_file_is_buried_and_the_others_are_parsed(folder):
    [file, *_] = sorted(folder.glob("pages/warc/*/*.warc.gz"))
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    ended = await call(folder, *WORDS, "--share", "july", "--frontier", "sqlite:frontier.db")
    report = json.loads(ended.out)
    assert (ended.code, report["done"], report["dead"]) == (3, UNITS - 1, 1)
    # What can be read of the file is stored, too.
    assert (UNITS - 1) * PAGES < stored(folder) < UNITS * PAGES
    lost = UNITS * PAGES - stored(folder)
    assert sum(report["counts"]["damaged"].values()) == lost
    shown = await call(folder, "dead", report["job"], "--frontier", "sqlite:frontier.db")
    assert "damaged: warc/" in shown.out


@pytest.mark.slow("a re-parse of an archive with a damaged file")
async def test_a_reparse_beside_damage_parses_the_rest_and_says_what_is_missing(folder):
    [file, *_] = sorted(folder.glob("pages/warc/*/*.warc.gz"))
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    (folder / "pages" / "open" / "x").mkdir()
    (folder / "pages" / "open" / "x" / "foreign.warc.gz").write_bytes(b"x")
    words = [word for word in WORDS if word != "--json"]
    ended = await call(folder, *words)
    assert ended.code == 3, ended.err
    lost = UNITS * PAGES - stored(folder)
    assert 0 < lost < PAGES
    assert f"damaged {lost}: warc/" in ended.out
    assert "(https://shop.example/p/" in ended.out
    assert "damaged 1: open/x/foreign.warc.gz: it " in ended.out
    assert "trotline archive verify" in ended.out


async def test_another_spider_cannot_join(folder):
    words = ("--share", "july", "--frontier", "sqlite:frontier.db")
    (folder / "other.py").write_text(SPIDER.replace('"shop"', '"other"'))
    first = await start(folder, *WORDS, *words, env={"SLOW": "0.5"})
    await first_rows(folder)
    ended = await call(folder, WORDS[0], "other.py", *WORDS[2:], *words)
    assert ended.code == 2
    assert "begun for the spider 'shop'" in ended.err
    assert (await first.end()).code == 0
    assert stored(folder) == UNITS * PAGES


@pytest.mark.slow("a re-parse whose queue has more than its units")
async def test_what_somebody_else_put_into_the_queue_is_buried_and_the_units_are_parsed(folder):
    good = {"unit": "open/x", "spider": "shop", "query": {}}
    odd = [
        {},
        good | {"unit": 7},
        good | {"unit": "open/../../x"},
        good | {"query": {"since": "x"}},
        good | {"unit": "x"},
    ]
    async with Queue("reparse-july", f"sqlite:{folder}/frontier.db", pace="1000/s") as queue:
        await queue.add_all({"url": f"https://archive.invalid/{n}", "meta": meta} for n, meta in enumerate(odd))
    ended = await call(folder, *WORDS, "--share", "july", "--frontier", "sqlite:frontier.db")
    report = json.loads(ended.out)
    assert (ended.code, report["done"], report["dead"]) == (3, UNITS, len(odd)), ended
    assert stored(folder) == UNITS * PAGES


@pytest.mark.parametrize(
    ("more", "said"), [(("--share", "a", "--dry-run"), "give one of them"), (("--frontier", "sqlite:x.db"), "--share")]
)
async def test_options_that_do_not_go_together_are_refused(folder, more, said):
    ended = await call(folder, *WORDS, *more)
    assert (ended.code, said in ended.err) == (2, True)
