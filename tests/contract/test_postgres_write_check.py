"""`trotline doctor` finds a server that answers every question and takes no writes."""

import asyncpg
import pytest
from tests.contract.postgres_servers import ask, fresh
from tests.contract.test_postgres_outages import small_disk

from trotline.adapters.postgres import write_check
from trotline.config import backends
from trotline.errors import FrontierUnreachable, SinkUnreachable
from trotline.testing.postgres_server import PASSWORD, PostgresServer, own, postgres


@pytest.fixture
def server():
    with postgres() as server:
        yield server


async def order(server: PostgresServer, *statements: str) -> None:
    admin = await asyncpg.connect(server.url)
    for statement in statements:
        await admin.execute(statement)
    await admin.close()


async def refused(url: str) -> list[str]:
    """What is said about the frontier and about the sink."""
    with pytest.raises(FrontierUnreachable) as frontier:
        await backends.notices(url)
    with pytest.raises(SinkUnreachable) as sink:
        await backends.check_sink(url)
    return [str(frontier.value), str(sink.value)]


async def test_a_full_disk_is_found(server: PostgresServer) -> None:
    with small_disk(server.folder / "small", "2m") as disk:
        (space := disk / "space").mkdir()
        own(disk)
        own(space)
        await order(
            server, f"CREATE TABLESPACE small LOCATION '{space}'", "ALTER ROLE trotline SET default_tablespace = small"
        )
        await backends.notices(server.url)
        await backends.check_sink(server.url)
        (disk / "film").write_bytes(b"x" * 1_500_000)
        for text in await refused(server.url):
            assert "the server's disk is full" in text


async def test_a_read_only_server_is_found(server: PostgresServer) -> None:
    with postgres(standby_of=server) as standby:
        for text in await refused(standby.url):
            assert "the server is read-only" in text
            assert "Is it a standby?" in text


async def test_a_server_that_waits_for_a_standby_that_is_down_is_found(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_check, "WITHIN", 1.0)
    await order(server, "ALTER SYSTEM SET synchronous_standby_names = 'gone'", "SELECT pg_reload_conf()")
    for text in await refused(server.url):
        assert "has not finished a small write within 1 s" in text
        assert "synchronous_standby_names" in text


async def test_a_user_who_may_create_nothing_can_be_checked(anywhere: str) -> None:
    """As one of a sink whose tables another user has made."""
    place, _, schema = anywhere.partition("?schema=")
    login = f"writer_{schema}"
    await ask(anywhere, f"CREATE ROLE {login} LOGIN PASSWORD '{PASSWORD}'; CREATE SCHEMA {{s}}")
    try:
        await backends.check_sink(
            fresh(place.replace("postgresql://trotline:", f"postgresql://{login}:"), schema=schema)
        )
    finally:
        await ask(anywhere, f"DROP ROLE {login}; DROP SCHEMA {{s}}")


async def test_the_check_leaves_nothing_behind(everywhere: str) -> None:
    await backends.notices(everywhere)
    await backends.check_sink(everywhere)
    [(tables,)] = await ask(everywhere, "SELECT count(*) FROM pg_class WHERE relname LIKE '%write_check%'")
    [(schemas,)] = await ask(
        everywhere, "SELECT count(*) FROM pg_namespace WHERE quote_ident(nspname) = trim('{s}', '\"')"
    )
    assert (tables, schemas) == (0, 0)
