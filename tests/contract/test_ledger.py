"""The sinks that keep visits keep the ledger's promises; the others leave visits out."""

import sqlite3

import msgspec
import pytest
from tests.contract.sink_files import SINKS, keys_in

from trotline.adapters.postgres.sink import PostgresSink
from trotline.adapters.sqlite.sink import SqliteSink
from trotline.model.visit_row import VisitRow
from trotline.testing.ledger_contract import FULL, LedgerContract, line
from trotline.testing.sink_contract import product


class TestSqliteLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, tmp_path):
        return SqliteSink(tmp_path / "new folder" / "rows.db")

    def second(self, ledger):
        return SqliteSink(ledger.path)


class TestSqliteLedgerInline(TestSqliteLedger):
    @pytest.fixture
    def ledger(self, tmp_path):
        return SqliteSink(tmp_path / "rows.db", inline=True)


class TestPostgresLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, anywhere):
        return PostgresSink(anywhere)

    def second(self, ledger):
        return PostgresSink(ledger.address)


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
async def test_a_file_of_rows_leaves_visits_out(tmp_path, ending):
    sink = SINKS[ending](tmp_path / f"rows.{ending}")
    await sink.write([product("T1")], [line(1)])
    await sink.write([], [line(2)])
    await sink.close()

    assert not getattr(sink, "keeps_visits", False)
    assert await keys_in(tmp_path / f"rows.{ending}") == ["T1"]


async def test_a_file_from_before_the_ledger_gets_one(tmp_path):
    path = tmp_path / "rows.db"
    old = SqliteSink(path)
    await old.write([product("T1")])
    await old.close()
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE visits")
    db.close()

    sink = SqliteSink(path)
    await sink.write([product("T2")], [line(1)])

    assert [line(1)] == await sink.story([7])
    await sink.close()


async def test_a_file_with_fewer_columns_of_visits_gets_the_missing_ones(tmp_path):
    """As a file of an older version: its visits have the default."""
    path = tmp_path / "rows.db"
    await _logged(path, msgspec.structs.replace(FULL, token=1))
    with sqlite3.connect(path) as db:
        for name in ("children", "took", "moved_to"):
            db.execute(f"ALTER TABLE visits DROP COLUMN {name}")
    db.close()

    await _logged(path, FULL)

    sink = SqliteSink(path)
    old = msgspec.structs.replace(FULL, token=1, children=0, took=0.0, moved_to="")
    assert [old, FULL] == await sink.story([FULL.fingerprint])
    await sink.close()


async def test_a_file_with_more_columns_of_visits_is_written_to(tmp_path):
    """As a file of a newer version, whose columns have a default."""
    path = tmp_path / "rows.db"
    await _logged(path, line(1))
    with sqlite3.connect(path) as db:
        db.execute("ALTER TABLE visits ADD COLUMN of_a_newer_version TEXT NOT NULL DEFAULT ''")
    db.close()

    await _logged(path, line(2))

    sink = SqliteSink(path)
    assert [line(1), line(2)] == await sink.story([7])
    await sink.close()


def test_every_field_of_visits_but_the_first_ones_has_a_default():
    """Files and tables that exist get it for the visits they have."""
    optional = [field.name for field in msgspec.structs.fields(VisitRow) if not field.required]
    assert VisitRow.__struct_fields__[9:] == tuple(optional)


async def _logged(path, visit):
    sink = SqliteSink(path)
    await sink.log([visit])
    await sink.close()


async def test_a_second_job_of_the_same_name_adds_to_the_story(tmp_path):
    """The frontier's file was removed, the rows were kept: tokens begin anew."""
    sink = SqliteSink(tmp_path / "rows.db")
    await sink.log([line(1, outcome="bury")])
    await sink.log([line(1, at=3600, outcome="done")])

    assert ["bury", "done"] == [visit.outcome for visit in await sink.story([7])]
    await sink.close()


async def test_a_sink_that_was_told_to_keep_no_visits_still_tells_those_it_has(tmp_path):
    for visits, token in ((True, 1), (False, 2)):
        sink = SqliteSink(tmp_path / "rows.db", visits=visits)
        await sink.write([product()], [line(token)])
        await sink.close()

    sink = SqliteSink(tmp_path / "rows.db", visits=False)
    assert [1] == [visit.token for visit in await sink.story([7])]
    assert not sink.keeps_visits
    await sink.close()


async def test_a_kind_called_visits_has_a_view_beside_the_ledger(tmp_path):
    sink = SqliteSink(tmp_path / "rows.db")
    await sink.write([product(kind="visits", title="Tea")], [line(1)])
    await sink.finish()
    await sink.close()

    with sqlite3.connect(tmp_path / "rows.db") as db:
        [title] = db.execute("SELECT title FROM visits_rows").fetchone()
    db.close()
    assert title == "Tea"
