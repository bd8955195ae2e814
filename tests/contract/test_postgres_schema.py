"""The tables are made once, whoever comes first, and other versions are left alone."""

import asyncio
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.contract.postgres_servers import ask, fresh

from trotline.adapters.postgres import migrate, row_paging
from trotline.adapters.postgres.sink import PostgresSink
from trotline.adapters.postgres.sink_url import parse
from trotline.cli.db import command
from trotline.errors import SinkTooNew, SinkTooOld, SinkUnreachable
from trotline.testing.postgres_server import DEBIAN
from trotline.testing.sink_contract import product


async def test_many_workers_that_open_an_empty_database_at_once_all_succeed(everywhere):
    sinks = [PostgresSink(everywhere) for _ in range(6)]
    await asyncio.gather(*(sink.open() for sink in sinks))
    await asyncio.gather(*(sink.write([product(f"T{n}")]) for n, sink in enumerate(sinks)))

    versions = await ask(everywhere, "SELECT version FROM {s}.schema_version ORDER BY version")
    assert versions == [(number,) for number in range(1, migrate.NEWEST + 1)]
    for sink in sinks:
        await sink.close()


async def test_migrations_are_numbered_without_a_gap():
    assert [migration.number for migration in migrate.migrations()] == list(range(1, migrate.NEWEST + 1))


async def back_to(url, version):
    """The tables of that version, with the rows that they have."""
    assert version == 4
    await ask(
        url,
        "DROP VIEW {s}.merged; DROP TABLE {s}.things, {s}.merge_sources, {s}.merge_keys, {s}.merge_links,"
        " {s}.merge_verdicts, {s}.merge_state; CREATE TABLE {s}.old_history (LIKE {s}.history);"
        " INSERT INTO {s}.old_history SELECT * FROM {s}.history; DROP TABLE {s}.history;"
        " ALTER TABLE {s}.old_history RENAME TO history;"
        " CREATE INDEX history_of ON {s}.history (site, kind, key, since);"
        " CREATE INDEX history_replaced_at ON {s}.history USING brin (replaced_at) WITH (autosummarize = on);"
        " ALTER TABLE {s}.visits DROP COLUMN archive; ALTER TABLE {s}.records DROP COLUMN changes;"
        " DELETE FROM {s}.schema_version WHERE version > 4",
    )


async def test_a_history_from_before_partitions_becomes_one_of_them(anywhere):
    sink = PostgresSink(anywhere)
    await sink.write([product("T1", price=1)])
    await sink.write([product("T1", seen_at=2_000.0, price=2)])
    await back_to(anywhere, 4)

    assert (await sink.upgrade()).applied == ("005 archive", "006 merge", "007 history_by_time", "008 changes")

    await sink.write([product("T1", seen_at=3_000.0, price=3)])
    versions = await ask(
        anywhere,
        "SELECT (data->>'price')::int, tableoid::regclass::text LIKE '%history_19700101_%' FROM {s}.history ORDER BY 1",
    )
    assert versions == [(1, True), (2, True)]
    assert any(name.startswith("history_19700101_") for name in (await sink.status()).partitions)
    await sink.close()


async def test_older_tables_are_left_alone_until_they_are_upgraded(anywhere):
    sink = PostgresSink(anywhere)
    await sink.open()
    await back_to(anywhere, 4)
    await ask(anywhere, "DROP TABLE {s}.visits, {s}.row_counts; DELETE FROM {s}.schema_version WHERE version > 1")
    late = PostgresSink(anywhere)
    with pytest.raises(SinkTooOld) as told:
        await late.open()
    assert "trotline db upgrade --sink" in told.value.hint

    assert (await late.upgrade()).applied == (
        "002 visits", "003 row_counts", "004 prefixes", "005 archive", "006 merge", "007 history_by_time",
        "008 changes",
    )  # fmt: skip
    await late.open()
    await sink.close()
    await late.close()


OLD_COLUMNS = ", ".join(f'ALTER {name} TYPE text COLLATE "default"' for name in ("site", "kind", "key"))
OLD_IDENTITY = "".join(f"ALTER TABLE {{s}}.{table} {OLD_COLUMNS};" for table in ("records", "history"))


