"""A job's budget (F20). Leased pages count, so it holds for any number of workers."""

import msgspec

from trotline.adapters.postgres.frontier.errors import gone
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.pool import Connection
from trotline.model.job import BYTES, Budget

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Budget).decode
_NONE = Budget()


async def write(tx: JobTransaction, budget: Budget) -> None:
    packed = None if budget == _NONE else _encode(budget)
    await tx.db.execute("UPDATE job SET budget = $2 WHERE id = $1", tx.job, packed)


async def read(db: Connection, job: int) -> Budget:
    row = await db.fetchrow("SELECT budget FROM job WHERE id = $1", job)
    if row is None:
        raise gone()
    return _NONE if row[0] is None else _decode(row[0])


async def spent(db: Connection, job: int) -> str:
    """Which limit is reached; empty if none is."""
    budget = await read(db, job)
    if budget == _NONE:
        return ""
    ended, _ = await _used(db, job)
    return budget.spent(ended, await _size(db, job))


async def left(tx: JobTransaction, limit: int) -> int:
    """The number of leases that the budget allows, at most `limit`. One lease call at a time: what another one leases
    at the same moment must be counted."""
    lock = tx.store.database.lock_class("budget")
    await tx.db.execute("SELECT pg_advisory_xact_lock($1::integer, $2::integer)", lock, tx.job)
    budget = await read(tx.db, tx.job)
    if budget == _NONE:
        return limit
    if budget.size is not None and await _size(tx.db, tx.job) >= budget.size:
        return 0
    if budget.pages is None:
        return limit
    ended, leased = await _used(tx.db, tx.job)
    return min(limit, max(0, budget.pages - ended - leased))


async def _used(db: Connection, job: int) -> tuple[int, int]:
    """Ended pages, and leased ones."""
    row = await db.fetchrow("SELECT sum(done + dead)::bigint, sum(leased)::bigint FROM counter WHERE job = $1", job)
    return row[0] or 0, row[1] or 0


async def _size(db: Connection, job: int) -> int:
    return int(await db.fetchval("SELECT sum(n)::bigint FROM tally WHERE job = $1 AND name = $2", job, BYTES) or 0)
