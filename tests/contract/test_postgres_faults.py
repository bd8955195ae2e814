"""What can happen to a server, and that no acknowledged batch is lost by it."""

import asyncio
import logging
from contextlib import nullcontext

import asyncpg
import pytest
from tests.contract.postgres_servers import ask, fresh
from tests.contract.test_postgres_ledger import visit

from trotline.adapters.postgres import pool
from trotline.adapters.postgres.frontier import frontier_url
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.sink import PostgresSink
from trotline.errors import FrontierUnreachable, SinkGone, SinkUnreachable
from trotline.testing.postgres_server import BUILDS, DEBIAN, pgbouncer, postgres
from trotline.testing.servers import listen
from trotline.testing.sink_contract import product

SIZE = 50
# The machine stays up: what the server handed to the system is there after a crash of the server, synced or not.
QUICK = {"fsync": "off", "superuser_reserved_connections": "0", "max_connections": "12"}


@pytest.fixture(scope="module")
def mortal():
    """A server that may be stopped."""
    with postgres(DEBIAN, QUICK) as server:
        yield server


async def write_until_stored(sink, turn, refused):
    """As the committer does it: the batch stays in hand until it is stored."""
    batch = [product(f"T{turn}.{n}", turn=turn) for n in range(SIZE)]
    while True:
        try:
            return await sink.write(batch, [visit(turn + 1)])
        except SinkUnreachable as error:
            assert error.hint
            refused.append(error.what)
            await asyncio.sleep(0.05)


async def turns_in(url):
    rows = await ask(url, "SELECT (data->>'turn')::int, count(*) FROM {s}.records GROUP BY 1 ORDER BY 1")
    return dict(rows)


@pytest.mark.parametrize("build", BUILDS)
async def test_stop_immediate_in_the_middle_of_a_batch_loses_nothing(build, mortal):
    with nullcontext(mortal) if build == DEBIAN else postgres(build, QUICK) as server:
        await crash_in_the_middle(server, fresh(server.url))


async def crash_in_the_middle(server, url):
    sink = PostgresSink(url)
    refused: list[str] = []
    for turn in range(3):
        await write_until_stored(sink, turn, refused)
    # From here on a batch takes so long that the server goes down in the middle of it.
    await ask(
        url,
        "CREATE FUNCTION {s}.slow() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$;"
        " CREATE TRIGGER slow AFTER INSERT ON {s}.records FOR EACH STATEMENT EXECUTE FUNCTION {s}.slow()",
    )
    writing = asyncio.create_task(write_until_stored(sink, 3, refused))
    await asyncio.sleep(0.1)
    await asyncio.to_thread(server.stop, "immediate")
    while not refused and not writing.done():  # noqa: ASYNC110 - the writer tells nobody
        await asyncio.sleep(0.01)
    await asyncio.to_thread(server.start)
    # What was acknowledged is there; what was not is there whole or not at all.
    assert set((await turns_in(url)).values()) == {SIZE}
    await writing
    await write_until_stored(sink, 4, refused)

    assert await turns_in(url) == dict.fromkeys(range(5), SIZE)
    assert [line.token for line in await sink.story([7])] == [1, 2, 3, 4, 5]
    await sink.close()


async def test_a_server_that_was_restarted_between_two_batches_is_not_even_noticed(mortal):
    url = fresh(mortal.url)
    sink = PostgresSink(url)
    await sink.write([product("T1")])
    await asyncio.to_thread(mortal.stop, "fast")
    await asyncio.to_thread(mortal.start)
    await sink.write([product("T2")])

    assert len(await ask(url, "SELECT key FROM {s}.records")) == 2
    await sink.close()


async def test_more_writers_than_connections_wait_for_each_other_instead_of_failing(mortal):
    url = fresh(mortal.url, patience="60s")

    async def work(number):
        sink = PostgresSink(url)
        await sink.open()
        for turn in range(3):
            await sink.write([product(f"T{number}.{turn}")])
        await sink.close()

    await asyncio.gather(*(work(number) for number in range(20)))

    assert len(await ask(url, "SELECT key FROM {s}.records")) == 60


