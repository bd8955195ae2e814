"""A fleet whose workers know Redis alone, and writers that are stopped and killed."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.e2e.fleet import Fleet, Servers, news, until
from tests.e2e.fleet_job import eventually
from tests.e2e.held_site import HeldSite
from tests.e2e.running import call, start

PAGES = 30


@pytest.fixture
async def site() -> AsyncIterator[HeldSite]:
    async with HeldSite(pages=PAGES, held=("a",)) as opened:
        yield opened


class Way:
    """Fetchers that know the queue, and a database that they do not."""

    def __init__(self, folder: Path, both: Servers) -> None:
        queue, self.database = both.places()
        self.outbox = f"{queue}?outbox=results&lease=2s"
        self.fetchers = Fleet(folder, queue, self.outbox)
        self.rows = Fleet(folder, queue, self.database)

    async def writer(self, *words: str) -> Any:
        running = await start(
            self.fetchers.folder, "write", "--from", "env:OUTBOX", "--sink", "env:DATABASE", "--json", *words,
            env={"OUTBOX": self.outbox, "DATABASE": self.database},
        )  # fmt: skip
        self.fetchers.running.append(running)
        return running

    async def ask(self, question: str) -> list[Any]:
        url, _, schema = self.database.partition("?schema=")
        connection = await asyncpg.connect(url)
        try:
            return [row[0] for row in await connection.fetch(question.replace("{s}", schema))]
        finally:
            await connection.close()


@pytest.fixture
async def way(tmp_path: Path, both: Servers) -> AsyncIterator[Way]:
    opened = Way(tmp_path, both)
    yield opened
    await opened.fetchers.end()


async def fetched(way: Way, site: HeldSite) -> None:
    """Every page is settled, by workers that have never heard of a database."""
    site.release()
    (way.fetchers.folder / "site.py").write_text(site.spider())
    ended = await way.fetchers.call("start", "site.py", "--detach")
    assert ended.code == 0, ended
    workers = [await way.fetchers.start("work", "site.py", "--until-finished", "--slots", "4") for _ in range(2)]
    for end in await asyncio.gather(*(worker.end() for worker in workers)):
        assert end.code == 0, end


async def test_a_writer_killed_in_the_middle_costs_no_row_and_doubles_none(way: Way, site: HeldSite):
    first = await way.writer()
    await news(first, "writes")
    url, _, schema = way.database.partition("?schema=")
    lock = await asyncpg.connect(url)
    stands_still = lock.transaction()
    await stands_still.start()
    await lock.execute(f"LOCK TABLE {schema}.records IN EXCLUSIVE MODE")
    await fetched(way, site)
    await eventually(lambda: lock.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"), lambda stuck: stuck > 0)

    first.signal_all(signal.SIGKILL)
    await first.process.wait()
    await stands_still.rollback()
    await lock.close()

    [listed] = (await way.fetchers.call("jobs", "--json")).events
    assert listed["state"] == "finished"
    assert listed["unwritten"] > 0
    assert "trotline write" in (await way.fetchers.call("jobs")).out
    assert "not in the database yet" in (await way.fetchers.call("watch", "site", "--once")).out
    looked = await way.fetchers.call("watch", "site", "--json")
    assert looked.events[0]["unwritten"] == listed["unwritten"]

    seconds = [await way.writer("--until-empty") for _ in range(2)]
    for end in await asyncio.gather(*(writer.end() for writer in seconds)):
        assert end.code == 0, end
        assert end.summary["empty"]
        assert "postgres:" not in end.out, "a password would be there"

    assert await way.rows.names() == sorted(site.names)
    assert await way.ask("SELECT count(*) FROM {s}.visits") == [len(site.names)]
    assert await way.ask("SELECT DISTINCT job FROM {s}.records") == ["site-1"]
    [listed] = (await way.fetchers.call("jobs", "--json")).events
    assert listed["unwritten"] == 0


async def test_a_writer_that_is_asked_to_stop_ends_what_it_has_in_hand(way: Way, site: HeldSite):
    writer = await way.writer()
    await news(writer, "writes")
    await fetched(way, site)
    await until(writer, lambda event: event["event"] == "written")
    writer.process.terminate()
    ended = await writer.end()
    assert (ended.code, ended.summary["event"]) == (0, "ended")

    held = await way.ask("SELECT count(*) FROM {s}.visits")
    assert held[0] >= sum(event["visits"] for event in ended.events if event["event"] == "written")
    assert (await (await way.writer("--until-empty")).end()).code == 0
    assert await way.rows.names() == sorted(site.names)


async def test_workers_are_held_back_while_nobody_writes_and_go_on_by_themselves(way: Way, site: HeldSite):
    way.fetchers.sink = f"{way.outbox}&most=1"
    site.release()
    (way.fetchers.folder / "site.py").write_text(site.spider())
    assert (await way.fetchers.call("start", "site.py", "--detach")).code == 0
    worker = await way.fetchers.start("work", "site.py", "--until-finished")
    await until(worker, lambda event: "parcels wait for a writer" in event.get("held_back", ""))
    writer = await way.writer()
    ended = await worker.end()
    assert ended.code == 0, ended
    writer.process.terminate()
    await writer.end()
    assert (await (await way.writer("--until-empty")).end()).code == 0
    assert await way.rows.names() == sorted(site.names)
    assert set(site.visits.values()) == {1}


async def test_what_cannot_work_is_said_at_once(way: Way, tmp_path: Path):
    for words, said in (
        (("--from", "redis://127.0.0.1:1/0"), "outbox=results"),
        (("--from", "redis://127.0.0.1:1/0?outbox=r", "--sink", "rows.db"), "outbox r: cannot reach redis"),
        (("--from", "rows.db", "--sink", "other.db"), "not an outbox"),
        (("--from", "redis://127.0.0.1:1/0?outbox=r"), "--sink URL"),
    ):
        ended = await call(tmp_path, "write", *words)
        assert ended.code == 2, ended
        assert said in ended.err
    export = await way.fetchers.call("export", "site", "--sink", way.outbox)
    assert export.code == 2
    assert "is an outbox, not a database" in export.err
