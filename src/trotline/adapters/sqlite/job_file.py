"""One job in a frontier file, shared by its frontier and its console."""

import asyncio
import sqlite3
from collections.abc import Callable
from typing import TypeVar

from trotline.adapters.sqlite.database import MEMORY, Database
from trotline.adapters.sqlite.job_transaction import JobTransaction
from trotline.adapters.sqlite.jobs import write_job
from trotline.errors import FrontierError
from trotline.model.job import Job
from trotline.model.time import Moment

T = TypeVar("T")


class JobFile:
    """One connection to the file; every change of the job is one transaction."""

    def __init__(self, database: Database, job: Job) -> None:
        self.db = database
        self.job = job
        self.changed = asyncio.Event()
        """Set after a change: a waiting lease call checks again."""
        if database.path == MEMORY:
            # Each in-memory database is separate: a job started through another handle is not in it yet.
            write_job(database.connection, job)
        row = database.connection.execute("SELECT id FROM job WHERE name = ?", (job.id,)).fetchone()
        if row is None:
            raise FrontierError(f"no job {job.id} in {database.path}", hint="See which there are: trotline status")
        self.number: int = row[0]

    def now(self) -> Moment:
        return self.db.now()

    async def read(self, step: Callable[[sqlite3.Connection], T]) -> T:
        return await self.db.read(step)

    async def change(self, step: Callable[[JobTransaction], T], *, durable: bool = True, wake: bool = True) -> T:
        """Run `step` in a transaction, with the counters. `wake`: notify waiting lease calls."""

        def whole(db: sqlite3.Connection) -> T:
            tx = JobTransaction(db, self.number, self.job.id, self.job.rules, self.db.now())
            result = step(tx)
            tx.flush()
            return result

        result = await self.db.write(whole, durable=durable)
        if wake:
            self.changed.set()
        return result
