"""The local sinks keep the promises of the port, and their own."""

import asyncio
import csv
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from trotline.adapters.files.export import to_csv, to_jsonl, to_parquet, write_whole
from trotline.adapters.files.jsonl import JsonlSink
from trotline.adapters.files.tables import CsvSink, ParquetSink
from trotline.adapters.sqlite.sink import SqliteSink, count_records, read_records, snapshot
from trotline.errors import SinkError, SinkTooNew, SinkUnreachable
from trotline.testing.sink_contract import SinkContract, product

CLEAN = {"_site", "_kind", "_key", "_url", "_seen_at"}


def identified(fields):
    return (fields["_site"], fields["_kind"], fields["_key"]), {k: v for k, v in fields.items() if k not in CLEAN}


def once(pairs):
    pairs = list(pairs)
    assert len(pairs) == len(dict(pairs)), "one row was stored twice"
    return dict(pairs)


def lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


class TestSqliteSink(SinkContract):
    @pytest.fixture
    def sink(self, tmp_path):
        return SqliteSink(tmp_path / "new folder" / "rows.db")

    def second(self, sink):
        return SqliteSink(sink.path)

    async def rows(self, sink):
        await sink.finish()
        return once(((row.site, row.kind, row.key), row.fields()) for row in read_records(sink.path))


class TestSqliteSinkInline(TestSqliteSink):
    @pytest.fixture
    def sink(self, tmp_path):
        return SqliteSink(tmp_path / "rows.db", inline=True)


class TestJsonlSink(SinkContract):
    @pytest.fixture
    def sink(self, tmp_path):
        return JsonlSink(tmp_path / "new folder" / "rows.jsonl", envelope=True)

    def second(self, sink):
        return JsonlSink(sink.place.file, envelope=True)

    async def rows(self, sink):
        await sink.finish()
        return once(identified(fields) for fields in lines(sink.place.file))


class TestCsvSink(SinkContract):
    @pytest.fixture
    def sink(self, tmp_path):
        return CsvSink(tmp_path / "new folder" / "rows.csv", envelope=True)

    def second(self, sink):
        return CsvSink(sink.place.file, envelope=True)

    async def rows(self, sink):
        await sink.finish()
        with sink.place.file.open(newline="", encoding="utf-8") as table:
            return once(identified(fields) for fields in csv.DictReader(table))


class TestParquetSink(SinkContract):
    @pytest.fixture
    def sink(self, tmp_path):
        return ParquetSink(tmp_path / "new folder" / "rows.parquet", envelope=True)

    def second(self, sink):
        return ParquetSink(sink.place.file, envelope=True)

    async def rows(self, sink):
        await sink.finish()
        return once(identified(fields) for fields in pq.read_table(sink.place.file).to_pylist())


SINKS = {"db": SqliteSink, "jsonl": JsonlSink, "csv": CsvSink, "parquet": ParquetSink}


@pytest.fixture(params=SINKS)
def ending(request):
    return request.param


@pytest.fixture
def path(tmp_path, ending):
    return tmp_path / f"rows.{ending}"


@pytest.fixture
def make(ending):
    return SINKS[ending]


async def keys_in(path):
    """The `sku` of every row of the finished file."""
    sink = SINKS[path.suffix[1:]](path)
    await sink.finish()
    await sink.close()
    match path.suffix:
        case ".db":
            return sorted(row.fields()["sku"] for row in read_records(path))
        case ".jsonl":
            return sorted(fields["sku"] for fields in lines(path))
        case ".csv":
            with path.open(newline="", encoding="utf-8") as table:
                return sorted(fields["sku"] for fields in csv.DictReader(table))
        case _:
            return sorted(pq.read_table(path).to_pydict().get("sku", []))


# --- places that cannot be written -----------------------------------------------------------------------------------


async def refused(sink):
    """The error's text when it is opened, and again when it is written to: it stays an answer, never a crash."""
    with pytest.raises(SinkError) as opening:
        await sink.open()
    with pytest.raises(SinkError):
        await sink.write([product()])
    await sink.close()
    assert opening.value.hint
    return opening


async def test_a_folder_is_refused(tmp_path, make):
    error = await refused(make(tmp_path))
    assert error.type is SinkUnreachable
    assert "folder" in str(error.value)


async def test_a_path_through_a_file_is_refused(tmp_path, make, ending):
    (tmp_path / "file").touch()
    error = await refused(make(tmp_path / "file" / f"rows.{ending}"))
    assert error.type is SinkUnreachable


