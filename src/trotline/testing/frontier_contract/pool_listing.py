"""R8 (`ports.proxy_pools`) as operators see it: the pools that a frontier knows."""

from trotline.model.proxy_pool import RegisteredPool
from trotline.testing.frontier_contract.bench import Bench
from trotline.testing.frontier_contract.pool_bench import pool_with


class PoolListPromises:
    async def test_r8_registered_pools_are_listed_with_version_and_size(self, bench: Bench) -> None:
        await bench.open()
        pools = await bench.proxy_pools()
        assert await pools.pools() == []

        await pools.register(pool_with(1, 2, 3, name="isp", version=4.5))
        await pools.register(pool_with(*range(1, 8), name="datacenter", version=2.0, member_concurrency=1))
        await pools.register(pool_with(1, 9, name="isp", version=5.5))
        await pools.register(pool_with(7, name="isp", version=3.0))

        assert await pools.pools() == [
            RegisteredPool(name="datacenter", version=2.0, members=7),
            RegisteredPool(name="isp", version=5.5, members=2),
        ]
