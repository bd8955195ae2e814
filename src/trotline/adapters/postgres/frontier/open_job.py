"""A job in PostgreSQL, opened: its frontier and its console over one set of connections."""

import random

from trotline.adapters.postgres.frontier.broker_books import PostgresBooks
from trotline.adapters.postgres.frontier.console import PostgresConsole
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier import PostgresFrontier
from trotline.adapters.postgres.frontier.job_store import JobStore
from trotline.model.job import Job
from trotline.ports.backend import OpenJob
from trotline.ports.broker_books import OpenBooks


async def open_job(database: Database, job: Job, *, rng: random.Random | None = None) -> OpenJob:
    """`rng` makes a crawl repeatable."""
    store = await _opened(database, job, rng)
    return OpenJob(job, PostgresFrontier(store), PostgresConsole(store))


async def open_books(database: Database, job: Job, *, rng: random.Random | None = None) -> OpenBooks:
    """The same for a job whose new tasks wait at a broker."""
    store = await _opened(database, job, rng)
    frontier = PostgresFrontier(store)
    return OpenBooks(job, frontier, PostgresConsole(store), PostgresBooks(store), frontier.set_supply)


async def _opened(database: Database, job: Job, rng: random.Random | None) -> JobStore:
    store = JobStore(database, job, rng=rng)
    try:
        await store.open()
    except BaseException:
        await database.close()
        raise
    return store
