"""A year of visits and history: what is over is dropped, detached or written to Parquet, and the rest is as it was."""

from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests.contract.postgres_servers import ask, fresh

from trotline.adapters.postgres.sink import PostgresSink
from trotline.cli import doctor_stores
from trotline.cli.db import command
from trotline.commands import db
from trotline.errors import SettingsError
from trotline.testing.postgres_server import DEBIAN
from trotline.testing.sink_contract import product

DAY = 86400.0
NOW = datetime(2030, 12, 31, 12, tzinfo=UTC).timestamp()
YEAR = 365

# Times of the day that no rounding touches.
_VISITS = """
    INSERT INTO {s}.visits
    SELECT 'j-1', n, at, 's', 'https://s.example/' || n, n, 'page', 's.example', 'w', 1, 0, '', at, '', 200, 0.25, n,
        'ok', 'done', '', 1, 0, ''
    FROM (SELECT n, to_timestamp($1 - n * 86400.0) AS at FROM generate_series(0, $2::int) AS n) AS days
"""
_HISTORY = """
    INSERT INTO {s}.history
    SELECT 's', 'p', 'k' || n % 7, jsonb_build_object('price', n), 'https://s.example/', at, at, at, 'j-1'
    FROM (SELECT n, to_timestamp($1 - n * 86400.0) AS at FROM generate_series(0, $2::int) AS n) AS days
"""
_REST = (
    "SELECT {column}::text, count(*), sum({sum})::text FROM {{s}}.{table} WHERE {column} >= to_timestamp($1) GROUP BY 1"
)
QUESTIONS = [
    _REST.format(column="leased_at", sum="size", table="visits"),
    _REST.format(column="replaced_at", sum="(data->>'price')::int", table="history"),
]


async def a_year(url):
    """Partitions as the sink makes them, day by day, and a line in each of them."""
    sink = PostgresSink(url)
    await sink.open()
    await sink._partitions.cover(NOW - day * DAY for day in range(YEAR + 1))
    await ask(url, _VISITS + " RETURNING 1", NOW, YEAR)
    await ask(url, _HISTORY + " RETURNING 1", NOW, YEAR)
    return sink


async def rest(url, since):
    return [sorted(await ask(url, question, since)) for question in QUESTIONS]


async def tables(url, like):
    found = await ask(
        url,
        "SELECT relname::text FROM pg_class WHERE relnamespace = '{s}'::regnamespace AND relkind = 'r'"
        " AND relname LIKE $1 ORDER BY 1",
        like,
    )
    return [name for (name,) in found]


@pytest.mark.parametrize("retire", ["drop", "detach", "parquet"])
async def test_of_a_year_exactly_the_expired_partitions_go(postgres_servers, tmp_path, retire):
    more = {"parquet": f"file:{tmp_path}"} if retire == "parquet" else {}
    url = fresh(
        postgres_servers.url(DEBIAN),
        visits="month",
        keep="90d",
        history="week",
        keep_history="180d",
        retire=retire,
        **more,
    )
    sink = await a_year(url)
    # The history's rows wait in history_other: the first maintenance makes their partitions, and retires some of them.
    before = await rest(url, NOW - 90 * DAY)
    planned = await sink.retention(NOW)
    did = await sink.renew_partitions(NOW)

    visits = [name for name in did.retired if name.startswith("visits")]
    history = [name for name in did.retired if name.startswith("history")]
    assert [f"visits_2030{month:02}01_2030{month + 1:02}01" for month in range(1, 10)] == [
        name for name in visits if name.startswith("visits_2030")
    ]
    # Whole weeks that ended 180 days ago or earlier: the last of them ended on Monday, 1 July.
    assert history[-1] == "history_20300624_20300701"
    ending = {one.name for one in planned.partitions if one.does == retire}
    assert {name for name in ending if name.startswith("visits")} == set(visits)
    assert ending <= set(did.retired)
    assert [366] == [one.rows for one in planned.partitions if one.does == "divide"]
    assert before == await rest(url, NOW - 90 * DAY)
    assert (await sink.renew_partitions(NOW)).retired == ()
    kept = await ask(url, "SELECT count(*), min(leased_at) >= '2030-10-01' FROM {s}.visits")
    assert [(92, True)] == kept
    retired = await tables(url, "retired%")
    assert (len(retired) == len(did.retired)) if retire == "detach" else not retired
    if retire == "parquet":
        _all_in_files(tmp_path, did.retired, url)
    await sink.close()


