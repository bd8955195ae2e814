"""The promises of the Jobs port as tests that any backend can inherit.

class TestMyJobs(JobsContract):
    @pytest_asyncio.fixture
    async def jobs(self, tmp_path):
        jobs = MyJobs(tmp_path)
        yield jobs
        await jobs.close()
"""

import pytest

from trotline.errors import FrontierError
from trotline.model.job import Job, LaneRules
from trotline.model.pace import Pace, Rate
from trotline.ports.jobs import Jobs

RULES = LaneRules(default=Pace(rate=Rate(2.0)), lanes={"slow.example": Pace(rate=Rate(0.5))}, redact=("ticket",))


class JobsContract:
    """J1 to J4, and who may take part. A subclass provides the fixture `jobs`."""

    pytestmark = pytest.mark.asyncio

    async def test_j1_a_job_that_is_started_is_found_as_it_is(self, jobs: Jobs) -> None:
        assert await jobs.all() == []
        assert await jobs.latest("shop") is None

        job = await jobs.start("shop", RULES, "v1")

        assert (job.spider, job.rules, job.version, job.versions) == ("shop", RULES, "v1", ())
        assert (job.finished_at, job.announced) == (None, False)
        assert await jobs.latest("shop") == job
        assert await jobs.all() == [job]
        assert jobs.unreadable() == ()

    async def test_j1_every_start_is_a_job_of_its_own(self, jobs: Jobs) -> None:
        started = [await jobs.start(spider, RULES) for spider in ("shop", "shop", "news")]

        assert len({job.id for job in started}) == 3
        assert await jobs.all() == started

    async def test_j2_the_latest_is_the_one_of_this_spider_that_was_started_last(self, jobs: Jobs) -> None:
        await jobs.start("shop", RULES)
        second = await jobs.start("shop", RULES)
        await jobs.start("shop-two", RULES)

        assert await jobs.latest("shop") == second

    async def test_j1_a_version_that_is_let_in_takes_part_beside_the_first(self, jobs: Jobs) -> None:
        job = await jobs.start("shop", RULES, "v1")
        other = await jobs.start("shop", RULES, "v1")
        assert not job.accepts("v2")

        await jobs.admit(job.id, "v2")
        admitted = await jobs.admit(job.id, "v3")

        assert admitted.versions == ("v2", "v3")
        assert all(admitted.accepts(version) for version in ("v1", "v2", "v3"))
        assert await _named(jobs, job.id) == admitted
        assert await _named(jobs, other.id) == other

    async def test_j1_letting_a_version_in_twice_is_letting_it_in(self, jobs: Jobs) -> None:
        job = await jobs.start("shop", RULES, "v1")
        assert await jobs.admit(job.id, "v1") == job

        first = await jobs.admit(job.id, "v2")

        assert await jobs.admit(job.id, "v2") == first

    async def test_j1_nobody_is_let_into_a_job_that_does_not_exist(self, jobs: Jobs) -> None:
        with pytest.raises(FrontierError, match="shop-99"):
            await jobs.admit("shop-99", "v2")

    async def test_j3_of_a_job_that_is_forgotten_nothing_is_left(self, jobs: Jobs) -> None:
        first, second = await jobs.start("shop", RULES), await jobs.start("shop", RULES)
        news = await jobs.start("news", RULES)

        await jobs.forget(second.id)
        await jobs.forget(second.id)

        assert await jobs.all() == [first, news]
        assert await jobs.latest("shop") == first
        third = await jobs.start("shop", RULES)
        assert third.id not in (first.id, news.id)
        assert await jobs.latest("shop") == third

    async def test_j4_what_has_not_ended_does_not_retire(self, jobs: Jobs) -> None:
        started = [await jobs.start("shop", RULES) for _ in range(3)]

        assert await jobs.retire(-60.0) == []

        assert await jobs.all() == started


async def _named(jobs: Jobs, name: str) -> Job:
    [job] = [job for job in await jobs.all() if job.id == name]
    return job
