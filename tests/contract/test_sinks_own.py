"""What each local sink promises beyond the port: history, views, live lines, types, links."""

import asyncio
import io
import os
import sqlite3

import pyarrow.parquet as pq
import pytest
from tests.contract.sink_files import SINKS, keys_in, lines

from trotline.adapters.files.csv_parquet import CsvSink, ParquetSink
from trotline.adapters.files.export import to_csv, to_jsonl, to_parquet, write_whole
from trotline.adapters.files.jsonl import JsonlSink
from trotline.adapters.sqlite.sink import SqliteSink, count_records, read_records, snapshot
from trotline.adapters.sqlite.sink_sql_views import identifier
from trotline.errors import SinkError, SinkGone, SinkUnreachable
from trotline.testing.sink_contract import product


@pytest.fixture(params=SINKS)
def ending(request):
    return request.param


@pytest.fixture
def path(tmp_path, ending):
    return tmp_path / f"rows.{ending}"


@pytest.fixture
def make(ending):
    return SINKS[ending]


# --- SQLite's own ----------------------------------------------------------------------------------------------------


async def test_sqlite_keeps_the_version_before_a_change_and_only_then(tmp_path):
    sink = SqliteSink(tmp_path / "rows.db")
    for seen_at, price in [(1.0, 5), (2.0, 5), (3.0, 6), (3.0, 6), (1.5, 7), (4.0, 8)]:
        await sink.write([product(seen_at=seen_at, price=price)])
    await sink.close()

    with sqlite3.connect(tmp_path / "rows.db") as db:
        history = db.execute(
            "SELECT since, seen_at, json_extract(data, '$.price') FROM history ORDER BY since"
        ).fetchall()
        now = db.execute("SELECT first_seen_at, changed_at, seen_at FROM records").fetchall()
    db.close()
    assert history == [(1.0, 2.0, 5), (3.0, 3.0, 6)]
    assert now == [(1.0, 4.0, 4.0)]


async def test_sqlite_repeating_a_batch_adds_no_history(tmp_path):
    sink = SqliteSink(tmp_path / "rows.db")
    for _ in range(3):
        await sink.write([product(title="Tea"), product(title="Green tea")])
    await sink.close()

    with sqlite3.connect(tmp_path / "rows.db") as db:
        assert db.execute("SELECT * FROM history").fetchall() == []
    db.close()


async def test_sqlite_fields_are_columns_of_a_view_per_kind(tmp_path):
    sink = SqliteSink(tmp_path / "rows.db")
    await sink.write([product(title="Tea", price=4.5, tags=["a"]), product("R1", kind="review", stars=5)])
    await sink.finish()
    await sink.write([product("T2", title="Coffee", stock=True)])
    await sink.finish()
    await sink.close()

    with sqlite3.connect(tmp_path / "rows.db") as db:
        assert db.execute("SELECT title, price, tags, stock FROM product").fetchall() == [
            ("Tea", 4.5, '["a"]', None),
            ("Coffee", None, None, 1),
        ]
        assert db.execute("SELECT stars, _key, _seen_at FROM review").fetchall() == [
            (5, "R1", "1970-01-01T00:16:40.000Z")
        ]
    db.close()


HOSTILE = [
    'x"; DROP TABLE records; --', "x'); DROP TABLE records; --", "", " ", "a" * 5000, "select", "Title", "title",
    "_key", "$.a[0]", "a.b", "a[1]", "\\", "\0", "é", "\ud800", '"', "'", "records", "x\ny", "?1", ":a", "%s",
]  # fmt: skip


