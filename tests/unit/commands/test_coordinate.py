"""After a job the coordinator merges its records, if the spider has a rule for it."""

import logging
import sqlite3

import msgspec

from trotline.adapters.objects.archive import ObjectArchive
from trotline.adapters.objects.folder import FolderStore
from trotline.adapters.sqlite.sink import SqliteSink
from trotline.commands.coordinate import CoordinatePlan, Post, SpiderHooks
from trotline.model.job import Job, LaneRules
from trotline.model.record import Record
from trotline.spider.spider import Spider
from trotline.testing.archive_contract import NOON, capture, found

DAY = 86_400.0


async def concluded(tmp_path, spider):
    path = tmp_path / "rows.db"
    sink = SqliteSink(path)
    await sink.write(
        [
            Record(kind="p", key=key, data={"code": "x"}, url=f"https://{key}.example/", site=key, seen_at=1.0)
            for key in ("a", "b")
        ]
    )
    await sink.close()
    post = Post(ref="shop.py", spider=spider, frontier="sqlite::memory:", sink=f"sqlite:{path}")
    hooks = SpiderHooks(CoordinatePlan(posts=(post,)), [post])
    await hooks.conclude(Job(id="shop-1", spider="shop", started_at=1.0, rules=LaneRules()))
    return sqlite3.connect(path)


async def test_a_spider_with_a_merge_rule_has_things_after_its_job(tmp_path):
    shop = Spider("shop")
    shop.merge(lambda record: record.data["code"])
    connection = await concluded(tmp_path, shop)
    assert [(2, "a, b")] == connection.execute("SELECT sources, sites FROM things").fetchall()
    connection.close()


async def test_a_rule_that_fails_is_logged_and_the_job_is_finished(tmp_path, caplog):
    shop = Spider("shop")

    @shop.merge
    def same(record):
        return record.data["missing"]

    with caplog.at_level(logging.WARNING, "trotline.coordinate"):
        connection = await concluded(tmp_path, shop)
    connection.close()
    assert "job.merge_failed shop-1" in caplog.text
    assert "KeyError" in caplog.text


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
    connection = await concluded(tmp_path, Spider("shop"))
    assert [] == connection.execute("SELECT name FROM sqlite_master WHERE name = 'things'").fetchall()
    connection.close()
