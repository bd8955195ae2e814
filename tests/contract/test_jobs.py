"""The jobs of a frontier file are found again, and let other versions in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.testing.jobs_contract import JobsContract


class TestSqliteJobs(JobsContract):
    @pytest.fixture
    async def jobs(self, tmp_path: Path) -> AsyncIterator[SqliteJobs]:
        jobs = SqliteJobs(str(tmp_path / "frontier.db"))
        yield jobs
        await jobs.close()
