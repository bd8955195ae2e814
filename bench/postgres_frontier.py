"""What the PostgreSQL frontier costs its server, per task: CPU of all its processes, and bytes on the disk.

    python -m bench.postgres_frontier [--tasks N] [--lanes M] [--workers W] [--build debian|wheel] [--pgbouncer]
                                      [--statements]

Every put and settle is on the disk before it is answered. Beside it, with the same batches, the SQL of a plain job
queue in the manner of River: no lanes, no pace, no duplicates. `--statements`: where the server's time goes.
"""

import argparse
import asyncio
import os
import time
from contextlib import ExitStack
from pathlib import Path

import asyncpg

from bench.frontier_load import BATCH, HEADING, RULE, Cost, batches, line, measure, rules
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import parse
from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.model import task_json
from trotline.testing.clients import postgres_client
from trotline.testing.postgres_server import BUILDS, DEBIAN, WHEEL, PostgresServer, pgbouncer, postgres

GOAL = 143.0
"""Microseconds of the server's CPU per task."""
SIZES = ((100_000, 1, 1), (100_000, 1_000, 1), (100_000, 10_000, 1))
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


_PLAIN = """
CREATE TABLE plain_job (
    id bigserial PRIMARY KEY, state text NOT NULL DEFAULT 'available', attempt smallint NOT NULL DEFAULT 0,
    priority smallint NOT NULL, queue text NOT NULL DEFAULT 'default', created_at timestamptz NOT NULL DEFAULT now(),
    scheduled_at timestamptz NOT NULL DEFAULT now(), attempted_at timestamptz, attempted_by text[],
    finalized_at timestamptz, args bytea NOT NULL
);
CREATE INDEX ON plain_job (state, queue, priority, scheduled_at, id);
CREATE INDEX ON plain_job (state, finalized_at) WHERE finalized_at IS NOT NULL
"""
_PUT = "INSERT INTO plain_job (priority, args) SELECT * FROM unnest($1::smallint[], $2::bytea[])"
_FETCH = """
WITH locked AS MATERIALIZED (
    SELECT id FROM plain_job WHERE state = 'available' AND queue = 'default' AND scheduled_at <= now()
    ORDER BY priority, scheduled_at, id LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE plain_job SET state = 'running', attempt = attempt + 1, attempted_at = now(), attempted_by = array['w']
FROM locked WHERE plain_job.id = locked.id RETURNING plain_job.id, args
"""
_COMPLETE = "UPDATE plain_job SET state = 'completed', finalized_at = now() WHERE id = ANY($1::bigint[])"


async def plain_cost(server: PostgresServer, count: int) -> Cost:
    """A job queue as River's SQL has it, with the same batches."""
    meter, db = ServerMeter(server), await asyncpg.connect(server.url)
    await db.execute(_PLAIN)
    ready = [
        ([task.priority for task in batch], [task_json.encode(task) for task in batch])
        for batch in batches(count, 1, time.time())
    ]
    empty, started = meter.size(), meter.cpu()
    for priorities, bodies in ready:
        await db.execute(_PUT, priorities, bodies)
    put, full = meter.cpu() - started, meter.size()
    leasing = settling = 0.0
    done = 0
    while True:
        begun = meter.cpu()
        held = [rows for _ in range(16) if (rows := await db.fetch(_FETCH, BATCH))]
        middle = meter.cpu()
        for rows in held:
            await db.execute(_COMPLETE, [row[0] for row in rows])
        leasing, settling = leasing + middle - begun, settling + meter.cpu() - middle
        done += sum(map(len, held))
        if not held:
            break
    assert done == count, f"{count} went in, {done} came out"
    left = meter.size()
    await db.close()
    micros = 1e6 / count
    return Cost(
        count, 0, 1, put * micros, leasing * micros, settling * micros, (full - empty) / count, (left - empty) / count
    )


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
    parser.add_argument("--build", choices=BUILDS, default=WHEEL)
    parser.add_argument("--pgbouncer", action="store_true")
    parser.add_argument("--statements", action="store_true")
    given = parser.parse_args()
    sizes = SIZES
    if given.tasks or given.lanes or given.workers:
        sizes = ((given.tasks or 100_000, given.lanes or 1_000, given.workers or 1),)
    settings = {"shared_buffers": "256MB", "max_wal_size": "4GB"}
    if given.statements:
        settings |= {"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track_planning": "on"}
    with ExitStack() as stack:
        server = stack.enter_context(postgres(DEBIAN if given.pgbouncer else given.build, settings))
        url = stack.enter_context(pgbouncer(server)) if given.pgbouncer else server.url
        print(HEADING)
        print(RULE)
        print(line(asyncio.run(plain_cost(server, sizes[0][0]))), "plain queue", flush=True)
        if given.statements:
            asyncio.run(_execute(server.url, "CREATE EXTENSION pg_stat_statements"))
        for size in sizes:
            print(line(asyncio.run(cost(server, url, *size))), flush=True)
        if given.statements:
            asyncio.run(statements(server.url))


async def _execute(url: str, text: str) -> None:
    db = await asyncpg.connect(url)
    await db.execute(text)
    await db.close()


if __name__ == "__main__":
    main()
