"""After a job the coordinator merges its records, if the spider has a rule for it."""

import sqlite3

import msgspec

from trotline.adapters.archive.archive import ObjectArchive
from trotline.adapters.archive.folder_store import FolderStore
from trotline.adapters.sqlite.sink import SqliteSink
from trotline.commands.coordinate import CoordinatePlan, Post, SpiderHooks
from trotline.config import backends
from trotline.model.job import LaneRules
from trotline.model.record import Record
from trotline.rules import merge_note
from trotline.spider.spider import Spider
from trotline.testing.archive_contract import NOON, capture, found

DAY = 86_400.0


async def stored(path):
    sink = SqliteSink(path)
    await sink.write(
        [
            Record(kind="p", key=key, data={"code": "x"}, url=f"https://{key}.example/", site=key, seen_at=1.0)
            for key in ("a", "b")
        ]
    )
    await sink.close()


async def followed(tmp_path, spider, times=1):
    """What the hook answered, and the note of the job."""
    await stored(tmp_path / "rows.db")
    frontier = f"sqlite:{tmp_path / 'frontier.db'}"
    post = Post(ref="shop.py", spider=spider, frontier=frontier, sink=f"sqlite:{tmp_path / 'rows.db'}")
    hooks = SpiderHooks(CoordinatePlan(posts=(post,)), [post])
    jobs = await backends.open_jobs(frontier)
    opened = await backends.open_frontier(frontier, await jobs.start("shop", LaneRules()))
    answers = [await hooks.follow_up(opened.job, opened) for _ in range(times)]
    [note] = await opened.console.read_notes([merge_note.NOTE])
    await opened.close()
    await jobs.close()
    return answers, note and merge_note.decode(note.data)


def things(tmp_path):
    connection = sqlite3.connect(tmp_path / "rows.db")
    try:
        return connection.execute("SELECT sources, sites FROM things").fetchall()
    finally:
        connection.close()


async def test_a_spider_with_a_merge_rule_has_things_after_its_job_and_is_merged_once(tmp_path):
    shop = Spider("shop")
    shop.merge(lambda record: record.data["code"])
    [first, second], note = await followed(tmp_path, shop, times=2)
    assert [(2, "a, b")] == things(tmp_path)
    assert first == note
    assert "1 thing of 2 records, 1 of several" == note.sentence
    assert second is None


async def test_a_rule_that_fails_is_noted(tmp_path):
    shop = Spider("shop")

    @shop.merge
    def same(record):
        return record.data["missing"]

    [answer], note = await followed(tmp_path, shop)
    assert answer == note
    assert "KeyError" in note.error
    assert note.sentence.startswith("the merge failed: ")


async def test_captures_beyond_keep_of_the_url_are_pruned_by_maintenance(tmp_path):
    folder = tmp_path / "pages"
    for number, age in ((1, 100 * DAY), (2, 10 * DAY)):
        writer = ObjectArchive(FolderStore(folder), f"w{number}")
        await writer.write([capture(number, at=NOON - age)])
        await writer.close()
    for options, left in (("", [1, 2]), ("?keep=90d", [2])):
        post = Post(
            ref="shop.py", spider=Spider("shop"), frontier="sqlite::memory:", sink=f"sqlite:{tmp_path}/none.db",
            archive=f"file:{folder}{options}",
        )  # fmt: skip
        await SpiderHooks(CoordinatePlan(posts=(post,)), [post]).maintain(NOON)
        assert [entry.id for entry in await found(ObjectArchive(FolderStore(folder)))] == [f"{n:032x}" for n in left]
    elsewhere = msgspec.structs.replace(post, archive=f"file:{tmp_path}/elsewhere?keep=90d")
    await SpiderHooks(CoordinatePlan(posts=(elsewhere,)), [elsewhere]).maintain(NOON)
    assert not (tmp_path / "elsewhere").exists()


async def test_without_a_rule_nothing_is_merged(tmp_path):
    assert ([None], None) == await followed(tmp_path, Spider("shop"))


def test_a_note_that_another_program_damaged_is_no_note():
    assert merge_note.decode(b'{"totals": 7}') is None
    assert merge_note.decode(b"\xff\xfe") is None
    assert merge_note.MergeNote() == merge_note.decode(b"{}")


def test_secrets_of_an_error_are_not_kept():
    note = merge_note.failed("cannot open postgresql://shop:hush@db/rows " + "x" * 1000)
    assert "hush" not in note.error
    assert len(note.error) <= merge_note.LONGEST
