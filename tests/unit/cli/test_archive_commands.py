"""`trotline archive`: what it says about damage, wrong addresses and empty answers."""

import asyncio
import json
import os

import pytest

from trotline.adapters.archive.archive import ObjectArchive
from trotline.adapters.archive.folder_store import FolderStore
from trotline.cli.main import call
from trotline.config.backends import open_frontier, open_jobs, open_sink
from trotline.model.job import LaneRules
from trotline.model.lease import Settlement
from trotline.model.outcome import Done
from trotline.model.record import Record
from trotline.model.task import Task
from trotline.testing.archive_contract import NOON, capture
from trotline.testing.frontier_contract import client

PAGES = 40
FRONTIER = "sqlite:.trotline/shop.frontier.db"


async def _archive(folder, numbers, writer="w", **more):
    archive = ObjectArchive(FolderStore(folder), writer)
    await archive.write([capture(number, **more) for number in numbers])
    await archive.close()


@pytest.fixture
def trotline(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROTLINE_ARCHIVE", "file:pages")
    asyncio.run(_archive(tmp_path / "pages", range(PAGES)))

    def said(*words, code=0):
        assert call(words) == code
        return capsys.readouterr()

    return said


def cut(tmp_path):
    [file] = tmp_path.glob("pages/warc/*/*-w_*.warc.gz")
    file.write_bytes(file.read_bytes()[:5000])
    return file


def test_an_export_beside_damage_has_the_rest_and_names_what_is_skipped(tmp_path, trotline):
    asyncio.run(_archive(tmp_path / "pages", [100], "whole"))
    (tmp_path / "pages" / "open" / "x").mkdir(parents=True)
    (tmp_path / "pages" / "open" / "x" / "foreign.warc.gz").write_bytes(b"x")
    cut(tmp_path)
    said = trotline("archive", "export", "all.warc.gz", code=3)
    number = int(said.out.split()[0])
    assert 1 < number < PAGES
    assert (tmp_path / "all.warc.gz").exists()
    assert f"skipped   {PAGES + 1 - number}: warc/" in said.err
    assert "(https://shop.example/p/" in said.err
    assert "skipped   1: open/x/foreign.warc.gz: it " in said.err
    assert "trotline archive verify" in said.err
    listed = trotline("archive", "list", "https://shop.example/p/100", code=3)
    assert "https://shop.example/p/100" in listed.out
    assert "foreign.warc.gz" in listed.err
    got = trotline("archive", "get", "https://shop.example/p/100", "--headers")
    assert "HTTP 200" in got.out
    assert "foreign.warc.gz" in got.err


def test_damage_is_shown_by_file(tmp_path, trotline):
    file = cut(tmp_path)
    said = trotline("archive", "verify", code=3).out
    assert len(said.splitlines()) < 6
    assert said.count(file.name) == 1
    found = json.loads(trotline("archive", "verify", "--json", code=3).out)["damages"]
    assert f"and {len(found) - 1} more in it" in said
    for number in range(30):
        (tmp_path / "pages" / f"{number}.warc.gz").write_bytes(b"x")
    said = trotline("archive", "verify", code=3).out
    assert len(said.splitlines()) < 20
    assert "more files: --json has all" in said


def test_a_page_is_found_however_its_address_is_written(trotline):
    for url in ("https://shop.example/p/7#reviews", "HTTPS://shop.example:443/p/7"):
        assert "HTTP 200" in trotline("archive", "get", url, "--headers").out
        assert "p/7" in trotline("archive", "list", url).out
    missing = trotline("archive", "get", "https://shop.example/none", code=2)
    assert "'https://shop.example/*'" in missing.err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("*p/7*", "only a * at the end"),
        ("shop.example", "'https://shop.example/*'"),
        ("https://shop.example/none", "nothing fits"),
    ],
)
def test_an_address_that_cannot_fit_is_explained(trotline, asked, said):
    shown = trotline("archive", "list", asked)
    assert said in shown.out + shown.err


