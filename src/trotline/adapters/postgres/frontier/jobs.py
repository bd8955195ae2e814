"""The jobs of a frontier in PostgreSQL."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from trotline.adapters.postgres.frontier import delete_job
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.schema import CANCELLED, RUNNING, tables_of_job
from trotline.adapters.postgres.frontier.shelf_tables import shelf_tables
from trotline.adapters.postgres.pool import Connection
from trotline.errors import FrontierError
from trotline.model.job import Job, LaneRules
from trotline.model.time import Moment, Seconds
from trotline.rules.untrusted_values import is_moment

_SELECT = f"""
SELECT id, name, spider, version, rules, started_at, finished_at, announced,
    CASE paused WHEN {CANCELLED} THEN coalesce(state_at, started_at) END AS cancelled_at,
    ARRAY(SELECT u.version FROM upgrade u WHERE u.job = job.id ORDER BY u.id) AS versions,
    paused BETWEEN {RUNNING} AND {CANCELLED} AS known_state
FROM job
"""
_MISREAD = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)
"""Errors of decoding what another program wrote."""


class PostgresJobs:
    """Implements the Jobs port."""

    def __init__(self, database: Database, *, shelf: bool = False) -> None:
        """`shelf`: tasks of new jobs wait at a broker."""
        self._database = database
        self._shelf = shelf
        self._unreadable: tuple[str, ...] = ()

    async def start(self, spider: str, rules: LaneRules, version: str = "") -> Job:
        async with self._database.transaction() as db:
            return await start_job(db, spider, rules, version, await self._database.now(db), shelf=self._shelf)

    async def latest(self, spider: str) -> Job | None:
        if not await self._database.exists():
            return None
        async with self._database.transaction() as db:
            rows = await db.fetch(f"{_SELECT} WHERE spider = $1 ORDER BY id DESC LIMIT 1", spider)
            if rows and (job := readable(rows[0])) is None:
                # Its newest job was damaged by another program.
                rows = await db.fetch(f"{_SELECT} WHERE spider = $1 ORDER BY id DESC", spider)
            return next((job for row in rows if (job := readable(row)) is not None), None)

    async def all(self) -> list[Job]:
        if not await self._database.exists():
            return []
        async with self._database.transaction() as db:
            rows = await db.fetch(f"{_SELECT} ORDER BY id")
        found = [(row, readable(row)) for row in rows]
        self._unreadable = tuple(shown(row["name"]) for row, job in found if job is None)
        return [job for _, job in found if job is not None]

    def unreadable(self) -> tuple[str, ...]:
        return self._unreadable

    async def admit(self, job: str, version: str) -> Job:
        async with self._database.transaction() as db:
            found = await job_named(db, job)
            if found is None:
                place = self._database.place
                raise FrontierError(f"no job {job} at {place}", hint="See which there are: trotline jobs")
            if not found.accepts(version):
                await db.execute(
                    "INSERT INTO upgrade (job, version) SELECT id, $2 FROM job WHERE name = $1 ON CONFLICT DO NOTHING",
                    job,
                    version,
                )
            return await job_named(db, job) or found

    async def forget(self, job: str) -> None:
        if not await self._database.exists():
            return
        async with self._database.transaction() as db:
            number = await _number(db, job)
        if number is not None:
            await delete_job.delete(self._database, [number])
        await delete_job.sweep(self._database)

    async def retire(self, age: Seconds, most: int = 2) -> list[str]:
        if not await self._database.exists():
            return []
        async with self._database.transaction() as db:
            old = await delete_job.ended(db, await self._database.now(db) - age, most)
        if old:
            await delete_job.delete(self._database, [number for number, _ in old])
            await delete_job.sweep(self._database)
        return [shown(name) for _, name in old]

    async def close(self) -> None:
        await self._database.close()


async def start_job(
    db: Connection, spider: str, rules: LaneRules, version: str, now: Moment, *, shelf: bool = False
) -> Job:
    """In the caller's transaction: a job that is listed has its tables."""
    number = await db.fetchval("SELECT nextval(pg_get_serial_sequence('job', 'id'))")
    job = Job(id=f"{spider}-{number}", spider=spider, started_at=now, rules=rules, version=version)
    await db.execute(
        "INSERT INTO job (id, name, spider, version, rules, started_at) VALUES ($1, $2, $3, $4, $5, $6)",
        number,
        job.id,
        spider,
        version,
        msgspec.json.encode(rules),
        now,
    )
    await db.execute(tables_of_job(number) + (shelf_tables(number) if shelf else ""))
    return job


async def job_named(db: Connection, name: str) -> Job | None:
    row = await db.fetchrow(f"{_SELECT} WHERE name = $1", name)
    return readable(row) if row else None


def readable(row: Sequence[Any]) -> Job | None:
    """None: another program wrote something else into it."""
    _, name, spider, version, rules, started_at, finished_at, announced, cancelled_at, versions, known = row
    try:
        job = Job(
            id=name,
            spider=spider,
            version=version,
            versions=tuple(versions),
            rules=msgspec.json.decode(rules, type=LaneRules),
            started_at=started_at,
            finished_at=finished_at,
            announced=announced,
            cancelled_at=cancelled_at,
        )
    except _MISREAD:
        return None
    times = (job.started_at, job.finished_at, job.cancelled_at)
    return job if known and _ID.fullmatch(job.id) and all(map(is_moment, times)) else None


_ID = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def shown(name: str) -> str:
    """A job's id in printable form, also an invalid one."""
    return name if _ID.fullmatch(name) else name.encode("unicode_escape").decode()


async def _number(db: Connection, name: str) -> int | None:
    """The number of a job, by its id as it is listed."""
    found: int | None = await db.fetchval("SELECT id FROM job WHERE name = $1", name)
    if found is None and "\\" in name:
        others = await db.fetch("SELECT id, name FROM job")
        found = next((row["id"] for row in others if shown(row["name"]) == name), None)
    return found
