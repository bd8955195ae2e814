"""A job in PostgreSQL, opened: its frontier and its console over one set of connections."""

import random

from trotline.adapters.postgres.frontier.console import PostgresConsole
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier import PostgresFrontier
from trotline.adapters.postgres.frontier.job_store import JobStore
from trotline.model.job import Job
from trotline.ports.backend import OpenJob


async def open_job(database: Database, job: Job, *, rng: random.Random | None = None) -> OpenJob:
    """`rng` makes a crawl repeatable."""
    store = JobStore(database, job, rng=rng)
    try:
        await store.open()
    except BaseException:
        await database.close()
        raise
    return OpenJob(job, PostgresFrontier(store), PostgresConsole(store))
