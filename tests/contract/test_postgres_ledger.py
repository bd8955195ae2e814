"""The ledger in PostgreSQL: one line per visit, in partitions that are there in time and go when their time is over."""

import logging
from datetime import UTC, datetime

import pytest
from tests.contract.postgres_servers import ask, fresh

from trotline.adapters.postgres.sink import PostgresSink
from trotline.errors import SinkRejects, SinkUnreachable
from trotline.model.visit_row import VisitRow
from trotline.testing.postgres_server import DEBIAN
from trotline.testing.sink_contract import product

DAY = 86_400.0


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NOON = at("2026-11-15T12:00")


def visit(token=1, *, leased_at=NOON, job="shop-1", fingerprint=7, url="https://shop.example/p/1", **more):
    return VisitRow(
        job=job, token=token, site="shop", url=url, fingerprint=fingerprint, route="product", lane="shop.example",
        worker="w1", leased_at=leased_at, **more,
    )  # fmt: skip


@pytest.fixture
async def sink(anywhere):
    sink = PostgresSink(anywhere)
    yield sink
    await sink.close()


async def partitions(url):
    names = await ask(
        url,
        "SELECT child.relname::text FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid"
        " WHERE inhparent = '{s}.visits'::regclass ORDER BY 1",
    )
    return [name for (name,) in names]


async def counted(url):
    [(number,)] = await ask(url, "SELECT count(*) FROM {s}.visits")
    return number


async def test_v1_the_same_visit_twice_is_one_line(everywhere):
    sink = PostgresSink(everywhere)
    told = visit(
        attempt=2, depth=3, parent="https://shop.example/", found_at=NOON - 5, proxy="p1", status=200, took=0.25,
        size=2**40, verdict="ok", outcome="done", why="é", records=3, children=12, moved_to="https://shop.example/q",
        fingerprint=-1,
    )  # fmt: skip
    for _ in range(3):
        await sink.write([product()], [told, told])

    assert await counted(everywhere) == 1
    assert await sink.story([-1]) == [told]
    await sink.close()


async def test_v3_the_story_is_told_in_order_of_time_by_identity_or_by_url(sink):
    await sink.log([visit(token, leased_at=NOON + token * DAY, fingerprint=token % 2) for token in (5, 3, 4, 1, 2)])
    await sink.log([visit(9, leased_at=NOON, fingerprint=99, url="https://shop.example/moved")])

    assert [line.token for line in await sink.story([1])] == [1, 3, 5]
    assert [line.token for line in await sink.story([1, 0])] == [1, 2, 3, 4, 5]
    assert [line.token for line in await sink.story([], "https://shop.example/moved")] == [9]
    assert [line.token for line in await sink.story([1], "https://shop.example/moved")] == [9, 1, 3, 5]
    assert [line.token for line in await sink.story([1, 0], limit=2)] == [4, 5]
    assert await sink.story([]) == []


async def test_looking_makes_no_tables(anywhere, sink):
    assert await sink.story([1]) == []
    assert await sink.rows(["https://shop.example/"]) == []
    assert (await sink.status()).version == 0


async def test_records_and_visits_are_stored_together_or_not_at_all(anywhere, sink):
    await sink.open()
    await ask(anywhere, "ALTER TABLE {s}.records ADD CHECK (key <> 'bad')")
    with pytest.raises(SinkRejects):
        await sink.write([product("T1"), product("bad")], [visit(1)])
    assert await counted(anywhere) == 0

    await sink.write([product("T1")], [visit(1)])
    assert await counted(anywhere) == 1
    assert await ask(anywhere, "SELECT job FROM {s}.records") == [("shop-1",)]


async def test_odd_lines_are_kept_as_well_as_they_can_be(anywhere, sink):
    await sink.log(
        [visit(1, why="a\0b \ud800", attempt=2**40, url="https://x/" + "y" * 9000), visit(2, leased_at=float("nan"))]
    )

    [told] = await sink.story([], "https://x/" + "y" * 9000)
    assert (told.why, told.attempt) == ("a\ufffdb \ufffd", 2**31 - 1)
    assert await counted(anywhere) == 2


async def test_a_line_that_the_owner_refuses_costs_no_record(anywhere, sink, caplog):
    await sink.open()
    await ask(anywhere, "ALTER TABLE {s}.visits ADD CHECK (token <> 13)")
    with caplog.at_level(logging.WARNING):
        await sink.write([product("T1")], [visit(token) for token in range(10, 20)])

    assert await counted(anywhere) == 9
    assert len(await ask(anywhere, "SELECT key FROM {s}.records")) == 1
    assert "token=13" in caplog.text


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("day", ["visits_20261130_20261201", "visits_20261201_20261202"]),
        ("week", ["visits_20261130_20261207"]),
        ("month", ["visits_20261101_20261201", "visits_20261201_20270101"]),
    ],
)
async def test_visits_around_midnight_find_their_partitions(postgres_servers, unit, expected):
    url = fresh(postgres_servers.url(DEBIAN), visits=unit)
    sink = PostgresSink(url)
    midnight = at("2026-12-01T00:00")
    await sink.log([visit(1, leased_at=midnight - 0.000001), visit(2, leased_at=midnight)])

    assert set(expected) <= set(await partitions(url))
    for token, name in zip((1, 2), (expected * 2)[:: len(expected)] if len(expected) == 1 else expected, strict=True):
        assert (token,) in await ask(url, f"SELECT token FROM {{s}}.{name}")  # noqa: S608
    await sink.close()