@pytest.mark.parametrize("view", [False, True])
async def test_tables_from_before_prefixes_are_upgraded_also_with_a_view_on_them(anywhere, view):
    sink = PostgresSink(anywhere)
    await sink.write([product(f"T{n}") for n in range(5)])
    await back_to(anywhere, 4)
    await ask(anywhere, OLD_IDENTITY)
    await ask(anywhere, "DROP INDEX {s}.records_url; CREATE INDEX records_url ON {s}.records USING hash (url)")
    await ask(anywhere, "DELETE FROM {s}.schema_version WHERE version > 3")
    if view:
        await ask(anywhere, "CREATE VIEW {s}.mine AS SELECT key FROM {s}.records")

    assert (await sink.upgrade()).applied == (
        "004 prefixes", "005 archive", "006 merge", "007 history_by_time", "008 changes",
    )  # fmt: skip

    await sink.write([product("T1", price=2), product("T9")])
    assert [row.key for row in await sink.rows(["https://shop.example/p/T9"])] == ["T9"]
    indexes = {
        name
        for (name,) in await ask(
            anywhere, "SELECT indexname::text FROM pg_indexes WHERE schemaname = $1", parse(anywhere).schema
        )
    }
    assert ("records_by_key" in indexes) is view
    page = await row_paging.page(anywhere, None, "T", "", 4)
    assert [row.key for row in page.rows] == ["T0", "T1", "T2", "T3"]
    await sink.close()


async def test_newer_tables_are_left_alone(anywhere):
    sink = PostgresSink(anywhere)
    await sink.open()
    await ask(anywhere, "INSERT INTO {s}.schema_version (version, name) VALUES (999, 'to come')")
    with pytest.raises(SinkTooNew, match="newer Trotline"):
        await PostgresSink(anywhere).open()
    with pytest.raises(SinkTooNew, match="newer Trotline"):
        await sink.upgrade()
    await sink.close()


async def test_tables_of_somebody_else_are_not_touched(anywhere):
    await ask(anywhere, "CREATE SCHEMA {s}; CREATE TABLE {s}.records (mine text)")
    with pytest.raises(SinkUnreachable, match="not Trotline's") as told:
        await PostgresSink(anywhere).open()
    assert "?schema=" in told.value.hint
    assert await ask(anywhere, "SELECT * FROM {s}.records") == []
    assert [("records",)] == await ask(
        anywhere, "SELECT relname::text FROM pg_class WHERE relnamespace = '{s}'::regnamespace AND relkind = 'r'"
    )


async def test_without_the_right_to_make_tables_the_error_says_who_can(postgres_servers):
    url = fresh(postgres_servers.url(DEBIAN))
    await ask(url, "CREATE ROLE stranger LOGIN PASSWORD 'makes-nothing'")
    with pytest.raises(SinkUnreachable, match="permission denied") as told:
        await PostgresSink(url.replace("trotline:kept-by-the-tests", "stranger:makes-nothing")).open()
    assert "trotline db upgrade" in told.value.hint


async def test_a_schema_may_have_an_odd_name(postgres_servers):
    url = fresh(postgres_servers.url(DEBIAN), schema="My%20%22shop%22%3B--")
    sink = PostgresSink(url)
    await sink.write([product()])

    assert len(await ask(url, "SELECT key FROM {s}.records")) == 1
    await sink.close()


async def test_the_questions_of_the_how_to_are_answered(postgres_servers):
    url = postgres_servers.url(DEBIAN)
    sink = PostgresSink(url)
    await sink.write([product(price="4.50")])
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "postgresql.md").read_text()
    [block] = re.findall(r"```sql\n(.*?)```", page, re.S)

    for question in block.split(";\n"):
        if question.strip():
            await ask(url, "SELECT * FROM (" + question.partition("\n")[2] + ") AS answer")  # noqa: S608
    await sink.close()


def test_db_upgrade_and_status_from_the_command_line(anywhere, monkeypatch):
    monkeypatch.setenv("DATABASE", anywhere)

    def said(*arguments):
        result = CliRunner().invoke(command, [*arguments, "--sink", "env:DATABASE"], catch_exceptions=False)
        assert "kept-by-the-tests" not in result.output
        return result.output

    assert "no tables yet" in said("status")
    assert "applied    001 records" in said("upgrade")
    assert "was up to date" in said("upgrade")
    assert "up to date" in said("status")
    assert '"version":' in said("status", "--json")
