"""The frontier of a fleet keeps F1 to F16, on Redis, on Valkey and spread over a Cluster."""

import os
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, settings
from tests.contract.redis_servers import ClusterBench, RedisBench, ShardedBench, ValkeyBench

from trotline.testing.frontier_contract import FrontierContract
from trotline.testing.frontier_machine import frontier_machine

HISTORIES = int(os.environ.get("TROTLINE_MACHINE_EXAMPLES", "25"))
BOUNDED = settings(
    max_examples=HISTORIES,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
"""More histories with TROTLINE_MACHINE_EXAMPLES=2000."""

pytestmark = pytest.mark.xdist_group("redis")

FOLLOWS = {
    "f13_jobs": "lanes belong to jobs here, so far",
    "f11_a_job": "lanes belong to jobs here, so far",
    "f5_the_places_of_a_job_whose_workers_all_died_come_back_to_the_others": "lanes belong to jobs here, so far",
    "f16_a_lane_that_answers_again_has_its_retries_free": "pace.lua has the older rules, so far",
    "f18": "pace.lua has the older rules, so far",
    "f19": "pace.lua has the older rules, so far",
}
"""What the scripts do not keep yet."""


class TestRedis(FrontierContract):
    gaps = FOLLOWS

    @pytest.fixture
    async def bench(self) -> AsyncIterator[RedisBench]:
        bench = RedisBench()
        yield bench
        await bench.close()


class TestValkey(FrontierContract):
    gaps = FOLLOWS

    @pytest.fixture
    async def bench(self) -> AsyncIterator[ValkeyBench]:
        bench = ValkeyBench()
        yield bench
        await bench.close()


class TestCluster(FrontierContract):
    gaps = FOLLOWS

    @pytest.fixture
    async def bench(self) -> AsyncIterator[ClusterBench]:
        bench = ClusterBench()
        yield bench
        await bench.close()


TestRedisMachine = frontier_machine(RedisBench).TestCase
TestRedisMachine.settings = BOUNDED
TestRedisMachine.pytestmark = [pytest.mark.timeout(120 + 5 * HISTORIES)]

TestValkeyMachine = frontier_machine(ValkeyBench).TestCase
TestValkeyMachine.settings = BOUNDED
TestValkeyMachine.pytestmark = [pytest.mark.timeout(120 + 5 * HISTORIES)]

TestShardsMachine = frontier_machine(ShardedBench).TestCase
TestShardsMachine.settings = settings(BOUNDED, max_examples=max(1, HISTORIES // 2))
TestShardsMachine.pytestmark = [pytest.mark.timeout(120 + 5 * HISTORIES)]

TestClusterMachine = frontier_machine(ClusterBench).TestCase
TestClusterMachine.settings = settings(BOUNDED, max_examples=max(1, HISTORIES // 4))
TestClusterMachine.pytestmark = [pytest.mark.timeout(120 + 5 * HISTORIES)]
