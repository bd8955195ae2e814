"""Which process has logged in to a session: every process of the job is told the same, and no other job is."""

from collections.abc import AsyncIterator

import pytest
from tests.contract.conftest import SqliteFileBench
from tests.contract.redis_servers import RedisBench, ShardedBench

from trotline.testing.frontier_contract.bench import Bench


@pytest.fixture(params=[SqliteFileBench, RedisBench, ShardedBench])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    opened = request.param()
    yield opened
    await opened.close()


async def test_every_process_of_a_job_is_told_who_has_logged_in_last(bench: Bench) -> None:
    here, there = await bench.open(), await bench.again()
    assert await there.session_home("anna") == ""

    assert await here.session_home("anna", "here") == "here"

    assert (await there.session_home("anna"), await there.session_home("bob")) == ("here", "")
    await there.session_home("anna", "there")
    assert await here.session_home("anna") == "there"


async def test_sessions_of_another_job_are_others(bench: Bench) -> None:
    here = await bench.open()
    await here.session_home("anna", "here")

    other = await bench.another_job()

    assert await other.session_home("anna") == ""
