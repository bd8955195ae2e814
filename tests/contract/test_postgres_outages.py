"""Longer stories of trouble: an answer that never comes, a full disk, a failover, a lock that somebody holds."""

import asyncio
import os
import subprocess
from contextlib import asynccontextmanager, contextmanager
from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.contract.postgres_servers import ask, fresh
from tests.contract.test_postgres_faults import QUICK, SIZE, turns_in, write_until_stored
from tests.contract.test_postgres_ledger import visit

from trotline.adapters.postgres.sink import PostgresSink
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.commands.run_report import Reporter
from trotline.errors import SinkUnreachable
from trotline.model.job import LaneRules
from trotline.testing.clients import sqlite_client
from trotline.testing.postgres_server import DEBIAN, PASSWORD, own, postgres
from trotline.testing.sink_contract import product


@asynccontextmanager
async def cutting_proxy(port, commits):
    """A way to the server that breaks when the given COMMITs (counted from 1) have been sent: they reach the server,
    its answer reaches nobody."""
    count = 0

    async def pump(reader, writer, other=None):
        nonlocal count
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
            if other is not None and b"COMMIT\0" in data:
                count += 1
                if count in commits:
                    other.transport.abort()
        writer.close()

    async def serve(reader, writer):
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(pump(reader, up_writer, writer), pump(up_reader, writer))
        except OSError:
            pass  # Cut, as it should be.
        finally:
            up_writer.close()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def test_a_commit_whose_answer_is_lost_is_repeated_without_harm(postgres_servers):
    direct = fresh(postgres_servers.url(DEBIAN))
    opened = PostgresSink(direct)
    await opened.open()
    await opened.close()
    port = urlsplit(direct).port
    # The first ones belong to the opening: version, partitions, fields.
    async with cutting_proxy(port, commits={4, 6, 8}) as way:
        sink = PostgresSink(direct.replace(f":{port}/", f":{way}/"))
        refused: list[str] = []
        for turn in range(6):
            await write_until_stored(sink, turn, refused)
        await sink.close()

    assert len(refused) >= 2
    assert await turns_in(direct) == dict.fromkeys(range(6), SIZE)
    assert await ask(direct, "SELECT count(*) FROM {s}.history") == [(0,)]
    assert await ask(direct, "SELECT count(*) FROM {s}.visits") == [(6,)]


@contextmanager
def small_disk(folder, size):
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    if done.returncode:
        pytest.skip(f"no small disk here: {done.stderr.decode(errors='replace').strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


async def test_a_full_disk_is_waited_for_and_nothing_is_lost():
    with postgres(DEBIAN, QUICK) as server, small_disk(server.folder / "small", "12m") as disk:
        space = disk / "space"
        space.mkdir()
        own(disk)
        own(space)
        url = fresh(server.url)
        sink = PostgresSink(url)
        await sink.open()
        owner = await asyncpg.connect(server.url)
        await owner.execute(f"CREATE TABLESPACE small LOCATION '{space}'")
        await owner.execute(f"ALTER TABLE {sink.address.quoted}.records SET TABLESPACE small")
        await owner.close()
        (disk / "somebody's film").write_bytes(b"x" * (9 * 1024 * 1024))

        refused: list[str] = []
        text = "".join(chr(97 + n * 7 % 26) for n in range(1000))
        acknowledged = 0
        with pytest.raises(SinkUnreachable, match="disk is full"):
            for turn in range(200):
                await sink.write([product(f"T{turn}.{n}", turn=turn, text=text) for n in range(SIZE)])
                acknowledged = turn + 1
        assert await turns_in(url) == dict.fromkeys(range(acknowledged), SIZE)

        (disk / "somebody's film").unlink()
        await write_until_stored(sink, acknowledged, refused)
        assert await turns_in(url) == dict.fromkeys(range(acknowledged + 1), SIZE)
        await sink.close()


async def test_after_a_failover_writers_find_the_new_primary_and_nothing_acknowledged_is_lost():
    with postgres(DEBIAN, QUICK) as old, postgres(DEBIAN, QUICK, standby_of=old) as new:
        admin = await asyncpg.connect(old.url)
        await admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        await admin.execute("SELECT pg_reload_conf()")
        await admin.close()
        both = f"127.0.0.1:{old.port},127.0.0.1:{new.port}"
        url = fresh(f"postgresql://trotline:{PASSWORD}@{both}/postgres", target_session_attrs="read-write")
        sink = PostgresSink(url)
        refused: list[str] = []
        for turn in range(3):
            await write_until_stored(sink, turn, refused)

        await asyncio.to_thread(old.stop, "immediate")
        with pytest.raises(SinkUnreachable):
            await sink.write([product("too early")])
        admin = await asyncpg.connect(new.url)
        assert await admin.fetchval("SELECT pg_promote()")
        await admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
        await admin.execute("SELECT pg_reload_conf()")
        await admin.close()

        for turn in range(3, 5):
            await write_until_stored(sink, turn, refused)
        assert await turns_in(url) == dict.fromkeys(range(5), SIZE)
        await sink.close()


async def test_a_lock_that_somebody_holds_is_given_up_in_time_and_the_batch_is_stored_later(postgres_servers):
    url = fresh(postgres_servers.url(DEBIAN), timeout="1s")
    sink = PostgresSink(url)
    await sink.open()
    holder = await asyncpg.connect(postgres_servers.url(DEBIAN))
    await holder.execute(f"BEGIN; ALTER TABLE {sink.address.quoted}.records ADD COLUMN mine text")

    with pytest.raises(SinkUnreachable, match=r"took too long|holds a lock"):
        await sink.write([product()], [visit()])

    await holder.execute("COMMIT")
    await holder.close()
    await sink.write([product()], [visit()])
    assert len(await ask(url, "SELECT key FROM {s}.records")) == 1
    await sink.close()


async def test_a_worker_counts_again_when_the_server_is_back_and_tells_no_old_number_meanwhile(tmp_path):
    place = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(place)
    job = await jobs.start("shop", LaneRules())
    frontier = sqlite_client(place, job)
    with postgres(DEBIAN, QUICK) as server:
        sink = PostgresSink(fresh(server.url), job=job.id, started_at=job.started_at)
        reporter = Reporter(frontier.opened, sink=sink)

        async def counted(wanted):
            async with asyncio.timeout(40):
                while True:
                    stored = (await reporter.report()).stored
                    if (stored and stored.new) == wanted:
                        return
                    await asyncio.sleep(0.05)

        refused: list[str] = []
        await write_until_stored(sink, 0, refused)
        await counted(SIZE)
        await asyncio.to_thread(server.stop, "immediate")
        await counted(None)
        await asyncio.to_thread(server.start)
        await write_until_stored(sink, 1, refused)
        await counted(2 * SIZE)
        await sink.close()
    await frontier.close()
    await jobs.close()