@pytest.mark.parametrize(
    ("unit", "retire"),
    [("day", "parquet"), ("day", "detach"), ("week", "drop"), ("week", "parquet"), ("month", "detach")],
)
async def test_days_weeks_and_months_expire_when_their_last_day_does(postgres_servers, tmp_path, unit, retire):
    more = {"parquet": f"file:{tmp_path}"} if retire == "parquet" else {}
    url = fresh(
        postgres_servers.url(DEBIAN), visits=unit, keep="90d", history=unit, keep_history="90d", retire=retire, **more
    )
    sink = await a_year(url)
    # So that the history has its partitions, too. Only those that the sink made for the real today are old yet.
    empty = await sink.renew_partitions(NOW - YEAR * DAY)
    made = {*await tables(url, "visits\\_2%"), *await tables(url, "history\\_2%")}
    before = await rest(url, NOW - 90 * DAY)
    everything = await rest(url, 0)

    did = await sink.renew_partitions(NOW)

    oldest = datetime.fromtimestamp(NOW - 90 * DAY, UTC).strftime("%Y%m%d")
    expired = {name for name in made if name.rpartition("_")[2] <= oldest}
    assert expired == {*did.retired}
    assert len(made) > len(expired) > {"day": 500, "week": 70, "month": 15}[unit]
    assert before == await rest(url, NOW - 90 * DAY)
    left = await rest(url, 0)
    if retire == "detach":
        assert len(expired) + len(empty.retired) == len(await tables(url, "retired%"))
    if retire == "parquet":
        rows = [pq.read_table(path).num_rows for path in tmp_path.glob("*.parquet")]
        assert len(expired) + len(empty.retired) == len(rows)
        counted = [sum(count for _, count, _ in some) for some in (*everything, *left)]
        assert sum(rows) == counted[0] + counted[1] - counted[2] - counted[3]
    await sink.close()


def _all_in_files(folder, retired, url):
    found = sorted(folder.glob("*.parquet"))
    assert len(retired) == len(found)
    assert not list(folder.glob("*.new"))
    visits = [row for path in found if ".visits_" in path.name for row in pq.read_table(path).to_pylist()]
    history = [row for path in found if ".history_" in path.name for row in pq.read_table(path).to_pylist()]
    assert sorted(row["token"] for row in visits) == list(range(92, YEAR + 1))
    [one] = [row for row in visits if row["token"] == 100]
    assert one["leased_at"] == datetime.fromtimestamp(NOW - 100 * DAY, UTC)
    assert (one["url"], one["took"], one["size"]) == ("https://s.example/100", 0.25, 100)
    assert {row["data"] for row in history} >= {'{"price": 200}', '{"price": 365}'}


async def test_rows_that_came_while_a_file_was_written_are_not_lost(postgres_servers, tmp_path, monkeypatch):
    from trotline.adapters.postgres import retention

    url = fresh(postgres_servers.url(DEBIAN), visits="month", keep="90d", retire="parquet", parquet=f"file:{tmp_path}")
    sink = await a_year(url)
    written = retention._to_parquet

    async def late(connections, address, table, name):
        rows = await written(connections, address, table, name)
        if name == "visits_20300201_20300301":
            await ask(url, _VISITS.replace("'j-1'", "'late'") + " RETURNING 1", NOW - 330 * DAY, 1)
        return rows

    monkeypatch.setattr(retention, "_to_parquet", late)
    did = await sink.renew_partitions(NOW)
    monkeypatch.undo()

    first = did.busy[0]
    assert first == "visits_20300201_20300301"
    assert [(2,)] == await ask(url, "SELECT count(*) FROM {s}.visits WHERE job = 'late'")
    assert first in (await sink.renew_partitions(NOW)).retired
    files = [pq.read_table(path).to_pylist() for path in tmp_path.glob(f"*{first}*.parquet")]
    assert len(files) == 1, "the file of the same table is replaced"
    await sink.close()


async def test_a_new_partition_of_an_old_name_gets_a_file_of_its_own(postgres_servers, tmp_path):
    url = fresh(postgres_servers.url(DEBIAN), visits="month", keep="90d", retire="parquet", parquet=f"file:{tmp_path}")
    sink = await a_year(url)
    await sink.renew_partitions(NOW)
    await sink._partitions.cover([NOW - 200 * DAY])
    await ask(url, _VISITS + " RETURNING 1", NOW - 200 * DAY, 0)

    await sink.renew_partitions(NOW)

    names = sorted(path.name.partition(".")[2] for path in tmp_path.glob("*visits_20300601*"))
    assert ["visits_20300601_20300701.2.parquet", "visits_20300601_20300701.parquet"] == names
    await sink.close()


