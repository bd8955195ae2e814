"""How busy real servers are, as the advice asks them."""

import asyncio
import os
import time
from pathlib import Path

import asyncpg
import pytest
from tests.contract.postgres_servers import fresh
from tests.contract.redis_servers import server

from trotline.config import backends
from trotline.model.server_load import ServerUse, use
from trotline.testing.postgres_server import DEBIAN
from trotline.testing.redis_server import BUILDS

SPIN = "local n = 0 for i = 1, 20000000 do n = n + i end return n"


def processor_time(pid: int) -> float:
    """Seconds, as the kernel counts them."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


async def load_of(url: str) -> float | None:
    """Over half a second, without anybody else."""
    before = await backends.frontier_load(url)
    await asyncio.sleep(0.5)
    now = await backends.frontier_load(url)
    assert now is not None
    return use("frontier", before, now).share


@pytest.mark.parametrize("build", BUILDS)
async def test_a_redis_that_computes_is_busier_than_one_that_waits(build: str) -> None:
    running = server(build)
    idle = await load_of(running.url)

    async def spin() -> float | None:
        before = await backends.frontier_load(running.url)
        for _ in range(3):
            await asyncio.to_thread(running.command, "EVAL", SPIN, "0")
        now = await backends.frontier_load(running.url)
        assert now is not None
        return use("frontier", before, now).share

    began, used = time.monotonic(), processor_time(running.pid)
    busy = await spin()
    true = (processor_time(running.pid) - used) / (time.monotonic() - began)

    assert idle is not None and busy is not None
    # On a machine that is shared with others it may get a small part of the time. Valkey counts its time, not that of
    # the processor.
    assert busy > 0.7 * true - 0.05
    assert idle < 0.3 and busy > 2 * idle


async def test_redis_says_how_full_its_memory_is_only_if_it_has_a_limit() -> None:
    running = server(BUILDS[0])
    without = await backends.frontier_load(running.url)
    running.command("CONFIG", "SET", "maxmemory", str(1 << 30))
    try:
        limited = await backends.frontier_load(running.url)
    finally:
        running.command("CONFIG", "SET", "maxmemory", "0")

    assert without is not None and without.memory is None
    assert limited is not None and limited.memory is not None and 0 < limited.memory < 1


async def test_postgres_sessions_that_wait_for_locks_are_seen(postgres_servers) -> None:
    url = postgres_servers.url(DEBIAN)
    quiet = await backends.sink_load(fresh(url))
    sessions = [await asyncpg.connect(url) for _ in range(3)]
    held = sessions[0].transaction()
    await held.start()
    await sessions[0].execute("SELECT pg_advisory_xact_lock(4711)")
    waiting = [asyncio.create_task(each.execute("SELECT pg_advisory_xact_lock(4711)")) for each in sessions[1:]]
    try:
        await asyncio.sleep(0.3)
        busy = await backends.sink_load(fresh(url))
    finally:
        await held.rollback()
        await asyncio.gather(*waiting)
        for each in sessions:
            await each.close()

    assert quiet is not None and quiet.blocked == 0.0
    assert busy is not None and busy.blocked == pytest.approx(2.0)
    assert use("database", None, busy).share == 1.0
    assert use("database", None, quiet).share is None


async def test_files_have_one_writer_and_others_do_not_say(tmp_path: Path) -> None:
    load = await backends.sink_load(f"sqlite:{tmp_path}/rows.db")

    assert load is not None
    assert use("database", None, load) == ServerUse(role="database", kind="sqlite", serial=True)
    assert await backends.sink_load(f"jsonl:{tmp_path}/rows.jsonl") is None
