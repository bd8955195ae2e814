"""How many rows the tables of a sink have, also after a crash: it takes the cumulative statistics of the server."""

import asyncio
import time

import pytest
from tests.contract.postgres_servers import ask, fresh
from tests.contract.test_postgres_ledger import visit

from trotline.adapters.postgres.sink import PostgresSink
from trotline.model.schema import SchemaStatus
from trotline.testing.postgres_server import PASSWORD, postgres
from trotline.testing.sink_contract import product


def rows_of(status: SchemaStatus, name: str) -> list[int | None]:
    return [table.rows for table in status.tables if table.name.startswith(name) and table.rows != 0]


async def test_after_a_crash_of_the_server_rows_are_not_about_0() -> None:
    with postgres() as server:
        sink = PostgresSink(server.url)
        await sink.write([product(f"T{number}") for number in range(300)], [visit(token) for token in range(1, 41)])
        before = await sink.status()
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        after = await sink.status()
        planned = await sink.retention(time.time())
        await sink.close()

    for status in (before, after):
        assert status.records == 300
        assert rows_of(status, "visits_") == [40]
    assert [40] == [one.rows for one in planned.partitions if one.rows]


@pytest.mark.parametrize("analysed", [False, True])
async def test_of_a_large_table_it_is_an_estimate(anywhere: str, analysed: bool) -> None:
    sink = PostgresSink(anywhere)
    await sink.open()
    await ask(anywhere, "CREATE TABLE {s}.more (number int) WITH (autovacuum_enabled = off)")
    await ask(anywhere, "INSERT INTO {s}.more SELECT n FROM generate_series(1, 100000) n")
    if analysed:
        await ask(anywhere, "ANALYZE {s}.more")
        await ask(anywhere, "INSERT INTO {s}.more SELECT n FROM generate_series(1, 100000) n")
    status = await sink.status()
    await sink.close()

    [found] = rows_of(status, "more")
    assert found is not None
    assert 0.7 < found / (200_000 if analysed else 100_000) < 1.3


async def test_of_a_table_that_may_not_be_read_nothing_is_said(anywhere: str) -> None:
    sink = PostgresSink(anywhere)
    await sink.write([product("T1")])
    await sink.close()
    place, _, schema = anywhere.partition("?schema=")
    login = f"looker_{schema}"
    await ask(anywhere, f"CREATE ROLE {login} LOGIN PASSWORD '{PASSWORD}'; GRANT USAGE ON SCHEMA {{s}} TO {login}")
    await ask(anywhere, f"GRANT SELECT ON {{s}}.schema_version TO {login}")
    looker = PostgresSink(fresh(place.replace("postgresql://trotline:", f"postgresql://{login}:"), schema=schema))
    try:
        assert (await looker.status()).records is None
    finally:
        await looker.close()
        await ask(anywhere, f"DROP OWNED BY {login}; DROP ROLE {login}")
