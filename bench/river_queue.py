"""The peer of the PostgreSQL frontier: a job queue with the tables and statements of River 0.43 (Go), in batches.

What was taken over, from its seven migrations and the statements of its pgx driver:

- `river_job` with all its columns, types and checks; its indexes: primary key, kind, (state, finalized_at), the one
  that jobs are fetched by, GIN on args and on metadata, and the partial unique one on the jobs' unique key.
- Insertion of many jobs, which returns the rows; with a unique key (`unique`), as its users get rid of duplicates.
- Fetching: rows locked with SKIP LOCKED, then all of them updated and returned with all columns.
- Completion of many jobs, as its batch completer does it: a statement for all outcomes, which returns the rows.
- Prepared statements, as pgx has them, and the server's own settings.

Left out: notifications, the leader's election and its services, of which the one that deletes old jobs would cost most.
"""

import time
from hashlib import sha256
from typing import Any

import asyncpg
import msgspec

from bench.frontier_load import BATCH, Cost, Meter, batches
from trotline.model.task import Task

_TABLES = """
CREATE TYPE river_job_state AS ENUM
    ('available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled');
CREATE TABLE river_job (
    id bigserial PRIMARY KEY,
    state river_job_state NOT NULL DEFAULT 'available',
    attempt smallint NOT NULL DEFAULT 0,
    max_attempts smallint NOT NULL DEFAULT 25,
    attempted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    finalized_at timestamptz,
    scheduled_at timestamptz NOT NULL DEFAULT now(),
    priority smallint NOT NULL DEFAULT 1,
    args jsonb NOT NULL,
    attempted_by text[],
    errors jsonb[],
    kind text NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    queue text NOT NULL DEFAULT 'default',
    tags varchar(255)[] NOT NULL DEFAULT '{}',
    unique_key bytea,
    unique_states bit(8),
    CHECK ((finalized_at IS NULL) = (state NOT IN ('cancelled', 'completed', 'discarded'))),
    CHECK (max_attempts > 0),
    CHECK (priority >= 1 AND priority <= 4),
    CHECK (char_length(queue) > 0 AND char_length(queue) < 128),
    CHECK (char_length(kind) > 0 AND char_length(kind) < 128)
);
CREATE FUNCTION river_job_state_in_bitmask(bitmask bit(8), state river_job_state) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE state
        WHEN 'available' THEN get_bit(bitmask, 7) WHEN 'cancelled' THEN get_bit(bitmask, 6)
        WHEN 'completed' THEN get_bit(bitmask, 5) WHEN 'discarded' THEN get_bit(bitmask, 4)
        WHEN 'pending' THEN get_bit(bitmask, 3) WHEN 'retryable' THEN get_bit(bitmask, 2)
        WHEN 'running' THEN get_bit(bitmask, 1) WHEN 'scheduled' THEN get_bit(bitmask, 0) ELSE 0 END = 1
$$;
CREATE INDEX river_job_kind ON river_job (kind);
CREATE INDEX river_job_state_and_finalized_at_index ON river_job (state, finalized_at) WHERE finalized_at IS NOT NULL;
CREATE INDEX river_job_prioritized_fetching_index ON river_job (state, queue, priority, scheduled_at, id);
CREATE INDEX river_job_args_index ON river_job USING gin (args);
CREATE INDEX river_job_metadata_index ON river_job USING gin (metadata);
CREATE UNIQUE INDEX river_job_unique_idx ON river_job (unique_key) WHERE unique_key IS NOT NULL
    AND unique_states IS NOT NULL AND river_job_state_in_bitmask(unique_states, state);
"""
_INSERT = """
WITH given AS (
    SELECT * FROM unnest($1::jsonb[], $2::smallint[], $3::bytea[], $4::integer[])
        AS g (args, priority, unique_key, unique_states)
)
INSERT INTO river_job (args, created_at, kind, max_attempts, metadata, priority, queue, scheduled_at, state, tags,
    unique_key, unique_states)
SELECT args, now(), 'visit', 25, '{}'::jsonb, priority, 'default', now(), 'available'::river_job_state,
    '{}'::varchar(255)[], nullif(unique_key, ''), nullif(unique_states, 0)::bit(8)
FROM given
ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL AND unique_states IS NOT NULL
    AND river_job_state_in_bitmask(unique_states, state)
DO UPDATE SET kind = excluded.kind
RETURNING river_job.*, (xmax <> 0) AS duplicate
"""
_FETCH = """
WITH locked AS (
    SELECT * FROM river_job WHERE state = 'available' AND queue = $1::text AND scheduled_at <= now()
    ORDER BY priority, scheduled_at, id LIMIT $2::integer FOR UPDATE SKIP LOCKED
)
UPDATE river_job SET state = 'running', attempt = river_job.attempt + 1, attempted_at = now(),
    attempted_by = array_append(CASE WHEN array_length(river_job.attempted_by, 1) >= 100
        THEN river_job.attempted_by[array_length(river_job.attempted_by, 1) + 2 - 100:] ELSE river_job.attempted_by END,
        $3::text)
FROM locked WHERE river_job.id = locked.id RETURNING river_job.*
"""
_ENDED = "(given.state IN ('retryable', 'scheduled') AND river_job.metadata ? 'cancel_attempted_at')"
_COMPLETE = f"""
WITH given AS (
    SELECT id, finalized_at, state::river_job_state AS state, false AS counted, 0 AS attempt, false AS failed,
        NULL::jsonb AS error, false AS merged, NULL::jsonb AS news, false AS moved, NULL::timestamptz AS scheduled_at
    FROM unnest($1::bigint[], $2::timestamptz[], $3::text[]) AS g (id, finalized_at, state)
),
changed AS (
    UPDATE river_job SET
        attempt = CASE WHEN river_job.state = 'running' AND NOT {_ENDED} AND given.counted THEN given.attempt
            ELSE river_job.attempt END,
        errors = CASE WHEN river_job.state = 'running' AND given.failed THEN array_append(river_job.errors, given.error)
            ELSE river_job.errors END,
        finalized_at = CASE WHEN river_job.state = 'running' AND {_ENDED} THEN now()
            WHEN river_job.state = 'running' THEN given.finalized_at ELSE river_job.finalized_at END,
        metadata = CASE WHEN given.merged THEN river_job.metadata || given.news ELSE river_job.metadata END,
        scheduled_at = CASE WHEN river_job.state = 'running' AND NOT {_ENDED} AND given.moved THEN given.scheduled_at
            ELSE river_job.scheduled_at END,
        state = CASE WHEN river_job.state = 'running' AND {_ENDED} THEN 'cancelled'::river_job_state
            WHEN river_job.state = 'running' THEN given.state ELSE river_job.state END
    FROM given WHERE river_job.id = given.id AND (river_job.state = 'running' OR given.merged)
    RETURNING river_job.*
)
SELECT river_job.* FROM river_job JOIN given ON river_job.id = given.id
WHERE NOT EXISTS (SELECT 1 FROM changed WHERE changed.id = river_job.id)
UNION ALL SELECT * FROM changed ORDER BY id
"""
_ALL_BUT_CANCELLED_AND_DISCARDED = 0b11110101
"""The states in which a job's unique key counts, by default."""
_UNLIKE = (b"", 0)


