"""The jobs of one frontier file."""

import sqlite3
from collections.abc import Callable

import msgspec

from trotline.adapters.sqlite.database import Database
from trotline.adapters.sqlite.delete_job import delete_jobs, delete_rows, ended
from trotline.adapters.sqlite.schema import CANCELLED
from trotline.errors import FrontierError
from trotline.model.job import Job, LaneRules
from trotline.model.time import Moment, Seconds

_COLUMNS = (
    "id, name, spider, version, rules, started_at, finished_at, announced,"
    f" CASE paused WHEN {CANCELLED} THEN coalesce(state_at, started_at) END"
)
_STEPS = 50
"""Transactions per `retire` call; the next call continues."""

_Row = tuple[int, str, str, str, bytes, Moment, Moment | None, int, Moment | None]


class SqliteJobs:
    """Implements the Jobs port."""

    def __init__(self, path: str, *, now: Callable[[], Moment] | None = None, inline: bool = False) -> None:
        self._db = Database(path, now=now, inline=inline)

    async def start(self, spider: str, rules: LaneRules, version: str = "") -> Job:
        return await self._db.write(lambda db: start_job(db, spider, rules, version, self._db.now()))

    async def latest(self, spider: str) -> Job | None:
        return await self._db.read(lambda db: self._latest(db, spider))

    async def all(self) -> list[Job]:
        return await self._db.read(self._all)

    def unreadable(self) -> tuple[str, ...]:
        # Damage affects the whole file, not one job.
        return ()

    async def admit(self, job: str, version: str) -> Job:
        return await self._db.write(lambda db: self._admit(db, job, version))

    async def forget(self, job: str) -> None:
        await self._db.write(lambda db: self._forget(db, job))
        while await self._db.write(delete_rows):
            pass

    async def retire(self, age: Seconds, most: int = 2) -> list[str]:
        if not await self._db.read(lambda db: ended(db, self._db.now() - age, most)):
            return []
        retired = await self._db.write(lambda db: self._retire(db, age, most))
        for _ in range(_STEPS):
            if not await self._db.write(delete_rows):
                break
        return retired

    async def close(self) -> None:
        await self._db.close()

    def _forget(self, db: sqlite3.Connection, name: str) -> None:
        row = db.execute("SELECT id FROM job WHERE name = ?", (name,)).fetchone()
        if row is not None:
            delete_jobs(db, row, self._db.now())

    def _retire(self, db: sqlite3.Connection, age: Seconds, most: int) -> list[str]:
        old = ended(db, self._db.now() - age, most)
        delete_jobs(db, (number for number, _ in old), self._db.now())
        return [name for _, name in old]

    def _latest(self, db: sqlite3.Connection, spider: str) -> Job | None:
        row = db.execute(f"SELECT {_COLUMNS} FROM job WHERE spider = ? ORDER BY id DESC LIMIT 1", (spider,)).fetchone()
        return _job(db, row) if row else None

    def _all(self, db: sqlite3.Connection) -> list[Job]:
        return [_job(db, row) for row in db.execute(f"SELECT {_COLUMNS} FROM job ORDER BY id").fetchall()]

    def _admit(self, db: sqlite3.Connection, name: str, version: str) -> Job:
        row = db.execute(f"SELECT {_COLUMNS} FROM job WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise FrontierError(f"no job {name} in {self._db.path}", hint="See which there are: trotline jobs")
        if not _job(db, row).accepts(version):
            db.execute("INSERT INTO upgrade (job, version) VALUES (?, ?)", (row[0], version))
        return _job(db, row)


def start_job(db: sqlite3.Connection, spider: str, rules: LaneRules, version: str, now: Moment) -> Job:
    [number] = db.execute("SELECT coalesce(max(id), 0) + 1 FROM job").fetchone()
    job = Job(id=f"{spider}-{number}", spider=spider, started_at=now, rules=rules, version=version)
    write_job(db, job)
    return job


def job_named(db: sqlite3.Connection, name: str) -> Job | None:
    row = db.execute(f"SELECT {_COLUMNS} FROM job WHERE name = ?", (name,)).fetchone()
    return _job(db, row) if row else None


def write_job(db: sqlite3.Connection, job: Job) -> int:
    """The job's number in this file."""
    cursor = db.execute(
        "INSERT INTO job (name, spider, version, rules, started_at) VALUES (?, ?, ?, ?, ?)",
        (job.id, job.spider, job.version, msgspec.json.encode(job.rules), job.started_at),
    )
    assert cursor.lastrowid is not None  # noqa: S101 - an INSERT always has one
    return cursor.lastrowid


def _job(db: sqlite3.Connection, row: _Row) -> Job:
    number, name, spider, version, rules, started_at, finished_at, announced, cancelled_at = row
    upgrades = db.execute("SELECT version FROM upgrade WHERE job = ? ORDER BY id", (number,)).fetchall()
    return Job(
        id=name,
        spider=spider,
        version=version,
        versions=tuple(upgrade for (upgrade,) in upgrades),
        rules=msgspec.json.decode(rules, type=LaneRules),
        started_at=started_at,
        finished_at=finished_at,
        announced=bool(announced),
        cancelled_at=cancelled_at,
    )
