"""The coordinator, a real process, merges after a job. Killed in the middle, the next one makes the same things."""

import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from bench import merge_shops
from tests.e2e.running import call
from tests.e2e.test_coordinators import coordinator, hears

from trotline.commands.merge import MergePlan, merge
from trotline.config import backends
from trotline.model.job import LaneRules
from trotline.model.merge import MergeTotals, source_id, thing_id
from trotline.model.record import Record
from trotline.spider.spider import Spider
from trotline.testing.postgres_server import PASSWORD, USER, postgres

SPIDER = """
import os, signal
from pathlib import Path

from trotline import Spider

shop = Spider("shop")


@shop.merge(by=["text"])
def same(record):
    doom = Path("doom")
    if doom.exists() and record.key == doom.read_text():
        doom.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return record.data.get("ean")


@shop.page(seeds=["https://shop.example/"])
def page(page):
    yield {}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SPIDER)
    return tmp_path


@pytest.fixture(params=["sqlite", "postgresql"])
def sink(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:{folder / 'rows.db'}"
        return
    with postgres() as database:
        # A command line has no passwords.
        passwords = folder / "passwords"
        passwords.touch(mode=0o600)
        passwords.write_text(f"*:*:*:*:{PASSWORD}\n")
        yield f"postgresql://{USER}@127.0.0.1:{database.port}/postgres?passfile={passwords}"


async def stored(sink: str, records: list[Record]) -> None:
    opened = backends.open_sink(sink)
    await opened.open()
    await opened.write(records)
    await opened.close()


async def finished_job(frontier: str) -> str:
    jobs = await backends.open_jobs(frontier)
    opened = await backends.open_frontier(frontier, await jobs.start("shop", LaneRules()))
    await opened.frontier.seal()
    # As a worker does it: the coordinator finds a job that has ended.
    assert await opened.frontier.announce_finish()
    await opened.close()
    await jobs.close()
    return opened.job.id


@pytest.mark.timeout(240)
async def test_a_coordinator_that_is_killed_while_it_merges_is_replaced_and_the_things_are_the_same(
    folder: Path, sink: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = merge_shops.shops(60, seed=7).records
    await stored(sink, records)
    frontier = f"sqlite:{folder / 'frontier.db'}"
    monkeypatch.setenv("TROTLINE_SINK", sink)
    job = await finished_job(frontier)
    (folder / "doom").write_text(records[80].key)

    async with coordinator(folder, frontier) as killed:
        assert -signal.SIGKILL == await killed.process.wait()
    async with coordinator(folder, frontier) as second:
        merged = await hears(second, "job.merged")

    assert not (folder / "doom").exists()
    expected = await _alone(folder, records)
    assert {"things": expected.things, "merged": expected.merged, "review": expected.review} == {
        name: merged[name] for name in ("things", "merged", "review")
    }
    shown = await call(folder, "status", "shop", "--frontier", frontier)
    assert f"{job}  finished" in shown.out
    assert f"merged: {expected.things:,} things of 120 records, {expected.merged:,} of several" in shown.out
    # Another merge finds nothing to do, and people can undo what this one did.
    again = await call(folder, "merge", "shop.py", "--json")
    assert 0 == msgspec.json.decode(again.out)["read"]
    thing = await _of_two(sink, records)
    split = await call(folder, "merge", "shop.py", "--split", thing)
    assert f"things     {expected.things + 1:,} (+1)" in split.out
    assert f"merged     {expected.merged - 1:,} (-1)" in split.out


async def _of_two(sink: str, records: list[Record]) -> str:
    store = backends.open_merge_store(sink)
    try:
        for record in records:
            name = thing_id(source_id(record.site, record.kind, record.key))
            thing = await store.thing(name)
            if thing is not None and len(thing.sources) == 2:
                return name
    finally:
        await store.close()
    raise AssertionError("nothing was merged")


async def _alone(folder: Path, records: list[Record]) -> MergeTotals:
    await stored(f"sqlite:{folder / 'alone.db'}", records)
    shop = Spider("shop")
    shop.merge(by=["text"])(lambda record: record.data.get("ean"))
    assert shop.merging is not None
    plan = MergePlan(sink=f"sqlite:{folder / 'alone.db'}", rule=shop.merging.rule, author=shop.merging.author)
    return (await merge(plan)).after