async def test_a_folder_without_permission_is_refused(tmp_path, ending):
    if os.geteuid() == 0:
        with pytest.raises(SinkUnreachable):
            await SINKS[ending](Path("/proc/rows") / f"rows.{ending}").open()
        return
    tmp_path.chmod(0o500)
    error = await refused(SINKS[ending](tmp_path / f"rows.{ending}"))
    tmp_path.chmod(0o700)
    assert error.type is SinkUnreachable


async def test_somebody_elses_file_is_refused_and_left_alone(path, make):
    path.write_text("dear diary")
    assert (await refused(make(path))).type is SinkUnreachable
    assert path.read_text() == "dear diary"


async def test_somebody_elses_database_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "theirs.db") as theirs:
        theirs.execute("CREATE TABLE records (id)")
    theirs.close()
    assert "not one of Trotline's" in str((await refused(SqliteSink(tmp_path / "theirs.db"))).value)


async def test_a_newer_file_is_refused(path, make):
    sink = make(path)
    await sink.write([product()])
    await sink.close()
    inside = path if path.suffix == ".db" else path.parent / ".trotline" / f"{path.name}.index"
    with sqlite3.connect(inside) as newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()

    assert (await refused(make(path))).type is SinkTooNew


async def test_a_damaged_sidecar_is_refused_and_the_rows_stay_readable(tmp_path, ending):
    if ending == "db":
        pytest.skip("no sidecar")
    path = tmp_path / f"rows.{ending}"
    sink = SINKS[ending](path)
    await sink.write([product()])
    await sink.finish()
    await sink.close()
    before = path.read_bytes()
    (tmp_path / ".trotline" / f"{path.name}.index").write_bytes(b"\x00garbage" * 1000)

    error = await refused(SINKS[ending](path))

    assert "damaged" in str(error.value)
    assert before == path.read_bytes()


