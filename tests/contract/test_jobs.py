"""The jobs of a frontier file, and of a PostgreSQL server, are found again, and let other versions in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import parse
from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.testing.jobs_contract import JobsContract


class TestSqliteJobs(JobsContract):
    @pytest.fixture
    async def jobs(self, tmp_path: Path) -> AsyncIterator[SqliteJobs]:
        jobs = SqliteJobs(str(tmp_path / "frontier.db"))
        yield jobs
        await jobs.close()


class TestPostgresJobs(JobsContract):
    @pytest.fixture
    async def jobs(self, everywhere: str) -> AsyncIterator[PostgresJobs]:
        jobs = PostgresJobs(Database(parse(everywhere)))
        yield jobs
        await jobs.close()
