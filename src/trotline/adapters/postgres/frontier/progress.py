"""The counters of a job, and its workers, as operators see them."""

from collections.abc import Sequence

import msgspec

from trotline.adapters.postgres.frontier.errors import gone
from trotline.adapters.postgres.frontier.job_control import STATES
from trotline.adapters.postgres.pool import Connection
from trotline.model.job import Budget, Progress, WorkerView
from trotline.model.time import Moment
from trotline.ports.console import MOST_CHAINS
from trotline.rules import redaction
from trotline.rules.worker_info import read_info, shown_name, with_own_counts

_PROGRESS = """
SELECT c.waiting, c.leased, c.done, c.dead, j.started_at, j.sealed, j.finished_at, j.paused, j.budget,
    (SELECT count(*) FROM late_{n} WHERE due > $2) AS delayed,
    greatest((SELECT max(due) FROM late_{n}) - $2, 0) AS due_in,
    ARRAY(SELECT name FROM tally WHERE job = {n} GROUP BY name ORDER BY name) AS names,
    ARRAY(SELECT sum(n)::bigint FROM tally WHERE job = {n} GROUP BY name ORDER BY name) AS counts,
    ARRAY(SELECT name FROM example WHERE job = {n} ORDER BY name) AS shown,
    ARRAY(SELECT url FROM example WHERE job = {n} ORDER BY name) AS urls
FROM job j, (
    SELECT coalesce(sum(waiting), 0)::bigint AS waiting, coalesce(sum(leased), 0)::bigint AS leased,
        coalesce(sum(done), 0)::bigint AS done, coalesce(sum(dead), 0)::bigint AS dead
    FROM counter WHERE job = $1
) c WHERE j.id = $1
"""
_WORKERS = """
SELECT w.id, w.beat_at, w.done, w.failed, w.about, (SELECT count(*) FROM held h WHERE h.job = $1 AND h.worker = w.id)
FROM worker w WHERE w.job = $1 ORDER BY w.id
"""
_decode_budget = msgspec.json.Decoder(Budget).decode


async def progress(db: Connection, job: int, now: Moment, redact: Sequence[str]) -> Progress:
    """One statement, and so one moment (F10)."""
    row = await db.fetchrow(_PROGRESS.format(n=job), job, now)
    if row is None:
        raise gone()
    examples = dict(zip(row["shown"], row["urls"], strict=True))
    return Progress(
        waiting=row["waiting"],
        leased=row["leased"],
        done=row["done"],
        dead=row["dead"],
        delayed=row["delayed"],
        due_in=row["due_in"],
        tallies=dict(zip(row["names"], row["counts"], strict=True)),
        examples={name: redaction.url(url, redact) for name, url in examples.items()},
        started_at=row["started_at"],
        now=now,
        sealed=row["sealed"],
        finished_at=row["finished_at"],
        state=STATES[row["paused"]],
        budget=Budget() if row["budget"] is None else _decode_budget(row["budget"]),
    )


async def workers(db: Connection, job: int, now: Moment) -> list[WorkerView]:
    """All workers that did not leave."""
    return [
        with_own_counts(
            WorkerView(
                name=shown_name(name),
                silent_for=max(0.0, now - beat_at),
                leased=leased,
                done=done,
                failed=failed,
                about=read_info(about or b""),
            )
        )
        for name, beat_at, done, failed, about, leased in await db.fetch(_WORKERS, job)
    ]


async def chains(db: Connection, job: int) -> int:
    """Chains with a step, up to MOST_CHAINS."""
    query = "SELECT count(*) FROM (SELECT DISTINCT chain FROM step WHERE job = $1 LIMIT $2) AS found"
    return int(await db.fetchval(query, job, MOST_CHAINS))
