"""Leader election in PostgreSQL: a row per election, with an end time and an epoch.

No lock of a session: a pooler would give the session, and the lock with it, to another client.
"""

from msgspec.structs import replace

from trotline.adapters.postgres.frontier import delete_job
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.jobs import job_named, start_job
from trotline.adapters.postgres.pool import Connection
from trotline.errors import TermOver
from trotline.model.job import Job, LaneRules
from trotline.model.leadership import Term, Tick
from trotline.model.time import Moment
from trotline.ports.leadership import TERM

_RETIRED = 20
"""Jobs that one call retires."""


class PostgresLeadership:
    """Keeps L1 to L10 with one transaction per call, under the lock of the election's row. Implements the Leadership
    port."""

    def __init__(self, database: Database, *, shelf: bool = False) -> None:
        """`shelf`: tasks of new jobs wait at a broker."""
        self._database = database
        self._shelf = shelf

    async def campaign(self, election: str, candidate: str) -> Term:
        async with self._database.transaction() as db:
            await db.execute(
                "INSERT INTO office (name, epoch, holder, ends) VALUES ($1, 0, '', 0) ON CONFLICT DO NOTHING", election
            )
            epoch, holder, ends = await db.fetchrow(
                "SELECT epoch, holder, ends FROM office WHERE name = $1 FOR UPDATE", election
            )
            # Only now: the wait for the lock may have taken a while.
            now = await self._database.now(db)
            if ends <= now:
                epoch, holder, ends = epoch + 1, candidate, now + TERM
            elif holder == candidate:
                ends = now + TERM
            await db.execute(
                "UPDATE office SET epoch = $2, holder = $3, ends = $4 WHERE name = $1", election, epoch, holder, ends
            )
        return Term(election=election, holder=holder, epoch=epoch, now=now, ends=ends)

    async def resign(self, term: Term) -> None:
        async with self._database.transaction() as db:
            await db.execute(
                "UPDATE office SET ends = 0 WHERE name = $1 AND epoch = $2 AND holder = $3",
                term.election,
                term.epoch,
                term.holder,
            )

    async def tick(self, election: str) -> Tick | None:
        async with self._database.transaction() as db:
            return await _tick(db, election)

    async def start(self, term: Term, tick: Tick, rules: LaneRules, version: str = "") -> Job | None:
        async with self._database.transaction() as db:
            now = await self._fence(db, term)
            last = await _tick(db, term.election)
            if last is not None and last.at >= tick.at:
                return await job_named(db, last.job) if last.ran == tick.at else None
            job = await start_job(db, term.election, rules, version, now, shelf=self._shelf)
            await _remember(db, term.election, replace(tick, job=job.id, ran=tick.at))
            return job

    async def skip(self, term: Term, tick: Tick) -> None:
        async with self._database.transaction() as db:
            await self._fence(db, term)
            last = await _tick(db, term.election)
            if last is None or last.at < tick.at or last.schedule != tick.schedule:
                # Keep the job: the next leader must know which job may lack seeds.
                kept = replace(tick, job=last.job, ran=last.ran) if last else tick
                await _remember(db, term.election, kept)

    async def retire(self, term: Term, before: Moment) -> list[str]:
        async with self._database.transaction() as db:
            await self._fence(db, term)
            old = await delete_job.ended(db, before, _RETIRED, term.election)
            await delete_job.unlist(db, [number for number, _ in old])
        await delete_job.sweep(self._database)
        return [name for _, name in old]

    async def close(self) -> None:
        await self._database.close()

    async def _fence(self, db: Connection, term: Term) -> Moment:
        """The time, if the term runs. Its row stays locked: no other candidate wins before the transaction ends."""
        ends = await db.fetchval(
            "SELECT ends FROM office WHERE name = $1 AND epoch = $2 AND holder = $3 FOR UPDATE",
            term.election,
            term.epoch,
            term.holder,
        )
        now = await self._database.now(db)
        if ends is None or ends <= now:
            raise TermOver(f"term {term.epoch} of {term.holder} as coordinator of {term.election} is over")
        return now


async def _tick(db: Connection, election: str) -> Tick | None:
    row = await db.fetchrow("SELECT at, schedule, job, ran FROM tick WHERE office = $1", election)
    return Tick(at=row[0], schedule=row[1], job=row[2], ran=row[3]) if row else None


async def _remember(db: Connection, election: str, tick: Tick) -> None:
    await db.execute(
        "INSERT INTO tick (office, at, schedule, job, ran) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (office)"
        " DO UPDATE SET at = excluded.at, schedule = excluded.schedule, job = excluded.job, ran = excluded.ran",
        election,
        tick.at,
        tick.schedule,
        tick.job,
        tick.ran,
    )
