"""The local sinks keep the promises of the port, and say clearly where they cannot write."""

import csv
import json
import os
import sqlite3
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.contract.sink_files import SINKS, FolderSink, keys_in, lines

from trotline.adapters.files.csv_parquet import CsvSink, ParquetSink
from trotline.adapters.files.jsonl import JsonlSink
from trotline.adapters.sqlite.sink import SqliteSink, count_records, read_records
from trotline.errors import SinkError, SinkFileFails, SinkTooNew, SinkUnreachable
from trotline.testing.sink_contract import SinkContract, product

CLEAN = {"_site", "_kind", "_key", "_url", "_seen_at"}


def identified(fields):
    return (fields["_site"], fields["_kind"], fields["_key"]), {k: v for k, v in fields.items() if k not in CLEAN}


def once(pairs):
    pairs = list(pairs)
    assert len(pairs) == len(dict(pairs)), "one row was stored twice"
    return dict(pairs)


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


class FolderContract(SinkContract):
    async def rows(self, sink):
        found = [json.loads(path.read_text()) for path in sink.folder.glob("*.json")]
        return {(row["site"], row["kind"], row["key"]): row["data"] for row in found}


async def test_the_suite_passes_what_is_right_and_catches_what_is_wrong(tmp_path):
    suite = FolderContract()
    await suite.test_what_was_written_is_there(FolderSink(tmp_path / "right"))
    await suite.test_s1_the_same_batch_twice_leaves_the_same_state(FolderSink(tmp_path / "right"))
    await suite.test_s5_one_key_in_two_kinds_and_two_sites_is_four_rows(FolderSink(tmp_path / "sites"))

    for broken in (
        suite.test_s2_an_older_sighting_does_not_overwrite_a_newer_one,
        suite.test_s3_a_batch_with_an_impossible_record_is_not_stored_at_all,
    ):
        with pytest.raises(AssertionError):
            await broken(FolderSink(tmp_path / broken.__name__))


async def test_the_folder_of_the_how_to_is_not_left_whatever_a_site_calls_its_things(tmp_path):
    sink = FolderSink(tmp_path / "in" / "side")
    await sink.write([product("../../x"), product("/x"), product("."), product("a/b"), product(kind="../../y")])

    assert [tmp_path / "in"] == list(tmp_path.iterdir())
    assert 5 == len(list(sink.folder.iterdir()))


async def test_without_a_way_to_read_the_suite_says_what_is_missing(tmp_path):
    with pytest.raises(pytest.skip.Exception, match="override `async def rows"):
        await SinkContract().test_what_was_written_is_there(FolderSink(tmp_path))


@pytest.fixture(params=SINKS)
def ending(request):
    return request.param


@pytest.fixture
def path(tmp_path, ending):
    return tmp_path / f"rows.{ending}"


@pytest.fixture
def make(ending):
    return SINKS[ending]


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
    assert error.type is SinkFileFails
    assert "folder" in str(error.value)


async def test_a_path_through_a_file_is_refused(tmp_path, make, ending):
    (tmp_path / "file").touch()
    error = await refused(make(tmp_path / "file" / f"rows.{ending}"))
    assert error.type is SinkFileFails


async def test_a_folder_without_permission_is_refused(tmp_path, ending):
    if os.geteuid() == 0:
        with pytest.raises(SinkUnreachable):
            await SINKS[ending](Path("/proc/rows") / f"rows.{ending}").open()
        return
    tmp_path.chmod(0o500)
    error = await refused(SINKS[ending](tmp_path / f"rows.{ending}"))
    tmp_path.chmod(0o700)
    assert error.type is SinkFileFails


async def test_somebody_elses_file_is_refused_and_left_alone(path, make):
    path.write_text("dear diary")
    assert (await refused(make(path))).type is SinkFileFails
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


async def test_odd_keys_are_rows_like_any_other(path, make):
    sink = make(path)
    await sink.write([product(key) for key in ("", " ", "T\0 1", "é", "half \ud83d", "x" * 5000, "../../x", "'; --")])
    await sink.close()
    await sink.close()
    assert len(await keys_in(path)) == 8


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
