"""Rewrites small tables of which VACUUM can remove nothing, because a report, a dump or a forgotten session holds an
old snapshot: each look at a row would walk over all its earlier versions. TRUNCATE drops them; what lives is put back.

A transaction waits for the table's lock before it takes the snapshot of a statement, so it sees the table before or
after, never empty. One with a snapshot for several statements (`Database.transaction(view=True)`) may have taken it
earlier: it locks the table `meta` before, and no rotation begins until it ends. Whoever else keeps one of the tables
locked, like a dump of this schema, keeps it from being rewritten.
"""

from typing import NamedTuple

import asyncpg

from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.pool import Connection
from trotline.model.time import Seconds

LOCK_WITHIN: Seconds = 0.1
"""Others wait behind us for the lock, so we give up soon; the next try comes with the next vacuum."""
_FEW = 1_000
"""Dead rows that are left alone."""
_MOST = 100_000
"""Live rows of a table that is rewritten: nobody can use it for about a second."""


class Hot(NamedTuple):
    """A table whose rows change all the time."""

    name: str
    share: int = 10
    """Rewritten when there are so many dead rows for each one that is alive."""


HOT = (
    # A lease walks from the head of its index over all that is dead, however many lanes there are.
    Hot("turn", share=1),
    Hot("pace"), Hot("lane"), Hot("held"), Hot("counter"), Hot("tally"), Hot("worker"), Hot("idle"), Hot("pool_member"),
    Hot("ring"), Hot("identity"),
)  # fmt: skip
_DEAD = """
SELECT c.relname, pg_stat_get_live_tuples(c.oid), pg_stat_get_dead_tuples(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = ANY($2::text[])
"""


async def rotate(database: Database, job: int) -> list[str]:
    """Rewrite those tables that a vacuum does not help; returns their names."""
    tables = (*HOT, Hot(f"late_{job}", share=1), Hot(f"waiting_{job}", share=2))
    overgrown = await _overgrown(database, tables)
    # In the usual case this removes what is dead.
    await database.vacuum(*overgrown)
    left = set(await _overgrown(database, tables)) if overgrown else set()
    return [name for name in overgrown if name in left and await _rewrite(database, name)]


async def _overgrown(database: Database, tables: tuple[Hot, ...]) -> list[str]:
    shares = dict(tables)
    async with database.transaction(durable=False) as db:
        rows = await db.fetch(_DEAD, database.address.schema, list(shares))
    return [name for name, live, dead in rows if dead > _FEW + shares[name] * live and live <= _MOST]


async def _rewrite(database: Database, table: str) -> bool:
    """False: somebody looks, or another process does the same."""
    async with database.transaction(first=f"SET LOCAL lock_timeout = {int(LOCK_WITHIN * 1000)};") as db:
        try:
            await db.execute("LOCK TABLE meta IN ACCESS EXCLUSIVE MODE NOWAIT")
            await db.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        except asyncpg.LockNotAvailableError:
            # Nothing was changed, so the end of the transaction does not matter.
            return False
        await _put_back(db, table)
    return True


async def _put_back(db: Connection, table: str) -> None:
    await db.execute(f"CREATE TEMPORARY TABLE aside ON COMMIT DROP AS SELECT * FROM {table}")
    await db.execute(f"TRUNCATE {table}")
    await db.execute(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM aside")
