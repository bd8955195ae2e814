"""What the PostgreSQL sink promises beyond the port: history, freshness, bad rows alone, writers that never lock up."""

import asyncio
import json

import asyncpg
import pytest
from tests.contract.postgres_servers import ask, fresh

from trotline.adapters.postgres.export_reader import count_records, read_records, snapshot, writing_jobs
from trotline.adapters.postgres.sink import PostgresSink
from trotline.commands.export import Wanted, check_spider, export, kinds
from trotline.errors import SettingsError, SinkRejects, SinkUnreachable
from trotline.testing.ledger_contract import line
from trotline.testing.postgres_server import DEBIAN
from trotline.testing.sink_contract import product

NOW = 1_790_000_000.0


@pytest.fixture
async def sink(anywhere):
    sink = PostgresSink(anywhere, job="shop-1")
    await sink.open()
    yield sink
    await sink.close()


async def held(url, columns="key, data"):
    return await ask(url, f"SELECT {columns} FROM {{s}}.records ORDER BY key")  # noqa: S608


async def test_the_version_before_a_change_is_kept_and_only_then(anywhere, sink):
    for seen_at, price in [(1.0, 5), (2.0, 5), (3.0, 6), (3.0, 6), (1.5, 7), (4.0, 8)]:
        await sink.write([product(seen_at=seen_at, price=price)])

    history = await ask(
        anywhere,
        "SELECT extract(epoch FROM since)::int, extract(epoch FROM seen_at)::int, extract(epoch FROM replaced_at)::int,"
        " data->'price' FROM {s}.history ORDER BY since",
    )
    assert history == [(1, 2, 3, "5"), (3, 3, 4, "6")]
    times = (
        "extract(epoch FROM first_seen_at)::int, extract(epoch FROM changed_at)::int, extract(epoch FROM seen_at)::int"
    )
    assert await held(anywhere, times) == [(1, 4, 4)]


async def test_repeating_a_batch_adds_no_history(anywhere, sink):
    for _ in range(3):
        await sink.write([product(title="Tea"), product(title="Green tea")])

    assert await ask(anywhere, "SELECT * FROM {s}.history") == []


async def test_fields_in_another_order_are_no_change(anywhere, sink):
    await sink.write([product(seen_at=1.0, a=1, b=2)])
    await sink.write([product(seen_at=2.0, b=2, a=1)])

    assert await ask(anywhere, "SELECT * FROM {s}.history") == []


async def test_a_row_says_where_it_comes_from(anywhere, sink):
    await sink.write([product("T1")])

    assert await held(anywhere, "url, host, job") == [("https://shop.example/p/T1", "shop.example", "shop-1")]


async def test_within_the_freshness_an_unchanged_row_is_left_as_it_is(postgres_servers):
    url = fresh(postgres_servers.url(DEBIAN), freshness="1h")
    sink = PostgresSink(url)
    seen = "extract(epoch FROM seen_at)::float8, data->'price', ctid::text"
    await sink.write([product(seen_at=NOW, price=1)])
    [first] = await held(url, seen)

    await sink.write([product(seen_at=NOW + 60, price=1)])
    assert await held(url, seen) == [first]

    await sink.write([product(seen_at=NOW + 120, price=2)])
    [changed] = await held(url, seen)
    assert changed[:2] == (NOW + 120, "2")

    await sink.write([product(seen_at=NOW + 120 + 3600, price=2)])
    assert [(NOW + 3720, "2")] == [row[:2] for row in await held(url, seen)]
    await sink.close()


async def test_odd_text_is_replaced_and_its_neighbours_are_not(anywhere, sink):
    odd = {"title": "a\0b", "half": "\ud83d", "fine": "\\u0000 é", "n\0": {"x": ["\0"]}}
    await sink.write([product("T\0", **odd), product("T\ufffd"), product("T2", text="\\")])

    rows = {key: json.loads(data) for key, data in await held(anywhere)}
    assert rows.keys() == {"T2", "T\ufffd"}, "two keys that become one are one row, not an error"


async def test_odd_text_keeps_what_can_be_kept(anywhere, sink):
    await sink.write([product("T1", title="a\0b", half="\ud83d", fine="\\u0000 é", **{"n\0": {"x": ["\0"]}})])

    [(_, data)] = await held(anywhere)
    assert json.loads(data) == {
        "sku": "T1", "title": "a\ufffdb", "half": "\ufffd", "fine": "\\u0000 é", "n\ufffd": {"x": ["\ufffd"]},
    }  # fmt: skip


def random_text(length):
    """Text that no compression makes short enough for an index."""
    import random

    return "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=length))


