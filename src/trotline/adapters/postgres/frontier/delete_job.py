"""Deletes a job: from the list of jobs at once, then its tables, its leases and its rows.

The order matters. A transaction of a worker that began before the job was deleted holds a lock on one of the job's
tables: dropping them waits for it. After that no lease can be added, and all that are there can be returned.
"""

from collections.abc import Sequence

from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.job_store import JobStore
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.frontier.schema import CANCELLED, MOST_AT_ONCE, drop_tables_of_job
from trotline.adapters.postgres.pool import Connection
from trotline.model.job import Job, LaneRules
from trotline.model.time import Moment

AT_ONCE = 5_000
"""Rows per transaction."""
TABLES = (
    "turn", "lane", "step", "worker", "idle", "tally", "example", "reject", "session", "note", "upgrade", "counter",
)  # fmt: skip
"""Tables of all jobs, with a column `job`."""

_ENDED = f"""
SELECT id, name FROM job
WHERE coalesce(finished_at, CASE paused WHEN {CANCELLED} THEN coalesce(state_at, started_at) END) < $1
AND id < (SELECT max(id) FROM job newest WHERE newest.spider = job.spider) AND ($3 = '' OR spider = $3)
ORDER BY id LIMIT $2
"""
"""Finished or cancelled before a time. The newest job of a spider is kept, as its last run."""


async def ended(db: Connection, before: Moment, most: int, spider: str = "") -> list[tuple[int, str]]:
    """Number and name of the oldest jobs that may be deleted; optionally of one spider."""
    return [(row[0], row[1]) for row in await db.fetch(_ENDED, before, most, spider)]


async def unlist(db: Connection, numbers: Sequence[int]) -> None:
    """Delete the jobs from the list; `sweep` does the rest."""
    await db.execute(
        "WITH gone AS (DELETE FROM job WHERE id = ANY($1::int[]) RETURNING id, name)"
        " INSERT INTO retired (job, name) SELECT id, name FROM gone ON CONFLICT DO NOTHING",
        list(numbers),
    )


async def delete(database: Database, numbers: Sequence[int]) -> None:
    async with database.transaction() as db:
        await unlist(db, numbers)
    await sweep(database)


async def sweep(database: Database) -> None:
    """Delete what is left of deleted jobs. Another process may do the same: each step can be repeated."""
    async with database.transaction() as db:
        retired = await db.fetch("SELECT job, name FROM retired ORDER BY job")
    for number, name in retired:
        await _drop(database, number)
        await _return_leases(database, number, name)
        for table in TABLES:
            while await _clear(database, table, number) == AT_ONCE:
                pass
        async with database.transaction() as db:
            await db.execute("DELETE FROM retired WHERE job = $1", number)


async def _drop(database: Database, number: int) -> None:
    async def drop(db: Connection) -> None:
        await db.execute(drop_tables_of_job(number))

    # Workers that are busy lock the tables in an order of their own: repeated after a deadlock.
    await database.run(drop, first=database.lock_alone(number))


async def _return_leases(database: Database, number: int, name: str) -> None:
    """Other jobs may wait for their places and for their members of proxy pools. Their workers notice it at the next
    settle: requests may be under way."""
    store = JobStore(database, Job(id=name, spider="", started_at=0.0, rules=LaneRules()), number=number)

    async def give_back(tx: JobTransaction) -> int:
        rows = await tx.db.fetch(
            f"DELETE FROM held WHERE token = ANY(ARRAY(SELECT token FROM held WHERE job = $1 LIMIT {MOST_AT_ONCE}))"
            " RETURNING lane, member",
            number,
        )
        await tx.lock_lanes(lane for lane, _ in rows)
        for lane, member in rows:
            tx.lane(lane).running -= 1
            await tx.member_unused(lane, member, may_send=True)
        return len(rows)

    while await store.change(give_back, shared=False, wake=False):
        pass


async def _clear(database: Database, table: str, number: int) -> int:
    async with database.transaction() as db:
        rows = f"DELETE FROM {table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE job = $1 LIMIT $2))"
        return int((await db.execute(rows, number, AT_ONCE)).rpartition(" ")[2])