async def test_sqlite_hostile_names_of_fields_and_kinds_break_nothing(tmp_path):
    sink = SqliteSink(tmp_path / "rows.db")
    await sink.write([product(title="first")])
    await sink.write([product("T2", **{name: name[:5].replace("\ud800", "?") for name in HOSTILE})])
    for name in [*HOSTILE, "sqlite_master", "history", "PRODUCT"]:
        await sink.write([product(f"K{name}", kind=name, n=1)])
    await sink.write([product("many", **{f"field{n}": n for n in range(3000)})])
    await sink.finish()
    await sink.finish()
    await sink.close()

    assert 2 + len(HOSTILE) + 3 + 1 == sum(count_records(tmp_path / "rows.db").values())
    with sqlite3.connect(tmp_path / "rows.db") as db:
        views = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]
        for view in views:
            db.execute(f"SELECT * FROM {identifier(view)}").fetchall()  # noqa: S608
        assert db.execute("""SELECT "'", "a.b", "a[1]", "$.a[0]" FROM product WHERE _key = 'T2'""").fetchall() == [
            ("'", "a.b", "a[1]", "$.a[0")
        ]
        assert {"records_rows", "history_rows", "rows_sqlite_master", "product"} <= set(views)
    db.close()


async def test_sqlite_rows_can_be_read_while_a_crawl_writes(tmp_path):
    sink = SqliteSink(tmp_path / "rows.db")
    await sink.write([product("T1"), product("R1", kind="review"), product("T2", site="store")])
    with snapshot(tmp_path / "rows.db") as rows:
        before = list(rows)
        await sink.write([product("T3")])
        assert before == list(rows)
    await sink.close()

    path = tmp_path / "rows.db"
    assert [row.key for row in read_records(path, kind="review")] == ["R1"]
    assert [row.key for row in read_records(path, kind="product", site="shop")] == ["T1", "T3"]
    assert count_records(path) == {"product": 3, "review": 1}
    with pytest.raises(SinkUnreachable):
        count_records(tmp_path / "none.db")


