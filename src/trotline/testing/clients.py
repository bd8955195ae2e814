"""Jobs of Trotline's own frontiers, opened for tests: worker and operator in one object."""

from typing import Any

from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.redis import open_job as redis
from trotline.adapters.redis.server_calls import Client as Connection
from trotline.adapters.sqlite import open_job as sqlite
from trotline.model.job import Job
from trotline.testing.frontier_contract.bench import Client, client


def sqlite_client(path: str, job: Job, **options: Any) -> Client:
    return client(sqlite.open_job(path, job, **options))


def redis_client(connection: Connection, job: Job, **options: Any) -> Client:
    return client(redis.open_job(connection, job, **options))


async def postgres_client(database: Database, job: Job, **options: Any) -> Client:
    from trotline.adapters.postgres.frontier import open_job as postgres

    return client(await postgres.open_job(database, job, **options))