@pytest.mark.parametrize("words", [("--job", "nope-1"), ("--url", "shop.example")])
def test_an_export_of_nothing_leaves_no_file(tmp_path, trotline, words):
    said = trotline("archive", "export", "none.warc.gz", *words, code=4)
    assert "nothing fits" in said.err
    assert (words[1] in said.err) is True
    assert not (tmp_path / "none.warc.gz").exists()


def test_an_export_of_nothing_leaves_the_file_that_was_there(tmp_path, trotline):
    (tmp_path / "old.warc.gz").write_bytes(b"old")
    trotline("archive", "export", "old.warc.gz", "--replace", "--job", "nope-1", code=4)
    assert (tmp_path / "old.warc.gz").read_bytes() == b"old"


@pytest.mark.parametrize(
    "command",
    ["archive list", "archive get", "archive verify", "archive export", "archive prune", "reparse", "coordinate"],
)
def test_commands_that_read_do_not_say_that_they_keep(trotline, command):
    said = trotline(*command.split(), "--help").out
    assert "Keep raw responses" not in said
    assert "--archive URL" in said


SHOP = """
from trotline import Spider

shop = Spider("shop")

@shop.page(key="key")
def product(page):
    yield {"key": page.url}

@shop.page
def listing(page):
    yield {}
"""


@pytest.mark.parametrize("share", [(), ("--share", "x", "--frontier", "sqlite:queue.db")])
def test_a_reparse_of_a_job_or_route_without_pages_is_refused_with_those_there_are(tmp_path, trotline, share):
    (tmp_path / "shop.py").write_text(SHOP)
    words = ("reparse", "shop.py", "--sink", "sqlite:rows.db", "--processes", "1", *share)
    said = trotline(*words, "--job", "shop-2", code=2).err
    assert "no page of a job 'shop-2' is archived here" in said
    assert "Did you mean 'shop-1'? The jobs there are: shop-1." in said
    said = trotline(*words, "--route", "listing", code=2).err
    assert "no page of a route 'listing' is archived here\n  The routes there are: product." in said
    assert "spider 'shop' has no route 'nothing'" in trotline(*words, "--route", "nothing", code=2).err
    assert not (tmp_path / "rows.db").exists()
    assert "pages     40 parsed of 40" in trotline(*words, "--job", "shop-1", "--route", "product").out


SHARE = ("--share", "x", "--frontier", "sqlite:queue.db")


@pytest.mark.parametrize("words", [(), ("--dry-run",), SHARE])
def test_a_reparse_makes_no_default_sink_beside_that_of_the_runs(tmp_path, trotline, words):
    (tmp_path / "shop.py").write_text(SHOP)
    said = trotline("reparse", "shop.py", "--processes", "1", *words, code=2).err
    assert "there is no shop.db, where runs of shop store records unless another sink is named" in said
    assert "--sink URL. For a new one: --sink shop.db" in said
    assert not (tmp_path / "shop.db").exists()
    assert "records   40" in trotline("reparse", "shop.py", "--processes", "1", *words, "--sink", "shop.db").out


async def _stored(sink_url):
    """A job with one record, which it stored there."""
    jobs = await open_jobs(FRONTIER)
    job = await jobs.start("shop", LaneRules())
    await jobs.close()
    frontier = client(await open_frontier(FRONTIER, job))
    await frontier.put([Task(url="https://shop.example/", route="product", lane="shop.example", fingerprint=1)])
    [lease] = await frontier.lease("w", 1, wait=1.0)
    await frontier.settle("w", [Settlement(lease, Done(), tallies={"records": 1})])
    await frontier.close()
    sink = open_sink(sink_url, job.id, job.started_at)
    await sink.open()
    await sink.write([Record(kind="product", key="1", data={}, url="https://shop.example/", site="shop", seen_at=NOON)])
    await sink.close()
    return job.id


