"""Leader election in a frontier file."""

import sqlite3
from collections.abc import Callable

from msgspec.structs import replace

from trotline.adapters.sqlite.database import Database
from trotline.adapters.sqlite.delete_job import delete_jobs, delete_rows, ended
from trotline.adapters.sqlite.jobs import job_named, start_job
from trotline.errors import TermOver
from trotline.model.job import Job, LaneRules
from trotline.model.leadership import Term, Tick
from trotline.model.time import Moment
from trotline.ports.leadership import TERM

TABLES = """
CREATE TABLE IF NOT EXISTS office (name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, holder TEXT NOT NULL,
    ends REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tick (office TEXT PRIMARY KEY, at REAL NOT NULL, schedule TEXT NOT NULL,
    job TEXT NOT NULL, ran REAL NOT NULL) WITHOUT ROWID
"""
"""Created when a coordinator first opens the file.

office   the current term of each election (the name is part of the file format)
tick     the last tick of each schedule that was started or skipped
"""
_RETIRED = 20
"""Jobs that one call retires."""


class SqliteLeadership:
    """Keeps L1 to L10 with one transaction per call. Implements the Leadership port."""

    def __init__(self, path: str, *, now: Callable[[], Moment] | None = None, inline: bool = False) -> None:
        self._db = Database(path, now=now, inline=inline)
        self._made = False

    async def campaign(self, election: str, candidate: str) -> Term:
        await self._make()
        return await self._db.write(lambda db: self._campaign(db, election, candidate))

    async def resign(self, term: Term) -> None:
        await self._make()
        await self._db.write(
            lambda db: db.execute(
                "UPDATE office SET ends = 0 WHERE name = ? AND epoch = ? AND holder = ?",
                (term.election, term.epoch, term.holder),
            )
        )

    async def tick(self, election: str) -> Tick | None:
        await self._make()
        return await self._db.read(lambda db: _tick(db, election))

    async def start(self, term: Term, tick: Tick, rules: LaneRules, version: str = "") -> Job | None:
        await self._make()
        return await self._db.write(lambda db: self._start(db, term, tick, rules, version))

    async def skip(self, term: Term, tick: Tick) -> None:
        await self._make()
        await self._db.write(lambda db: self._skip(db, term, tick))

    async def retire(self, term: Term, before: Moment) -> list[str]:
        await self._make()
        retired = await self._db.write(lambda db: self._retire(db, term, before))
        while await self._db.write(delete_rows):
            pass
        return retired

    async def close(self) -> None:
        await self._db.close()

    async def _make(self) -> None:
        if not self._made:
            await self._db.write(lambda db: [db.execute(table) for table in TABLES.split(";")])
            self._made = True

    def _campaign(self, db: sqlite3.Connection, election: str, candidate: str) -> Term:
        now = self._db.now()
        row = db.execute("SELECT epoch, holder, ends FROM office WHERE name = ?", (election,)).fetchone()
        epoch, holder, ends = row or (0, "", 0.0)
        if ends <= now:
            epoch, holder, ends = epoch + 1, candidate, now + TERM
        elif holder == candidate:
            ends = now + TERM
        db.execute(
            "INSERT OR REPLACE INTO office (name, epoch, holder, ends) VALUES (?, ?, ?, ?)",
            (election, epoch, holder, ends),
        )
        return Term(election=election, holder=holder, epoch=epoch, now=now, ends=ends)

    def _fence(self, db: sqlite3.Connection, term: Term) -> None:
        running = db.execute(
            "SELECT 1 FROM office WHERE name = ? AND epoch = ? AND holder = ? AND ends > ?",
            (term.election, term.epoch, term.holder, self._db.now()),
        ).fetchone()
        if running is None:
            raise TermOver(f"term {term.epoch} of {term.holder} as coordinator of {term.election} is over")

    def _start(self, db: sqlite3.Connection, term: Term, tick: Tick, rules: LaneRules, version: str) -> Job | None:
        self._fence(db, term)
        last = _tick(db, term.election)
        if last is not None and last.at >= tick.at:
            return job_named(db, last.job) if last.ran == tick.at else None
        job = start_job(db, term.election, rules, version, self._db.now())
        _remember(db, term.election, replace(tick, job=job.id, ran=tick.at))
        return job

    def _skip(self, db: sqlite3.Connection, term: Term, tick: Tick) -> None:
        self._fence(db, term)
        last = _tick(db, term.election)
        if last is None or last.at < tick.at or last.schedule != tick.schedule:
            # Keep the job: the next leader must know which job may lack seeds.
            _remember(db, term.election, replace(tick, job=last.job, ran=last.ran) if last else tick)

    def _retire(self, db: sqlite3.Connection, term: Term, before: Moment) -> list[str]:
        self._fence(db, term)
        old = ended(db, before, _RETIRED, term.election)
        delete_jobs(db, (number for number, _ in old), self._db.now())
        return [name for _, name in old]


def _tick(db: sqlite3.Connection, election: str) -> Tick | None:
    row = db.execute("SELECT at, schedule, job, ran FROM tick WHERE office = ?", (election,)).fetchone()
    return Tick(at=row[0], schedule=row[1], job=row[2], ran=row[3]) if row else None


def _remember(db: sqlite3.Connection, election: str, tick: Tick) -> None:
    db.execute(
        "INSERT OR REPLACE INTO tick (office, at, schedule, job, ran) VALUES (?, ?, ?, ?, ?)",
        (election, tick.at, tick.schedule, tick.job, tick.ran),
    )
