"""The end of a job: judged in a transaction of its own, with no other one that adds or ends tasks.

Two transactions that settle the last two leases do not see each other, so neither can tell.
"""

from trotline.adapters.postgres.frontier import budgets
from trotline.adapters.postgres.frontier.errors import gone
from trotline.adapters.postgres.frontier.job_store import JobStore
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.frontier.schema import CANCELLED
from trotline.adapters.postgres.pool import Connection

_STATE = f"""
SELECT finished_at IS NOT NULL, paused = {CANCELLED}, sealed, budget IS NOT NULL,
    (SELECT sum(waiting + leased)::bigint FROM counter WHERE job = $1)
FROM job WHERE id = $1
"""


async def finished(store: JobStore) -> bool:
    """Finished, cancelled, or the budget is used up."""
    await store.open()
    async with store.database.transaction(durable=False) as db:
        row = await db.fetchrow(_STATE, store.number)
        if row is None:
            raise gone()
        done, cancelled, sealed, limited, left = row
        over = done or cancelled or (limited and bool(await budgets.spent(db, store.number)))
    if not done and sealed and not left:
        # Also of a cancelled job.
        return await close_if_finished(store) or bool(over)
    return bool(over)


async def close_if_finished(store: JobStore) -> bool:
    """Mark the job as finished if nothing of it waits or is leased."""
    await store.open()

    async def judge(db: Connection) -> bool:
        _, _, sealed, _, left = await db.fetchrow(_STATE, store.number) or (False, False, False, False, 0)
        if not sealed or left:
            return False
        tx = JobTransaction(db, store, await store.database.now(db))
        closed = await db.fetchval(
            "UPDATE job SET finished_at = $2 WHERE id = $1 AND finished_at IS NULL RETURNING 1", store.number, tx.now
        )
        if closed:
            await tx.release_lanes()
        return True

    return await store.database.run(judge, first=store.database.lock_alone(store.number))


async def seal(store: JobStore) -> None:
    await store.open()
    async with store.database.transaction() as db:
        await db.execute("UPDATE job SET sealed = true WHERE id = $1", store.number)
    await finished(store)
    store.wakeups.notify(store.number)


async def announce(store: JobStore) -> bool:
    """True exactly once per finish."""
    await finished(store)
    async with store.database.transaction() as db:
        announced = await db.fetchval(
            "UPDATE job SET announced = true WHERE id = $1 AND finished_at IS NOT NULL AND NOT announced RETURNING 1",
            store.number,
        )
    return announced is not None