async def test_a_full_server_is_given_up_after_a_while(mortal):
    url = fresh(mortal.url, patience="1s")
    holders = [PostgresSink(url) for _ in range(12)]
    for holder in holders:
        await holder.open()
    refused = PostgresSink(url)
    with pytest.raises(SinkUnreachable) as full:
        await refused.open()
    assert "PostgreSQL has no free connection (max_connections): sorry, too many clients" in full.value.what
    assert "raise max_connections" in full.value.hint
    # The outage was waited for: a dashboard with fifty jobs does not wait fifty times.
    with pytest.raises(SinkUnreachable):
        async with asyncio.timeout(0.5):
            await PostgresSink(url).open()
    for holder in holders:
        await holder.close()


async def test_a_pooler_before_a_full_server_is_given_up_after_a_while(monkeypatch):
    monkeypatch.setattr(pool, "_CONNECT_WITHIN", 2.0)
    with postgres(DEBIAN, QUICK) as server, pgbouncer(server) as url:
        # It knows the server, and has no connection to it.
        await ask(url, "SELECT 1")
        first = await asyncpg.connect(server.url)
        await first.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        holders = [first, *[await asyncpg.connect(server.url) for _ in range(11)]]
        database = Database(frontier_url.parse(url))
        with pytest.raises(FrontierUnreachable, match="timeout") as slow:
            async with asyncio.timeout(6.0):
                await database.exists()
        assert "has the server a free connection for it?" in slow.value.hint
        await database.close()
        for holder in holders:
            await holder.close()


@pytest.mark.parametrize("dropped", ["TABLE {s}.records", "TABLE {s}.visits", "SCHEMA {s}"])
async def test_tables_that_are_dropped_in_the_middle_are_gone_and_not_made_anew(anywhere, dropped):
    sink = PostgresSink(anywhere)
    await sink.write([product("T1")], [visit(1)])
    await ask(anywhere, f"DROP {dropped} CASCADE")
    for _ in range(2):
        with pytest.raises(SinkGone, match=r"do not exist(.|\n)*--fresh") as gone:
            await sink.write([product("T2")], [visit(2)])
        assert sink.address.public in gone.value.what
    await sink.close()


async def test_a_connection_that_the_administrator_ends_costs_nothing(anywhere):
    sink = PostgresSink(anywhere)
    await sink.open()
    await ask(
        anywhere,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'trotline' AND pid <> pg_backend_pid()",
    )
    await write_until_stored(sink, 0, [])

    assert await turns_in(anywhere) == {0: SIZE}
    await sink.close()


async def test_a_read_only_server_is_said_so(anywhere):
    sink = PostgresSink(anywhere)
    await sink.open()
    await sink.close()
    await ask(anywhere, "ALTER ROLE trotline SET default_transaction_read_only = on")
    try:
        with pytest.raises(SinkUnreachable, match="read-only") as told:
            await sink.write([product()])
    finally:
        # A setting of the role binds us too.
        await ask(anywhere, "SET TRANSACTION READ WRITE; ALTER ROLE trotline RESET default_transaction_read_only")
    assert "primary" in told.value.hint
    await sink.close()


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (lambda url: url.replace("kept-by-the-tests", "no-such-password"), "authentication failed"),
        (lambda url: url.replace("/postgres?", "/no_such_database?"), "the database does not exist"),
        (lambda url: "postgresql://trotline:no-such-password@127.0.0.1:9/x", "connection refused"),
        (lambda url: "postgresql://trotline:no-such-password@no-such-host.invalid/x", "unknown host name"),
    ],
    ids=["password", "database", "port", "host"],
)
async def test_a_wrong_url_says_what_is_wrong_and_no_secret(anywhere, wrong, what, caplog):
    with caplog.at_level(logging.DEBUG), pytest.raises(SinkUnreachable, match=what) as told:
        await PostgresSink(wrong(anywhere)).open()

    assert told.value.hint
    said = str(told.value) + caplog.text
    assert "no-such-password" not in said
    assert "kept-by-the-tests" not in said


async def test_a_server_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr("trotline.adapters.postgres.pool._CONNECT_WITHIN", 0.2)
    [silent] = listen(["127.0.0.1"])
    with silent, pytest.raises(SinkUnreachable, match="timeout"):
        await PostgresSink(f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/x").open()
