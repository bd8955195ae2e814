"""A primary under sentinels is killed in the middle of a job: the replica takes over, and workers find it there."""

import os
import time
from pathlib import Path

import pytest
from tests.e2e.fleet_crawl import Terms, crawl

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.errors import FrontierUnreachable
from trotline.model.job import LaneRules
from trotline.testing.postgres_server import postgres
from trotline.testing.redis_server import BUILDS, WHEEL, redis_sentinels

pytestmark = pytest.mark.xdist_group("fleet faults")

MOST_LOST = 8
"""Pages, as under a Cluster: what one call brought that was not replicated yet, at the very most."""


@pytest.mark.parametrize("build", BUILDS if os.environ.get("SOAK") else (WHEEL,))
async def test_a_primary_is_killed_and_the_job_finishes_on_its_replica(tmp_path: Path, build: str):
    with redis_sentinels(build) as redis, postgres() as rows:
        async with crawl(tmp_path, redis.url, f"{rows.url}?schema=sentinel", Terms(hosts=8, pages=25)) as job:
            for _ in range(2):
                await job.worker()
            before = (await job.done(60)).done
            redis.primary.kill()
            killed = time.monotonic()
            await job.until(lambda progress: progress.done >= before + 40)
            took = time.monotonic() - killed
            await job.ended()
            books = await job.books()

    print(f"primary killed: 40 pages later after {took:.1f} s; lost {books.faults['lost']} of {len(books.wanted)}")
    assert books.progress.finished_at is not None
    assert books.faults["lost"] <= MOST_LOST
    assert (books.faults["unexpected"], books.faults["duplicated"], books.progress.dead) == (0, 0, 0)


async def test_sentinels_may_want_a_login_of_their_own(tmp_path: Path):
    open_to_us = "user trotline on >hush +@all ~* &*"
    with redis_sentinels(sentinels=1, lines=[open_to_us]) as redis:
        [sentinel] = redis.sentinels
        # From now on nobody else is let in; the servers behind it have no password.
        assert sentinel.command("ACL", "SETUSER", "default", "off").startswith(b"+OK")
        jobs = RedisJobs(connect(f"{redis.url}?user=trotline&password=hush"))
        assert (await jobs.start("shop", LaneRules())).id == "shop-1"
        await jobs.close()
        jobs = RedisJobs(connect(f"{redis.url}?user=trotline&password=wrong"))
        with pytest.raises(FrontierUnreachable) as trouble:
            await jobs.start("shop", LaneRules())
        await jobs.close()
    assert "wrong" not in str(trouble.value)
