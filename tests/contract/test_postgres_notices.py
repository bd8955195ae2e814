"""What `trotline doctor` says about a PostgreSQL server that is to keep tasks, on real servers."""

import asyncio
import re

import asyncpg
import pytest
from tests.contract.postgres_servers import fresh

from trotline.adapters.postgres.frontier import server_check as rules
from trotline.config import backends
from trotline.model.job import LaneRules
from trotline.testing.postgres_server import DEBIAN, PASSWORD, postgres


async def said(url: str) -> list[str]:
    return [notice.text for notice in await backends.notices(url)]


async def used(url: str) -> None:
    """As the frontier of a job: it has tables."""
    jobs = await backends.open_jobs(url)
    await jobs.start("shop", LaneRules())
    await jobs.close()


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
        # Other sessions of the server, as of autovacuum, may have snapshots too.
        of_report = f"session {report.get_server_pid()} (weekly report, idle in transaction)"
        assert not [text for text in await said(anywhere) if of_report in text], "it is young"
        monkeypatch.setattr(rules, "OLD_SNAPSHOT", 0.0)
        [text] = [text for text in await said(anywhere) if of_report in text]
    await report.close()

    assert "snapshot" in text
    assert re.search(r"for \d+ s", text)


async def locks_said(url: str) -> list[str]:
    return [text for text in await said(url) if "held a lock" in text]


async def test_a_session_that_has_locked_a_table_of_the_frontier_is_named(
    anywhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while nobody waits for it: workers give up and come back, and would not be seen in between."""
    place, _, schema = anywhere.partition("?schema=")
    await used(anywhere)
    psql = await asyncpg.connect(place, server_settings={"application_name": "psql"})
    async with psql.transaction():
        await psql.execute(f"LOCK TABLE {schema}.lane IN SHARE MODE")
        assert not await locks_said(anywhere), "it is young"
        monkeypatch.setattr(rules, "LONG_LOCK", 0.0)
        [notice] = [each for each in await backends.notices(anywhere) if "held a lock" in each.text]
        pid = psql.get_server_pid()
    ended = await locks_said(anywhere)
    async with psql.transaction():
        await psql.execute(f"LOCK TABLE {schema}.lane IN ACCESS SHARE MODE")
        harmless = await locks_said(anywhere)
    await psql.close()

    assert f"session {pid} (psql, idle in transaction)" in notice.text
    assert f"pg_terminate_backend({pid})" in notice.advice
    assert not ended and not harmless


async def test_a_session_that_keeps_rows_from_others_is_named(anywhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "LONG_LOCK", 0.0)
    place, _, schema = anywhere.partition("?schema=")
    await used(anywhere)
    psql, worker = await asyncpg.connect(place), await asyncpg.connect(place)
    change = f"UPDATE {schema}.meta SET version = version"  # noqa: S608 - a name of this test
    async with psql.transaction():
        await psql.execute(change)
        waits = asyncio.ensure_future(worker.execute(change))
        for _ in range(200):
            if found := await locks_said(anywhere):
                break
            await asyncio.sleep(0.05)
        pid = psql.get_server_pid()
    await waits
    await worker.close()
    await psql.close()

    assert len(found) == 1 and f"session {pid} " in found[0], "not the one that waits"


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
        await owner.execute("REVOKE CREATE ON DATABASE postgres FROM weak; DROP ROLE weak")
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