async def test_a_slow_disk_does_not_stop_the_event_loop(tmp_path):
    sink = SqliteSink(tmp_path / "rows.db")
    await sink.open()
    holder = sqlite3.connect(tmp_path / "rows.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(sink.write([product()]))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not writing.done()
    holder.execute("ROLLBACK")
    holder.close()
    await writing
    await sink.close()


# --- files' own ------------------------------------------------------------------------------------------------------


async def test_jsonl_lines_are_there_while_the_crawl_runs_and_hold_the_data_alone(tmp_path):
    sink = JsonlSink(tmp_path / "rows.jsonl")
    await sink.write([product(title="Tea")])
    assert lines(tmp_path / "rows.jsonl") == [{"sku": "T1", "title": "Tea"}]
    await sink.close()
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["rows.jsonl"]


async def test_jsonl_continues_a_file_of_lines_that_was_there_before(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"old": 1}\n')
    sink = JsonlSink(tmp_path / "rows.jsonl")
    for v in range(3):
        await sink.write([product(seen_at=float(v), v=v)])
    await sink.finish()
    await sink.close()
    assert lines(tmp_path / "rows.jsonl") == [{"old": 1}, {"sku": "T1", "v": 2}]


async def test_what_is_taken_away_from_a_sink_at_work_is_gone_and_not_made_anew(path, ending):
    sink = SINKS[ending](path)
    await sink.write([product("T1"), product("T2")])
    kept = path if ending in ("db", "jsonl") else path.parent / ".trotline" / f"{path.name}.index"
    kept.unlink()
    for deed in (sink.write([product("T3")]), sink.write([product("T4")]), sink.finish()):
        with pytest.raises(SinkGone, match="was deleted or moved"):
            await deed
    assert not kept.exists()
    await sink.close()


async def test_a_sink_that_another_file_took_the_place_of_is_gone(tmp_path):
    path = tmp_path / "rows.db"
    sink = SqliteSink(path)
    await sink.write([product("T1")])
    for part in tmp_path.glob("rows.db*"):
        part.rename(tmp_path / f"old-{part.name}")
    other = SqliteSink(path)
    await other.write([product("T2")])
    with pytest.raises(SinkGone):
        await sink.write([product("T3")])
    assert [row.key for row in read_records(path)] == ["T2"]
    await sink.close()
    await other.close()


async def test_jsonl_a_file_taken_away_starts_anew_with_the_next_run_and_a_cut_one_is_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    sink = JsonlSink(path)
    await sink.write([product("T1"), product("T2")])
    path.unlink()
    await sink.open()
    await sink.write([product("T1")])
    assert lines(path) == [{"sku": "T1"}]
    os.truncate(path, 3)
    with pytest.raises(SinkUnreachable, match="was truncated"):
        await sink.write([product("T3")])
    await sink.close()


async def test_a_link_stays_a_link(tmp_path, ending):
    if ending == "db":
        pytest.skip("SQLite follows links by itself")
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / f"rows.{ending}"
    link.symlink_to(tmp_path / "elsewhere" / f"real.{ending}")
    sink = SINKS[ending](link)
    for v in range(2):
        await sink.write([product(seen_at=float(v), v=v)])
    await sink.finish()
    await sink.close()
    assert link.is_symlink()
    assert link.read_bytes()


async def test_a_table_taken_away_is_written_again_from_the_spool(tmp_path):
    sink = CsvSink(tmp_path / "rows.csv")
    await sink.write([product(title="Tea")])
    await sink.finish()
    (tmp_path / "rows.csv").unlink()
    await sink.finish()
    await sink.close()
    assert (tmp_path / "rows.csv").read_bytes().decode() == "sku,title\r\nT1,Tea\r\n"


async def test_no_rows_still_make_a_file(path, make):
    sink = make(path)
    await sink.finish()
    await sink.finish()
    await sink.close()
    assert path.exists()
    assert await keys_in(path) == []


async def test_parquet_columns_have_the_narrowest_type_that_keeps_every_value(tmp_path):
    sink = ParquetSink(tmp_path / "rows.parquet")
    mixed = [{"n": 1, "f": 1, "m": 1, "d": {"a": [1]}, "big": 2**70, "x": None, "b": True, "p": 2**60},
             {"n": 2, "f": 2.5, "m": "two", "d": [], "big": 1, "b": None, "p": 0.5}]  # fmt: skip
    await sink.write([product(f"T{number}", **data) for number, data in enumerate(mixed)])
    await sink.finish()
    await sink.close()

    table = pq.read_table(tmp_path / "rows.parquet")
    types = {field.name: str(field.type) for field in table.schema}
    text = dict.fromkeys(["sku", "m", "d", "big", "x", "p"], "string")
    assert types == text | {"n": "int64", "f": "double", "b": "bool"}
    assert table["m"].to_pylist() == ["1", "two"]
    assert table["d"].to_pylist() == ['{"a":[1]}', "[]"]
    assert [str(2**70), "1"] == table["big"].to_pylist()


async def test_export_writes_each_format_from_a_database(tmp_path):
    sink = SqliteSink(tmp_path / "rows.db")
    await sink.write([product(f"T{n}", title=f"Tea {n}", n=n) for n in range(3)])
    await sink.close()
    with snapshot(tmp_path / "rows.db") as rows:
        assert write_whole(tmp_path / "out" / "a.jsonl", lambda out: to_jsonl(rows, out)) == 3
        assert write_whole(tmp_path / "out" / "a.csv", lambda out: to_csv(rows, out)) == 3
        assert write_whole(tmp_path / "out" / "a.parquet", lambda out: to_parquet(rows, out)) == 3
    expected = [{"sku": f"T{n}", "title": f"Tea {n}", "n": n} for n in range(3)]
    assert expected == lines(tmp_path / "out" / "a.jsonl")
    assert expected == pq.read_table(tmp_path / "out" / "a.parquet").to_pylist()
    assert (tmp_path / "out" / "a.csv").read_bytes().startswith(b"sku,title,n\r\nT0,Tea 0,0\r\n")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.csv", "a.jsonl", "a.parquet"]
    with pytest.raises(TypeError, match="twice"):
        to_csv(read_records(tmp_path / "rows.db"), io.BytesIO())


async def test_without_pyarrow_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("trotline.adapters.files.export.find_spec", lambda name: None)
    with pytest.raises(SinkError, match=r"\.\[parquet\]"):
        ParquetSink(tmp_path / "rows.parquet")