async def test_partitions_are_made_ahead_and_retired_when_their_time_is_over(postgres_servers):
    url = fresh(postgres_servers.url(DEBIAN), visits="day", keep="2d")
    sink = PostgresSink(url)
    now = at("2030-05-10T08:00")
    await sink.log([visit(day, leased_at=now - day * DAY) for day in range(6)])

    did = await sink.renew_partitions(now)

    made = [name for name in did.made if name.startswith("visits")]
    assert made == ["visits_20300511_20300512", "visits_20300512_20300513"]
    assert {f"visits_2030050{day}_2030050{day + 1}" for day in (5, 6, 7)} <= set(did.retired)
    assert [line.token for line in await sink.story([7])] == [2, 1, 0]
    assert (await sink.renew_partitions(now)).retired == ()

    # Whoever is late after all is still written down, and goes with the next round.
    await sink.log([visit(5, leased_at=now - 5 * DAY)])
    assert await counted(url) == 4
    assert (await sink.renew_partitions(now)).retired == ("visits_20300505_20300506",)
    await sink.close()


async def test_a_retired_partition_can_be_kept_as_a_table_of_its_own(postgres_servers):
    url = fresh(postgres_servers.url(DEBIAN), visits="month", keep="30d", retire="detach")
    sink = PostgresSink(url)
    await sink.log([visit(1, leased_at=at("2029-01-15T00:00")), visit(2, leased_at=at("2030-01-15T00:00"))])

    did = await sink.renew_partitions(at("2030-01-20T00:00"))

    assert "visits_20290101_20290201" in did.retired
    [(table,)] = await ask(
        url, "SELECT relname::text FROM pg_class WHERE relname LIKE 'retired\\_visits\\_20290101%' AND relkind = 'r'"
        " AND relnamespace = (SELECT oid FROM pg_namespace WHERE quote_ident(nspname) = trim(both '\"' from '{s}'))",
    )  # fmt: skip
    assert await ask(url, f"SELECT token FROM {{s}}.{table}") == [(1,)]  # noqa: S608
    assert await counted(url) == 1
    await sink.close()


async def test_a_writer_does_not_fail_when_somebody_retires_its_partition(postgres_servers):
    base = fresh(postgres_servers.url(DEBIAN), visits="day")
    sink, keeper = PostgresSink(base), PostgresSink(base + "&keep=1d")
    now = at("2030-05-10T08:00")
    await sink.log([visit(1, leased_at=now - 5 * DAY)])
    assert (await keeper.renew_partitions(now)).retired

    await sink.write([product("T1")], [visit(2, leased_at=now - 5 * DAY)])

    assert [line.token for line in await sink.story([7])] == [2]
    await sink.close()
    await keeper.close()


async def test_the_unit_may_be_changed_while_partitions_of_the_old_one_are_there(postgres_servers):
    url = fresh(postgres_servers.url(DEBIAN))
    days = [at(f"2031-0{month}-{day:02}T12:00") for month in (1, 2) for day in (1, 15, 28)]
    for token, (unit, moment) in enumerate(zip(["day", "month", "week", "week", "day", "month"], days, strict=True)):
        sink = PostgresSink(f"{url}&visits={unit}")
        await sink.log([visit(token, leased_at=moment)])
        await sink.close()

    assert await counted(url) == 6


async def test_a_partition_in_use_is_retired_another_time(postgres_servers):
    import asyncpg

    url = fresh(postgres_servers.url(DEBIAN), visits="day", keep="1d")
    sink = PostgresSink(url)
    now = at("2030-05-10T08:00")
    await sink.log([visit(1, leased_at=now - 5 * DAY)])
    reader = await asyncpg.connect(sink.address.dsn, password=sink.address.password.reveal())
    await reader.execute(f"BEGIN; SELECT count(*) FROM {sink.address.quoted}.visits")  # noqa: S608

    assert "visits_20300505_20300506" in (await sink.renew_partitions(now)).busy
    await sink.log([visit(2, leased_at=now)])

    await reader.close()
    assert "visits_20300505_20300506" in (await sink.renew_partitions(now)).retired
    await sink.close()


async def test_a_writer_without_the_right_to_make_tables_uses_what_is_there(postgres_servers):
    url = fresh(postgres_servers.url(DEBIAN))
    owner = PostgresSink(url)
    await owner.log([visit(1)])
    role = "writer_" + owner.address.schema
    await ask(
        url,
        f"CREATE ROLE {role} LOGIN PASSWORD 'only-writes'; GRANT USAGE ON SCHEMA {{s}} TO {role};"
        f" GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {{s}} TO {role}",
    )
    writer = PostgresSink(url.replace("trotline:kept-by-the-tests", f"{role}:only-writes"))
    await writer.write([product("T1")], [visit(2)])
    with pytest.raises(SinkUnreachable, match=r"must be owner|permission denied"):
        await writer.log([visit(3, leased_at=at("2050-01-01T00:00"))])

    assert await counted(url) == 2
    await owner.close()
    await writer.close()