@pytest.mark.parametrize("words", [(), ("--job", "shop-2"), ("--share", "x", "--frontier", FRONTIER)])
def test_a_reparse_of_a_job_whose_records_are_elsewhere_leaves_the_default_sink_alone(tmp_path, trotline, words):
    (tmp_path / "shop.py").write_text(SHOP)
    asyncio.run(_stored("sqlite:shop.db"))
    assert asyncio.run(_stored("sqlite:other.db")) == "shop-2"
    asyncio.run(_archive(tmp_path / "pages", [100], "second", job="shop-2"))
    said = trotline("reparse", "shop.py", "--processes", "1", *words, code=2).err
    assert "shop-2 has stored 1 record, and none of them is in shop.db: it is another sink than before" in said
    assert "--sink URL. For this one all the same: --sink shop.db" in said
    trotline("reparse", "shop.py", "--processes", "1", *words, "--sink", "other.db")


def test_a_reparse_without_a_page_of_the_newest_job_goes_into_the_default_sink(tmp_path, trotline):
    (tmp_path / "shop.py").write_text(SHOP)
    asyncio.run(_stored("sqlite:shop.db"))
    asyncio.run(_stored("sqlite:few.db"))
    assert "records   40" in trotline("reparse", "shop.py", "--processes", "1").out


def test_a_reparse_by_which_no_page_gives_a_record_counts_the_rows_and_asks_about_the_selector(tmp_path, trotline):
    (tmp_path / "shop.py").write_text(SHOP)
    trotline("reparse", "shop.py", "--sink", "sqlite:rows.db", "--processes", "1")
    (tmp_path / "broken.py").write_text(SHOP.replace('yield {"key": page.url}', "return ()"))
    words = ("reparse", "broken.py", "--sink", "sqlite:rows.db", "--dry-run", "--processes")
    said = trotline(*words, "2").out
    assert f"rows      0 new, 0 changed, 0 the same\n          {PAGES} that no page gives any more: they stay\n" in said
    assert f"warning   no record was given by {PAGES} parsed pages: is a selector broken?" in said
    one = """if page.url.endswith("/7"):
        yield {"key": page.url}"""
    (tmp_path / "broken.py").write_text(SHOP.replace('yield {"key": page.url}', one))
    said = trotline(*words, "1", "--route", "product").out
    assert f"1 the same\n          {PAGES - 1} that no page gives any more: they stay\n" in said
    assert "warning" not in said


@pytest.mark.parametrize("words", [("--headers", "--out", "page.html"), ("--json", "--out", "page.html")])
def test_two_forms_of_one_page_are_refused(tmp_path, trotline, words):
    """The file would not be written, and nothing would say so."""
    said = trotline("archive", "get", "https://shop.example/p/1", *words, code=2)
    assert "both say what is shown: give one of them" in said.err
    assert not (tmp_path / "page.html").exists()


def test_compact_says_why_small_files_stay(tmp_path, trotline):
    assert trotline("archive", "compact").out == "nothing to roll: there are no small files\n"
    dead, fresh = ObjectArchive(FolderStore(tmp_path / "pages"), "dead"), ObjectArchive(FolderStore(tmp_path / "pages"))
    asyncio.run(dead.write([capture(100)]))
    asyncio.run(fresh.write([capture(101)]))
    [file] = tmp_path.glob("pages/open/*dead*/*")
    os.utime(file, (1.0, 1.0))
    said = trotline("archive", "compact").out
    assert said == ("1 file made\n1 small file kept: written within the last 1 h, maybe by a worker that is at work\n")
    folder = tmp_path / "pages" / "open" / "broken"
    folder.mkdir()
    (folder / "1.warc.gz").write_bytes(b"x")
    os.utime(folder / "1.warc.gz", (1.0, 1.0))
    said = trotline("archive", "compact").out
    assert said.startswith("0 files made\n1 small file kept: written")
    assert "1 small file kept: damaged, or too large for one file. `trotline archive verify`" in said
