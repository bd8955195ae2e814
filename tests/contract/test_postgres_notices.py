"""What `trotline doctor` says about a PostgreSQL server that is to keep tasks, on real servers."""

import re

import asyncpg
import pytest
from tests.contract.postgres_servers import fresh

from trotline.adapters.postgres.frontier import notices as rules
from trotline.config import backends
from trotline.testing.postgres_server import DEBIAN, PASSWORD, postgres


async def said(url: str) -> list[str]:
    return [notice.text for notice in await backends.notices(url)]


async def test_a_server_in_good_order_is_not_mentioned() -> None:
    with postgres() as server:
        assert await said(server.url) == []


async def test_a_postgres_that_may_lose_its_tables_is_named(anywhere: str) -> None:
    """The servers of these tests run without fsync."""
    [notice] = await backends.notices(anywhere)

    assert "fsync = off" in notice.text and "fsync = on" in notice.advice
    assert PASSWORD not in notice.text


async def test_an_old_snapshot_is_named_with_its_session(anywhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = anywhere.partition("?")[0]
    report = await asyncpg.connect(place, server_settings={"application_name": "weekly report"})
    async with report.transaction(isolation="repeatable_read"):
        await report.execute("SELECT 1")
        assert not [text for text in await said(anywhere) if "snapshot" in text], "it is young"
        monkeypatch.setattr(rules, "OLD_SNAPSHOT", 0.0)
        [text] = [text for text in await said(anywhere) if "snapshot" in text]
        pid = report.get_server_pid()
    await report.close()

    assert f"session {pid} (weekly report, idle in transaction)" in text
    assert re.search(r"for \d+ s", text)


async def test_a_forgotten_prepared_transaction_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "OLD_SNAPSHOT", 0.0)
    with postgres(settings={"max_prepared_transactions": "2"}) as server:
        connection = await asyncpg.connect(server.url)
        await connection.execute("BEGIN; CREATE TABLE left_behind (); PREPARE TRANSACTION 'left behind'")
        await connection.close()

        assert [text for text in await said(server.url) if "prepared transaction left behind" in text]


async def test_few_free_connections_are_said(anywhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [text for text in await said(anywhere) if "connections" in text]
    monkeypatch.setattr(rules, "FEW_CONNECTIONS", 1_000)

    [text] = [text for text in await said(anywhere) if "connections" in text]

    assert re.search(r"\d+ of 37 connections", text)


async def test_a_user_who_sees_no_other_sessions_is_told_that_something_is_unknown(postgres_servers) -> None:
    url = postgres_servers.url(DEBIAN)
    owner = await asyncpg.connect(url)
    await owner.execute(f"CREATE ROLE weak LOGIN PASSWORD '{PASSWORD}'; GRANT CREATE ON DATABASE postgres TO weak")
    weak = fresh(re.sub(r"//[^@]*@", f"//weak:{PASSWORD}@", url))
    try:
        texts = await said(weak)
    finally:
        schema = weak.partition("schema=")[2]
        await owner.execute(
            f"DROP SCHEMA {schema} CASCADE; REVOKE CREATE ON DATABASE postgres FROM weak; DROP ROLE weak"
        )
        await owner.close()

    assert [text for text in texts if "unknown" in text]


async def test_a_pooler_is_recognized(postgres_servers) -> None:
    behind = fresh(postgres_servers.url("pgbouncer"))

    assert [text for text in await said(behind) if "pooler" in text]
    assert not [text for text in await said(fresh(postgres_servers.url(DEBIAN))) if "pooler" in text]


async def test_the_load_of_a_frontiers_server_is_that_of_its_database(anywhere: str) -> None:
    load = await backends.frontier_load(anywhere)

    assert load is not None
    assert (load.kind, load.blocked) == ("postgresql", 0.0)
