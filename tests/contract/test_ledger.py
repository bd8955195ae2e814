"""The sinks that keep visits keep the ledger's promises; the others leave visits out."""

import sqlite3

import pytest
from tests.contract.sink_files import SINKS, keys_in

from trotline.adapters.postgres.sink import PostgresSink
from trotline.adapters.sqlite.sink import SqliteSink
from trotline.testing.ledger_contract import LedgerContract, line
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