async def test_a_folder_that_cannot_be_written_loses_nothing(postgres_servers, tmp_path):
    from trotline.errors import SinkError

    (tmp_path / "file").write_text("")
    place = f"file:{tmp_path}/file/inside"
    url = fresh(postgres_servers.url(DEBIAN), visits="month", keep="90d", retire="parquet", parquet=place)
    sink = await a_year(url)
    with pytest.raises(SinkError, match="cannot make the folder"):
        await sink.renew_partitions(NOW)
    assert [(YEAR + 1,)] == await ask(url, "SELECT count(*) FROM {s}.visits")
    await sink.close()


async def test_older_versions_of_rows_go_to_the_partition_of_their_time(anywhere):
    sink = PostgresSink(anywhere)
    await sink.write([product("T1", seen_at=NOW - 40 * DAY, price=1), product("T2", seen_at=5.0, price=1)])
    await sink.write([product("T1", seen_at=NOW, price=2), product("T2", seen_at=9.0, price=2)])
    assert ["history_other"] == await tables(anywhere, "history_other")

    await sink.renew_partitions(NOW)

    assert [(0,)] == await ask(anywhere, "SELECT count(*) FROM {s}.history_other")
    assert [(1,)] == await ask(anywhere, "SELECT count(*) FROM {s}.history_20301201_20310101")
    assert [(1,)] == await ask(anywhere, "SELECT count(*) FROM {s}.history_19700101_19700201")
    await sink.close()


async def test_within_the_window_a_row_is_left_as_it_is_even_if_it_changed(postgres_servers):
    """ON CONFLICT ... DO UPDATE ... WHERE stored.seen_at < excluded.seen_at - INTERVAL '1 hour', and nothing else."""
    url = fresh(postgres_servers.url(DEBIAN), window="1h")
    sink = PostgresSink(url)
    seen = []
    for seen_at, price in ((1_000.0, 1), (4_600.0, 2), (4_600.000_001, 3), (5_000.0, 4), (500.0, 5)):
        await sink.write([product("T1", seen_at=seen_at, price=price)])
        [(stored, at)] = await ask(
            url, "SELECT (data->>'price')::int, extract(epoch FROM seen_at)::float8 FROM {s}.records"
        )
        seen.append((stored, at))
    # Exactly one hour later is not more than an hour; a microsecond later is.
    assert [(1, 1_000.0), (1, 1_000.0), *[(3, 4_600.000_001)] * 3] == seen
    await sink.close()


def test_db_retention_says_what_the_next_retention_would_do(postgres_servers, monkeypatch):
    import asyncio

    url = fresh(postgres_servers.url(DEBIAN), visits="month", keep="90d")

    async def make():
        await (await a_year(url)).close()

    asyncio.run(make())
    monkeypatch.setenv("DATABASE", url)
    monkeypatch.setattr("trotline.commands.db.time.time", lambda: NOW)

    def said(*arguments):
        result = CliRunner().invoke(command, [*arguments, "--sink", "env:DATABASE"], catch_exceptions=False)
        return result.output

    planned = said("retention")
    assert "drop    visits_20300101_20300201" in planned
    assert "keep    visits_20301001_20301101" in planned
    assert "the next retention retires 13 partitions" in planned
    assert '"does":"drop"' in said("retention", "--json")
    assert "retired    visits_20300101_20300201" in said("maintain")
    assert "the next retention retires nothing; the first to expire is visits_20301001_20301101" in said("retention")
    assert "history    " in said("status")


async def test_a_schema_without_tables_is_refused_and_not_made(anywhere):
    """A schedule that names a wrong schema would report success for years."""
    with pytest.raises(SettingsError, match="there are no tables in the schema"):
        await db.maintain(anywhere)
    assert not (await db.status(anywhere)).version


@pytest.mark.parametrize(("place", "states"), [("/proc/nope", ["ok", "fail"]), ("{}/old", ["ok"])])
def test_doctor_tries_the_folder_for_expired_partitions(anywhere, tmp_path, place, states):
    url = f"{anywhere}&keep=90d&retire=parquet&parquet=file:{place.format(tmp_path)}"

    assert [check.state for check in doctor_stores.stores("", url, "", "")] == states
    assert not list(tmp_path.iterdir())