async def river_cost(meter: Meter, url: str, count: int, *, unique: bool) -> Cost:
    db = await asyncpg.connect(url)
    await db.execute(_TABLES)
    ready = [_columns(batch, unique) for batch in batches(count, 1000, time.time())]
    empty, started = meter.size(), meter.cpu()
    for columns in ready:
        await db.fetch(_INSERT, *columns)
    put, full = meter.cpu() - started, meter.size()
    leasing, settling = await _work(db, meter, count)
    left = meter.size()
    await db.close()
    micros = 1e6 / count
    return Cost(
        count, 0, 1, put * micros, leasing * micros, settling * micros, (full - empty) / count, (left - empty) / count
    )


def _columns(batch: list[Task], unique: bool) -> list[list[Any]]:
    args = [
        msgspec.json.encode({"url": task.url, "route": task.route, "lane": task.lane, "site": task.site}).decode()
        for task in batch
    ]
    keys = [(sha256(text.encode()).digest(), _ALL_BUT_CANCELLED_AND_DISCARDED) if unique else _UNLIKE for text in args]
    priorities = [2 + (task.priority > 0) - (task.priority < 0) for task in batch]
    return [args, priorities, [key for key, _ in keys], [states for _, states in keys]]


async def _work(db: Any, meter: Meter, count: int) -> tuple[float, float]:
    """CPU of fetching and of completing. The meter is read seldom."""
    leasing = settling = 0.0
    done = 0
    while True:
        begun = meter.cpu()
        held = [rows for _ in range(16) if (rows := await db.fetch(_FETCH, "default", BATCH, "client"))]
        middle = meter.cpu()
        for rows in held:
            done += len(await _complete(db, [row["id"] for row in rows], [row["attempted_at"] for row in rows]))
        leasing, settling = leasing + middle - begun, settling + meter.cpu() - middle
        if not held:
            break
    assert done == count, f"{count} went in, {done} came out"
    return leasing, settling


async def _complete(db: Any, ids: list[int], times: list[Any]) -> list[Any]:
    return list(await db.fetch(_COMPLETE, ids, times, ["completed"] * len(ids)))
