"""All jobs of a server find a lane in the same of its parts."""

from collections.abc import AsyncIterator

import pytest
from tests.contract.redis_servers import RedisBench

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.errors import FrontierError
from trotline.testing.frontier_contract import BRISK


@pytest.fixture
async def bench() -> AsyncIterator[RedisBench]:
    bench = RedisBench()
    yield bench
    await bench.close()


async def shards_of_a_new_job(bench: RedisBench, asked: int) -> int:
    jobs = RedisJobs(connect(bench.url), shards=asked)
    try:
        return (await jobs.start("shop", BRISK)).shards
    finally:
        await jobs.close()


async def test_the_first_job_chooses_in_how_many_parts_a_server_keeps_its_lanes(bench: RedisBench) -> None:
    chosen = [await shards_of_a_new_job(bench, asked) for asked in (3, 0, 3)]

    assert chosen == [3, 3, 3]


async def test_a_url_that_asks_for_other_parts_is_refused_before_a_job_is_made(bench: RedisBench) -> None:
    await shards_of_a_new_job(bench, 3)
    with pytest.raises(FrontierError, match="has 3 shards, and the URL requests 8") as told:
        await shards_of_a_new_job(bench, 8)
    jobs = RedisJobs(connect(bench.url))
    started = await jobs.all()
    await jobs.close()

    assert "shards=3" in told.value.hint
    assert [job.id for job in started] == ["shop-1"]