async def test_a_locked_file_is_unreachable_and_the_same_batch_can_be_tried_again(tmp_path):
    sink = SqliteSink(tmp_path / "rows.db", patience=0.05)
    await sink.open()
    holder = sqlite3.connect(tmp_path / "rows.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(SinkUnreachable, match="locked"):
        await sink.write([product()])
    holder.close()

    await sink.write([product()])

    await sink.close()
    assert count_records(tmp_path / "rows.db") == {"product": 1}


FULL_DISK = """
    import asyncio, resource, sys
    from tests.contract.test_sinks import SINKS, product
    from trotline.errors import SinkUnreachable

    async def main(path, ending):
        sink = SINKS[ending](path)
        await sink.open()
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
        for number in range(1000):
            try:
                await sink.write([product(f"T{number}.{n}", text="x" * 2000) for n in range(10)])
            except SinkUnreachable as error:
                print("unreachable" if error.hint else "no hint", flush=True)
                break
            print(number, flush=True)

    asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def child(script, *args, **env):
    code = textwrap.dedent(script)
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **env})


async def test_a_full_disk_is_unreachable_and_what_was_acknowledged_is_there(path, ending):
    with child(FULL_DISK, path, ending) as process:
        *stored, last = process.communicate(timeout=60)[0].split()

    assert last == "unreachable"
    acknowledged = {f"T{number}.{n}" for number in stored for n in range(10)}
    assert acknowledged
    assert sorted(acknowledged) == await keys_in(path)


# --- several processes, and processes that are killed ----------------------------------------------------------------

WRITERS = """
    import asyncio, sys
    from tests.contract.test_sinks import SINKS, product

    async def main(path, ending, name):
        sink = SINKS[ending](path)
        for turn in range(15):
            await sink.write([product(f"T{turn}.{n}", seen_at=1000.0, by=name if n % 2 else "") for n in range(16)])
        await sink.finish()
        await sink.close()

    asyncio.run(main(*sys.argv[1:]))
"""


async def test_several_processes_write_the_same_keys_at_once_and_each_is_there_once(path, ending):
    processes = [child(WRITERS, path, ending, name) for name in "abc"]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0

    assert sorted(f"T{turn}.{n}" for turn in range(15) for n in range(16)) == await keys_in(path)


KILLED = """
    import asyncio, os, signal, sqlite3, sys
    from pathlib import Path
    from tests.contract.test_sinks import SINKS, product

    def doom(name, nth):
        '''Die by SIGKILL just before or after the nth call of an os-level deed or of an SQL statement.'''
        seen = 0
        def count(called):
            nonlocal seen
            if called == name:
                seen += 1
                if seen == nth:
                    os.kill(os.getpid(), signal.SIGKILL)
        return count

    async def main(path, ending, name, nth):
        count = doom(name, int(nth))
        fsync, replace, connect = os.fsync, Path.replace, sqlite3.connect

        def counted_fsync(handle):
            count("before fsync"); fsync(handle); count("after fsync")
        def counted_replace(self, target):
            count("before rename"); answer = replace(self, target); count("after rename"); return answer
        class Counted(sqlite3.Connection):
            def execute(self, sql, *args):
                word = sql.split()[0]
                count(f"before {word}"); answer = super().execute(sql, *args); count(f"after {word}"); return answer
        os.fsync, Path.replace = counted_fsync, counted_replace
        sqlite3.connect = lambda *args, **options: connect(*args, factory=Counted, **options)

        sink = SINKS[ending](path)
        for turn in range(6):
            await sink.write([product(f"T{turn}.{n}", seen_at=1000.0 + turn, v=turn) for n in range(4)]
                             + [product("same", seen_at=1000.0 + turn, v=turn)])
            print(turn, flush=True)
            if turn in (2, 5):
                await sink.finish()
        await sink.close()

    asyncio.run(main(*sys.argv[1:]))
"""
DOOMS = [
    ("before INSERT", 3), ("after INSERT", 3), ("before REPLACE", 3), ("after REPLACE", 2), ("before COMMIT", 4),
    ("after COMMIT", 4), ("before fsync", 3), ("after fsync", 3), ("after fsync", 5), ("before rename", 1),
    ("after rename", 1), ("before rename", 2), ("before UPDATE", 5), ("after UPDATE", 6), ("after BEGIN", 4),
]  # fmt: skip


@pytest.mark.parametrize(("deed", "nth"), DOOMS, ids=lambda value: str(value).replace(" ", "-"))
async def test_kill_9_inside_a_write_loses_nothing_acknowledged_and_doubles_nothing(path, ending, deed, nth):
    with child(KILLED, path, ending, deed, nth) as process:
        stored = process.communicate(timeout=60)[0].split()
    assert process.returncode in (0, -signal.SIGKILL)

    found = await keys_in(path)
    acknowledged = {f"T{turn}.{n}" for turn in stored for n in range(4)}
    assert len(found) == len(set(found))
    assert acknowledged <= set(found)

    with child(KILLED, path, ending, "never", 0) as process:
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert sorted([f"T{turn}.{n}" for turn in range(6) for n in range(4)] + ["same"]) == await keys_in(path)


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
        assert db.execute(
            "SELECT title, price, tags, stock FROM product"
        ).fetchall() == [("Tea", 4.5, '["a"]', None), ("Coffee", None, None, 1)]
        assert db.execute(
            "SELECT stars, _key, _seen_at FROM review"
        ).fetchall() == [(5, "R1", "1970-01-01T00:16:40.000Z")]
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
    await sink.refresh_views()
    await sink.close()

    assert 2 + len(HOSTILE) + 3 + 1 == sum(count_records(tmp_path / "rows.db").values())
    with sqlite3.connect(tmp_path / "rows.db") as db:
        views = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]
        for view in views:
            db.execute('SELECT * FROM "' + view.replace('"', '""') + '"').fetchall()
        assert db.execute(
            """SELECT "'", "a.b", "a[1]", "$.a[0]" FROM product WHERE _key = 'T2'"""
        ).fetchall() == [("'", "a.b", "a[1]", "$.a[0")]
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


async def test_jsonl_a_file_taken_away_starts_anew_and_a_cut_one_is_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    sink = JsonlSink(path)
    await sink.write([product("T1"), product("T2")])
    path.unlink()
    await sink.write([product("T1")])
    assert lines(path) == [{"sku": "T1"}]
    os.truncate(path, 3)
    with pytest.raises(SinkUnreachable, match="shorter"):
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
    assert types == {"sku": "string", "n": "int64", "f": "double", "m": "string", "d": "string", "big": "string", "x": "string",
            "b": "bool", "p": "string"}  # fmt: skip
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
    assert (tmp_path / "out" / "a.csv").read_bytes()[:24] == b"sku,title,n\r\nT0,Tea 0,0\r\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.csv", "a.jsonl", "a.parquet"]
    with pytest.raises(TypeError, match="twice"):
        to_csv(read_records(tmp_path / "rows.db"), (tmp_path / "x").open("wb"))


async def test_without_pyarrow_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("trotline.adapters.files.export.find_spec", lambda name: None)
    with pytest.raises(SinkError, match=r"trotline\[parquet\]"):
        ParquetSink(tmp_path / "rows.parquet")


def test_the_file_size_limit_of_this_process_is_untouched():
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 300_000