async def test_bad_rows_are_named_with_their_places_and_nothing_is_stored(anywhere, sink):
    batch = [product(f"T{number}") for number in range(40)]
    batch[7] = product(random_text(9000))
    batch[31] = product("T31", what=object())
    with pytest.raises(SinkRejects) as first:
        await sink.write(batch)
    assert first.value.rejected.keys() == {31}

    batch.pop(31)
    with pytest.raises(SinkRejects, match="index row") as second:
        await sink.write(batch)
    assert second.value.rejected.keys() == {7}
    assert await held(anywhere) == []

    batch.pop(7)
    await sink.write(batch)
    assert len(await held(anywhere)) == 38


async def test_a_batch_too_large_for_one_statement_is_stored_whole_or_not_at_all(anywhere, sink, monkeypatch):
    monkeypatch.setattr("trotline.adapters.postgres.row_columns._MOST_TEXT", 50_000)
    await ask(anywhere, "ALTER TABLE {s}.records ADD CHECK (key <> 'T19')")
    batch = [product(f"T{number:02}", text="é" * 20_000) for number in range(20)]
    with pytest.raises(SinkRejects) as refused:
        await sink.write(batch)
    assert refused.value.rejected.keys() == {19}
    assert await held(anywhere) == []

    await sink.write(batch[:19])
    assert len(await held(anywhere, "key")) == 19


async def test_rows_that_break_a_rule_of_the_owner_are_found_all_at_once(anywhere, sink):
    await ask(anywhere, "ALTER TABLE {s}.records ADD CHECK (data->>'price' IS NULL OR (data->>'price')::numeric > 0)")
    batch = [product(f"T{number:03}", price=-1 if number in (0, 13, 99) else 1) for number in range(100)]

    with pytest.raises(SinkRejects, match="3 of the records") as refused:
        await sink.write(batch)

    assert refused.value.rejected.keys() == {0, 13, 99}
    assert "violates check constraint" in refused.value.rejected[13]


async def test_a_trigger_that_refuses_one_row_costs_that_row_alone(anywhere, sink):
    await ask(
        anywhere,
        "CREATE FUNCTION {s}.picky() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN IF new.key = 'T3' THEN RAISE 'not this one'; END IF; RETURN new; END $$;"
        " CREATE TRIGGER picky BEFORE INSERT ON {s}.records FOR EACH ROW EXECUTE FUNCTION {s}.picky()",
    )
    with pytest.raises(SinkRejects, match="not this one") as refused:
        await sink.write([product(f"T{number}") for number in range(6)])
    assert refused.value.rejected.keys() == {3}


async def test_of_two_rows_that_cannot_live_together_the_second_is_refused(anywhere, sink, monkeypatch):
    monkeypatch.setattr("trotline.adapters.postgres.row_columns._MOST_TEXT", 300)
    await ask(anywhere, "CREATE UNIQUE INDEX ON {s}.records ((data->>'code'))")
    batch = [product(f"T{number:02}", code=5 if number in (2, 29) else 100 + number) for number in range(30)]

    with pytest.raises(SinkRejects, match="unique") as refused:
        await sink.write(batch)

    assert refused.value.rejected.keys() == {29}
    await sink.write(batch[:29])


async def test_a_rule_that_is_looked_at_when_the_transaction_ends_is_found_too(anywhere, sink):
    await ask(
        anywhere,
        "CREATE FUNCTION {s}.late() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN IF new.key = 'T3' THEN RAISE 'too late'; END IF; RETURN NULL; END $$;"
        " CREATE CONSTRAINT TRIGGER late AFTER INSERT ON {s}.records DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION {s}.late()",
    )
    with pytest.raises(SinkRejects, match="too late") as refused:
        await sink.write([product(f"T{number}") for number in range(6)])
    assert refused.value.rejected.keys() == {3}
    assert await held(anywhere) == []


async def test_two_writers_in_opposite_orders_never_wait_for_each_other(anywhere, sink):
    other = PostgresSink(anywhere)
    await sink.write([product(f"T{key:03}") for key in range(100)])
    # So slowly that both are in the middle at once.
    await ask(
        anywhere,
        "CREATE FUNCTION {s}.pause() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_sleep(0.002); RETURN new; END $$;"
        " CREATE TRIGGER pause BEFORE UPDATE ON {s}.records FOR EACH ROW EXECUTE FUNCTION {s}.pause()",
    )

    async def write(sink, step):
        for turn in range(2):
            await sink.write([product(f"T{key:03}", seen_at=NOW + turn, by=step) for key in range(100)[::step]])

    await asyncio.gather(write(sink, 1), write(other, -1))

    assert len(await held(anywhere)) == 100
    await other.close()


async def test_a_slow_trigger_holds_up_its_writer_and_nobody_else(anywhere, sink):
    await ask(
        anywhere,
        "CREATE FUNCTION {s}.slow() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_sleep(0.4); RETURN NULL; END $$;"
        " CREATE TRIGGER slow AFTER INSERT ON {s}.records FOR EACH STATEMENT EXECUTE FUNCTION {s}.slow()",
    )
    writing = asyncio.create_task(sink.write([product()]))
    turns = 0
    while not writing.done():
        await asyncio.sleep(0.01)
        turns += 1
    await writing
    assert turns > 5, "the event loop stood still"


