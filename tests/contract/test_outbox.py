"""Results through an outbox and a writer: a sink like any other, and nothing is lost on the way."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.contract.postgres_servers import ask
from tests.contract.redis_servers import server

from trotline.adapters.redis.outbox import OutboxSink, RedisOutbox, parse, unwritten
from trotline.adapters.redis.outbox_codec import MOST_THINGS, Packed, pack, unpack
from trotline.adapters.sqlite.sink import SqliteSink
from trotline.commands.write import MOST_TIMES, WriteEvent, Writer
from trotline.errors import SettingsError, SinkRejects, SinkUnreachable
from trotline.rules.storable_rows import rows_of
from trotline.testing.ledger_contract import FULL, line
from trotline.testing.redis_server import BUILDS, DEBIAN, redis
from trotline.testing.sink_contract import SinkContract, product

_numbers = itertools.count()
SOON = 0.05
"""A lease for tests that wait until it is over."""


def address(build: str = DEBIAN, **options: Any) -> str:
    """An outbox that nobody has used."""
    return f"{server(build).url}?outbox=o{next(_numbers)}" + "".join(f"&{n}={v}" for n, v in options.items())


async def drain(url: str, sink: str) -> list[WriteEvent]:
    """What a writer said that wrote until nothing was left."""
    said: list[WriteEvent] = []
    outbox = RedisOutbox(url)
    writer = Writer(outbox, sink, said.append, until_empty=True)
    try:
        async with asyncio.timeout(60):
            await writer.run()
    finally:
        await writer.close()
        await outbox.close()
    return said


def stored(file: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    import sqlite3

    with sqlite3.connect(file) as db:
        found = db.execute("SELECT site, kind, key, data FROM records").fetchall()
    db.close()
    return {tuple(row[:3]): json.loads(row[3]) for row in found}


class Way(OutboxSink):
    """An outbox, with the sink at its other end."""

    def __init__(self, url: str, sink: str) -> None:
        super().__init__(url)
        self.url, self.sink = url, sink


class TestOutboxToSqlite(SinkContract):
    @pytest.fixture(params=BUILDS)
    def sink(self, request: pytest.FixtureRequest, tmp_path: Path) -> Way:
        return Way(address(request.param), f"sqlite:{tmp_path}/rows.db")

    def second(self, sink: Way) -> Way:
        return Way(sink.url, sink.sink)

    async def rows(self, sink: Way) -> Any:
        await drain(sink.url, sink.sink)
        return stored(Path(sink.sink.removeprefix("sqlite:")))


class TestOutboxToPostgres(SinkContract):
    @pytest.fixture
    def sink(self, anywhere: str) -> Way:
        return Way(address(), anywhere)

    def second(self, sink: Way) -> Way:
        return Way(sink.url, sink.sink)

    async def rows(self, sink: Way) -> Any:
        await drain(sink.url, sink.sink)
        found = await ask(sink.sink, "SELECT site, kind, key, data FROM {s}.records")
        return {row[:3]: json.loads(row[3]) for row in found}


@pytest.fixture
async def sink() -> AsyncIterator[OutboxSink]:
    opened = OutboxSink(address(), job="shop-1")
    yield opened
    await opened.close()


@pytest.fixture
async def outbox(sink: OutboxSink) -> AsyncIterator[RedisOutbox]:
    opened = RedisOutbox(sink._outbox.address._replace(lease=SOON))
    yield opened
    await opened.close()


def lines(count: int, job: str = "shop-1") -> list[Any]:
    return [line(number + 1, job=job) for number in range(count)]


async def test_visits_travel_with_the_records_and_are_in_the_ledger_once(sink: OutboxSink, tmp_path: Path) -> None:
    visits = [*lines(3), FULL]
    for _ in range(2):
        await sink.write([product("T1")], visits)

    await drain(_url(sink), f"sqlite:{tmp_path}/rows.db")

    ledger = SqliteSink(str(tmp_path / "rows.db"))
    told = await ledger.story([each.fingerprint for each in visits])
    await ledger.close()
    assert sorted(told, key=lambda each: each.token) == visits


async def test_values_arrive_as_a_direct_write_stores_them(sink: OutboxSink, tmp_path: Path) -> None:
    odd = product("T1", huge=2**70, when=datetime(2026, 1, 2, tzinfo=UTC), text="a\0b", deep=[{"a": [1.5, None]}])
    direct = SqliteSink(str(tmp_path / "direct.db"))
    await direct.write([odd])
    await direct.close()

    await sink.write([odd])
    await drain(_url(sink), f"sqlite:{tmp_path}/rows.db")

    assert stored(tmp_path / "rows.db") == stored(tmp_path / "direct.db")


async def test_a_large_batch_is_cut_into_parcels_of_bounded_size(sink: OutboxSink, outbox: RedisOutbox) -> None:
    records = [product(f"T{n}", text="x" * 3_000) for n in range(1_500)]
    await sink.write(records, lines(MOST_THINGS + 1))

    found = []
    while taken := await outbox.take():
        found += taken
        assert all(sum(len(record.data["text"]) for record in one.records) < 1_100_000 for one in taken)
        await outbox.done(taken)
    assert [record for parcel in found for record in parcel.records] == records
    assert [each for parcel in found for each in parcel.visits] == lines(MOST_THINGS + 1)


async def test_fetchers_are_held_back_while_too_much_waits_and_go_on_afterwards(tmp_path: Path) -> None:
    sink = OutboxSink(address(most=3))
    for number in range(3):
        await sink.write([product(f"T{number}")])

    with pytest.raises(SinkUnreachable, match="is full: 3 parcels wait for a writer"):
        await sink.write([product("T3")])

    await drain(_url(sink), f"sqlite:{tmp_path}/rows.db")
    await sink.write([product("T3")])
    await drain(_url(sink), f"sqlite:{tmp_path}/rows.db")
    await sink.close()
    assert {key for _, _, key in stored(tmp_path / "rows.db")} == {"T0", "T1", "T2", "T3"}


async def test_a_full_server_holds_fetchers_back_and_lets_writers_go_on(tmp_path: Path) -> None:
    with redis() as full:
        sink = OutboxSink(f"{full.url}?outbox=results")
        await sink.write([product("T1", text="x" * 1_000)])
        full.command("CONFIG", "SET", "maxmemory", "1")

        with pytest.raises(SinkUnreachable, match="memory"):
            await sink.write([product("T2")])
        await drain(_url(sink), f"sqlite:{tmp_path}/rows.db")
        await sink.close()
    assert {key for _, _, key in stored(tmp_path / "rows.db")} == {"T1"}


async def test_what_a_dead_writer_held_is_taken_by_another(
    sink: OutboxSink, outbox: RedisOutbox, tmp_path: Path
) -> None:
    await sink.write([product("T1")], lines(1))
    [held] = await outbox.take()
    assert await outbox.take() == []
    assert (await outbox.waiting("shop-1")).parcels == 1

    await drain(_url(sink, SOON), f"sqlite:{tmp_path}/rows.db")

    assert len(stored(tmp_path / "rows.db")) == 1
    # The dead one was only slow: what it says now changes nothing.
    await outbox.done([held])
    assert (await outbox.waiting()).parcels == 0


async def test_a_writer_that_is_heard_of_keeps_what_it_has(sink: OutboxSink, outbox: RedisOutbox) -> None:
    await sink.write([product("T1")])
    slow = RedisOutbox(outbox.address._replace(lease=30.0))
    taken = await outbox.take()
    for _ in range(5):
        await slow.keep(taken)
        assert await slow.take() == []

    await slow.give_back(taken)
    assert [one.id for one in await slow.take()] == [one.id for one in taken]
    await slow.close()


async def test_the_parcels_of_the_dead_are_found_behind_many_that_are_held(
    sink: OutboxSink, outbox: RedisOutbox
) -> None:
    for number in range(40):
        await sink.write([product(f"T{number}")])
    well = RedisOutbox(outbox.address._replace(lease=30.0))
    held = await well.take()
    lost = await well.take()
    assert (len(held), len(lost)) == (32, 8)
    await well.give_back(lost)

    assert [one.id for one in await well.take()] == [one.id for one in lost]
    await well.close()


async def test_several_writers_share_the_work_and_every_row_is_there_once(sink: OutboxSink, tmp_path: Path) -> None:
    for number in range(200):
        await sink.write([product(f"T{number}")], [line(number, job="shop-1")])

    said = await asyncio.gather(*(drain(_url(sink), f"sqlite:{tmp_path}/rows.db") for _ in range(4)))

    assert sum(news.records for writer in said for news in writer) == 200
    assert len(stored(tmp_path / "rows.db")) == 200


@pytest.mark.parametrize(("blob", "why"), [(b"\x07newer", "version 7"), (b"\x01\xc1broken", "damaged"), (b"", "empty")])
async def test_what_cannot_be_read_is_parked_and_the_rest_is_written(
    sink: OutboxSink, outbox: RedisOutbox, tmp_path: Path, blob: bytes, why: str
) -> None:
    await outbox.put("shop-1", [Packed(blob, 1)])
    await sink.write([product("T1")])

    said = await drain(_url(sink), f"sqlite:{tmp_path}/rows.db")

    assert any(news.what == "parked" and why in news.why for news in said)
    assert len(stored(tmp_path / "rows.db")) == 1
    [kept] = await outbox.parked()
    assert (kept.job, kept.bytes, why in kept.why) == ("shop-1", len(blob), True)
    assert await outbox.waiting() == (0, 0, 1)

    assert await outbox.again() == 1
    assert [why in one.damage for one in await outbox.take()] == [True]
    assert await outbox.parked() == []


async def test_a_record_that_the_database_refuses_is_parked_alone(
    sink: OutboxSink, outbox: RedisOutbox, anywhere: str
) -> None:
    await sink.write([product("T0")])
    await drain(_url(sink), anywhere)
    await ask(anywhere, "ALTER TABLE {s}.records ADD CONSTRAINT small CHECK (key <> 'T2')")
    await sink.write([product("T1"), product("T2"), product("T3")], lines(3))

    await drain(_url(sink), anywhere)

    assert [row[0] for row in await ask(anywhere, "SELECT key FROM {s}.records ORDER BY key")] == ["T0", "T1", "T3"]
    [kept] = await outbox.parked()
    assert (kept.records, "small" in kept.why) == (1, True)


async def test_a_parcel_that_ends_its_writers_is_parked_in_the_end(
    sink: OutboxSink, outbox: RedisOutbox, tmp_path: Path
) -> None:
    await sink.write([product("T1")])
    for _ in range(MOST_TIMES):
        [held] = await outbox.take()
        await outbox.give_back([held])

    said = await drain(_url(sink, SOON), f"sqlite:{tmp_path}/rows.db")

    assert [news.why for news in said if news.what == "parked"] == ["21 writers had it, and none of them finished it"]


async def test_what_waits_is_told_by_job_for_all_outboxes_of_a_server() -> None:
    sink, other = OutboxSink(address(), job="counted-1"), OutboxSink(address(), job="counted-2")
    await sink.write([product("T1")])
    await sink.write([product("T2")])
    await other.write([product("T3")])

    found = await unwritten(server(DEBIAN).url)
    assert (found["counted-1"], found["counted-2"]) == (2, 1)
    assert await other._outbox.waiting() == (1, 1, 0)
    await sink.close()
    await other.close()


async def test_a_record_that_is_no_json_is_refused_with_its_place(sink: OutboxSink, outbox: RedisOutbox) -> None:
    with pytest.raises(SinkRejects) as refused:
        await sink.write([product("T1"), product("T2", what=object())])
    assert list(refused.value.rejected) == [1]
    assert (await outbox.waiting()).parcels == 0


def test_a_parcel_of_fields_that_are_new_is_read_without_them() -> None:
    [packed] = pack("shop-1", [], lines(1))
    newer = packed.blob.replace(b"\xa8moved_to", b"\xa8new_word")
    assert newer != packed.blob
    assert unpack(newer).visits[0].token == 1


def test_nothing_to_pack_is_no_parcel() -> None:
    assert pack("shop-1", rows_of([]), ()) == []


def test_what_is_taken_is_opened_as_it_was_packed() -> None:
    records = [product("T1"), product("T2")]
    [packed] = pack("shop-1", rows_of(records), lines(2))
    parcel = unpack(packed.blob)
    assert (parcel.job, parcel.records, parcel.visits) == ("shop-1", records, lines(2))


def _url(sink: OutboxSink, lease: float = 30.0) -> str:
    place = sink._outbox.address
    return f"{place.server}?outbox={place.name}&most={place.most}&lease={lease}s"


@pytest.mark.parametrize("wrong", ["", "outbox=a/b", "outbox=r&most=0", "outbox=r&most=few", "outbox=r&lease=soon"])
def test_a_url_that_names_no_outbox_says_how_to_write_it(wrong: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse(f"redis://:secret@localhost:1/0?{wrong}")
    assert "outbox=results" in refused.value.hint
    assert "secret" not in str(refused.value)


def test_other_words_of_the_url_are_the_servers() -> None:
    found = parse("rediss://queue/0?outbox=r&ca=a.pem&lease=90s")
    assert (found.server, found.name, found.lease) == ("rediss://queue/0?ca=a.pem", "r", 90.0)


@pytest.mark.parametrize("name", ["parcels", "jobs", "books", "parked", "outboxes", "parcels.parcels"])
async def test_an_outbox_may_be_named_like_anything_that_we_keep(name: str) -> None:
    outbox = RedisOutbox(f"{server(DEBIAN).url}?outbox={name}")
    try:
        await outbox.open()
        await outbox.put("shop-1", list(pack("shop-1", rows_of([product("1")]), ())))
        [taken] = await outbox.take()
        await outbox.park([taken], "odd")
        assert [each.why for each in await outbox.parked()] == ["odd"]
        assert (await outbox.waiting()).parked == 1
        assert await outbox.again() == 1
        assert (await outbox.waiting()).parcels == (await outbox.waiting("shop-1")).parcels == 1
        await outbox.done(await outbox.take())
        assert (await outbox.waiting()).parcels == 0
    finally:
        await outbox.close()
