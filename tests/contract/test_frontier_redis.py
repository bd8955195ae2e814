"""The frontier of a fleet keeps F1 to F21, on Redis and spread over shards, also those of a Cluster. On Valkey:
test_redis_seen.py."""

import os
from collections.abc import AsyncIterator, Mapping
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from tests.contract.brief_contract import WORKER_CALLS
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


class TestRedis(FrontierContract):
    @pytest.fixture
    async def bench(self) -> AsyncIterator[RedisBench]:
        bench = RedisBench()
        yield bench
        await bench.close()


class TestShards(FrontierContract):
    """Four shards on one server: the same code as on a Cluster, in a third of the time."""

    gaps: ClassVar[Mapping[str, str]] = {
        "r6_a_member_that_fails_three_times_rests_for_all_lanes": "a shard counts failures in its own lanes",
        "r6_a_member_that_is_down_holds_up_no_other": "a shard counts failures in its own lanes",
        "r9_starts_through_a_member_keep_member_interval_over_all_lanes": "each shard has its part of the rate",
        "c7": "a chain keeps to one shard: tests/contract/test_redis_chains.py",
    }

    @pytest.fixture
    async def bench(self) -> AsyncIterator[ShardedBench]:
        bench = ShardedBench()
        yield bench
        await bench.close()


@pytest.mark.xdist_group("cluster")
class TestCluster(WORKER_CALLS):  # type: ignore[misc]
    gaps = TestShards.gaps

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
TestClusterMachine.pytestmark = [pytest.mark.timeout(120 + 5 * HISTORIES), pytest.mark.xdist_group("cluster")]