async def test_a_statement_that_takes_too_long_is_ended_and_the_batch_can_be_tried_again(postgres_servers):
    url = fresh(postgres_servers.url(DEBIAN), timeout="1s")
    sink = PostgresSink(url)
    await sink.open()
    await ask(
        url,
        "CREATE FUNCTION {s}.slow() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_sleep(30); RETURN NULL; END $$;"
        " CREATE TRIGGER slow AFTER INSERT ON {s}.records FOR EACH STATEMENT EXECUTE FUNCTION {s}.slow()",
    )
    with pytest.raises(SinkUnreachable, match="took too long"):
        await sink.write([product()])
    await ask(url, "DROP TRIGGER slow ON {s}.records")
    await sink.write([product()])

    assert len(await held(url)) == 1
    await sink.close()


async def test_a_write_that_is_cancelled_stores_nothing_and_the_sink_goes_on(anywhere, sink):
    await sink.write([product("T0")])
    blocker = await asyncpg.connect(sink.address.dsn, password=sink.address.password.reveal())
    await blocker.execute(f"BEGIN; LOCK TABLE {sink.address.quoted}.records IN ACCESS EXCLUSIVE MODE")
    writing = asyncio.create_task(sink.write([product("T1")]))
    await asyncio.sleep(0.2)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await blocker.close()

    await sink.write([product("T2")])
    assert [key for key, _ in await held(anywhere)] == ["T0", "T2"]


async def test_what_is_stored_is_durable_even_where_the_server_would_not_care(anywhere, sink, postgres_servers):
    await ask(anywhere, "ALTER ROLE trotline SET synchronous_commit = off")
    try:
        careful = PostgresSink(anywhere)
        await careful.open()
        async with careful._connections.transaction() as connection:
            assert await connection.fetchval("SHOW synchronous_commit") == "on"
            assert await connection.fetchval("SHOW statement_timeout") == "30s"
        await careful.close()
    finally:
        await ask(anywhere, "ALTER ROLE trotline RESET synchronous_commit")


# --- reading --------------------------------------------------------------------------------------------------------


async def test_rows_are_read_while_a_crawl_writes_with_their_fields_in_the_spiders_order(everywhere):
    sink = PostgresSink(everywhere)
    await sink.write([product("T1", seen_at=1.0, zebra=1, apple=2, b=3), product("R1", kind="review", seen_at=2.0)])
    await sink.write([product("T2", seen_at=3.0, zebra=1, site="store")])
    with snapshot(everywhere) as rows:
        before = list(rows)
        await sink.write([product("T3", seen_at=4.0)])
        assert before == list(rows)
    await sink.close()

    assert [(row.key, row.seen_at) for row in before] == [("T1", 1.0), ("R1", 2.0), ("T2", 3.0)]
    assert list(before[0].fields()) == ["sku", "zebra", "apple", "b"]
    assert [row.key for row in read_records(everywhere, kind="review")] == ["R1"]
    assert [row.key for row in read_records(everywhere, kind="product", site="shop")] == ["T1", "T3"]
    assert count_records(everywhere) == {"product": 3, "review": 1}


async def test_export_writes_a_table_out_of_the_database(anywhere, sink, tmp_path):
    await sink.write([product(f"T{n:04}", title=f"Tea {n}", n=n) for n in range(2500)])

    assert export(anywhere, Wanted(form="csv"), tmp_path / "rows.csv") == 2500
    first, *_, last = (tmp_path / "rows.csv").read_text().splitlines()
    assert (first, last) == ("sku,title,n", "T2499,Tea 2499,2499")
    assert kinds(anywhere) == {"product": 2500}


async def test_export_knows_the_spiders_that_have_written(anywhere, sink):
    """By their rows, or by their visits only: an `App` stores rows without the name of a job."""
    await sink.write([product()])
    check_spider(anywhere, "shop")
    with pytest.raises(SettingsError, match="'news' has stored nothing"):
        check_spider(anywhere, "news")

    await sink.log([line(1, job="news-1"), line(2, job="news-1"), line(3, job="news-2")])
    assert writing_jobs(anywhere) == {"shop-1", "news-1", "news-2"}
    with pytest.raises(SettingsError, match=r"several spiders .* \(news, shop\)"):
        check_spider(anywhere, "shop")


def test_reading_what_is_not_there_says_what_to_do(anywhere):
    with pytest.raises(SinkUnreachable, match="there are no rows"):
        count_records(anywhere)
    with pytest.raises(SinkUnreachable, match="connection refused"):
        count_records("postgresql://127.0.0.1:9/nothing")
    assert kinds("postgresql://127.0.0.1:9/nothing") == {}
