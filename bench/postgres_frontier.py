"""What the PostgreSQL frontier costs its server, per task: CPU of all its processes, and bytes on the disk.

    python -m bench.postgres_frontier [--tasks N] [--lanes M] [--workers W] [--rounds R] [--build debian|wheel]
                                      [--pgbouncer] [--statements] [--no-peers]

Every put and settle is on the disk before it is answered. In turn with it, each on a server of its own and with the
same batches, two job queues without lanes and pace: the tables and statements of River (`river_queue.py`), and
procrastinate by its API. `--statements`: where the server's time goes.
"""

import argparse
import asyncio
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import asyncpg

from bench.contenders import HERE, WORK, installed
from bench.frontier_load import HEADING, RULE, Cost, batches, line, measure, rules
from bench.river_queue import river_cost
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import parse
from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.testing.clients import postgres_client
from trotline.testing.postgres_server import BUILDS, DEBIAN, WHEEL, PostgresServer, pgbouncer, postgres

GOAL, OF_RIVER = 143.0, 1.2
"""Microseconds of the server's CPU per task, and times what River with unique jobs takes, in 1,000 lanes."""
_COMPARED = 1_000
_UNIQUE = "River, unique jobs"
SIZES = ((100_000, 1, 1), (100_000, 1_000, 1), (100_000, 10_000, 1))
SLOW_PEER = 5_000
"""Tasks of procrastinate: a job per call takes its time."""
_TICKS = os.sysconf("SC_CLK_TCK")


class ServerMeter:
    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    def cpu(self) -> float:
        """Seconds of the server and of all its processes, also of those that ended."""
        running, ended = 0, 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
                if self._server.pid in (int(path.parent.name), int(fields[1])):
                    running += int((path.parent / "schedstat").read_text().split()[0])
            except OSError:
                # It ended meanwhile: its parent counts it.
                continue
            if int(path.parent.name) == self._server.pid:
                ended = int(fields[13]) + int(fields[14])
        return running / 1e9 + ended / _TICKS

    def size(self) -> int:
        base = self._server.folder / "data" / "base"
        return sum(file.stat().st_size for file in base.rglob("*") if file.is_file())


async def cost(server: PostgresServer, url: str, count: int, lanes: int, workers: int) -> Cost:
    address = parse(f"{url}?schema=bench_{time.time_ns()}")
    jobs = PostgresJobs(Database(address))
    job = await jobs.start("bench", rules(lanes))
    await jobs.close()
    frontier = await postgres_client(Database(address), job)
    ready = list(batches(count, lanes, job.started_at))
    found = await measure(frontier, ServerMeter(server), ready, lanes, workers)
    await frontier.close()
    return found


def procrastinate_cost(server: PostgresServer, count: int) -> Cost:
    """procrastinate, by its API; leasing and settling are one figure."""
    meter = ServerMeter(server)
    program = [str(WORK / "venvs" / "procrastinate" / "bin" / "python"), str(HERE / "peers" / "procrastinate_tasks.py")]
    environment = {**os.environ, "BENCH_POSTGRES": server.url}
    empty, started = meter.size(), meter.cpu()
    subprocess.run([*program, "put", str(count)], check=True, env=environment)
    put, full, begun = meter.cpu() - started, meter.size(), meter.cpu()
    subprocess.run([*program, "work"], check=True, env=environment, stderr=subprocess.DEVNULL)
    worked, left = meter.cpu() - begun, meter.size()
    done = asyncio.run(_value(server.url, "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'"))
    assert done == count, f"{count} went in, {done} came out"
    micros = 1e6 / count
    return Cost(count, 0, 1, put * micros, worked * micros, 0.0, (full - empty) / count, (left - empty) / count)


async def statements(url: str) -> None:
    """The statements that cost most."""
    db = await asyncpg.connect(url)
    rows = await db.fetch(
        "SELECT calls, total_exec_time + total_plan_time AS ms, rows, query FROM pg_stat_statements ORDER BY 2 DESC"
        " LIMIT 25"
    )
    await db.close()
    print("\n    calls        ms   us/call     rows  statement")
    for calls, ms, count, query in rows:
        print(f"{calls:>9,} {ms:>9,.0f} {1000 * ms / calls:>9,.0f} {count:>8,}  {' '.join(query.split())[:110]}")


def main() -> None:
    parser = argparse.ArgumentParser(description="What the PostgreSQL frontier costs its server, per task.")
    parser.add_argument("--tasks", type=int)
    parser.add_argument("--lanes", type=int)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--build", choices=BUILDS, default=WHEEL)
    parser.add_argument("--pgbouncer", action="store_true")
    parser.add_argument("--statements", action="store_true")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    given = parser.parse_args()
    sizes = SIZES
    if given.tasks or given.lanes or given.workers:
        sizes = ((given.tasks or 100_000, given.lanes or 1_000, given.workers or 1),)
    settings = {"shared_buffers": "256MB", "max_wal_size": "4GB"}
    if given.statements:
        settings |= {"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track_planning": "on"}
    build = DEBIAN if given.pgbouncer else given.build
    print(HEADING)
    print(RULE)
    ours: list[float] = []
    river: list[float] = []
    for _ in range(given.rounds):
        for size in sizes:
            with ExitStack() as stack:
                server = stack.enter_context(postgres(build, settings))
                url = stack.enter_context(pgbouncer(server)) if given.pgbouncer else server.url
                if given.statements:
                    asyncio.run(_value(server.url, "CREATE EXTENSION pg_stat_statements"))
                print(line(found := asyncio.run(cost(server, url, *size))), flush=True)
                ours += [found.total] if found.lanes == _COMPARED else []
                if given.statements:
                    asyncio.run(statements(server.url))
        for name, peer in _peers(sizes[0][0]) if given.peers else ():
            with postgres(build, settings) as server:
                print(line(found := peer(server)), name, flush=True)
                river += [found.total] if name == _UNIQUE else []
    if ours and river:
        ratio = median(ours) / median(river)
        print(f"{median(ours):.1f} us (goal: {GOAL:.0f}), x {ratio:.2f} of {_UNIQUE} (goal: {OF_RIVER}), by medians")


def _peers(count: int) -> list[tuple[str, Callable[[PostgresServer], Cost]]]:
    """Each on a server of its own, like the frontier."""

    def river(server: PostgresServer, unique: bool) -> Cost:
        return asyncio.run(river_cost(ServerMeter(server), server.url, count, unique=unique))

    peers: list[tuple[str, Callable[[PostgresServer], Cost]]] = [
        ("River", partial(river, unique=False)),
        (_UNIQUE, partial(river, unique=True)),
    ]
    if installed("requirements-procrastinate.txt"):
        peers.append(("procrastinate", lambda server: procrastinate_cost(server, min(count, SLOW_PEER))))
    return peers


async def _value(url: str, text: str) -> Any:
    db = await asyncpg.connect(url)
    found = await db.fetchval(text)
    await db.close()
    return found


if __name__ == "__main__":
    main()
