"""Redis and Valkey under contract: one server for all tests of a build. Each begins with it empty: jobs share lanes."""

import atexit
import random
from contextlib import ExitStack
from functools import lru_cache

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.model.job import Job, LaneRules
from trotline.model.time import Moment, Seconds
from trotline.ports.proxy_pools import ProxyPools
from trotline.testing.clients import redis_client
from trotline.testing.clocks import ServerClock
from trotline.testing.frontier_contract import BRISK, Client
from trotline.testing.redis_server import DEBIAN, WHEEL, RedisCluster, RedisServer, redis, redis_cluster

_running = ExitStack()
atexit.register(_running.close)


@lru_cache
def server(build: str) -> RedisServer:
    """The server of this build; it lives as long as the tests do."""
    return _running.enter_context(redis(build))


class RedisBench:
    """A job on a server. Every client has connections of its own, as another process would."""

    durable = True
    build = DEBIAN
    shards = 1

    def __init__(self) -> None:
        self.url = self.place()
        self._clients: list[Client] = []
        self._pools: list[ProxyPools] = []
        self._job: Job | None = None
        self.clock = ServerClock()

    def place(self) -> str:
        server(self.build).command("FLUSHALL")
        return server(self.build).url

    async def open(self, rules: LaneRules = BRISK) -> Client:
        self.place()
        return await self.another_job(rules)

    async def another_job(self, rules: LaneRules = BRISK) -> Client:
        jobs = RedisJobs(connect(self.url), now=self.clock, shards=self.shards)
        self._job = await jobs.start("contract", rules)
        await jobs.close()
        return await self.again()

    async def again(self) -> Client:
        assert self._job is not None, "open a job first"
        client = redis_client(connect(self.url), self._job, now=self.clock, rng=random.Random(len(self._clients)))
        self._clients.append(client)
        return client

    async def proxy_pools(self) -> ProxyPools:
        jobs = RedisJobs(connect(self.url), now=self.clock, shards=self.shards)
        pools = await jobs.proxy_pools()
        self._pools.append(pools)
        return pools

    async def crash(self, client: Client) -> None:
        # What the kernel does for a process that was killed: its connections end.
        self._clients.remove(client)
        await client.close()

    def jump(self, seconds: Seconds) -> None:
        self.clock.jump(seconds)

    def now(self) -> Moment:
        return self.clock()

    async def close(self) -> None:
        for each in (*self._clients, *self._pools):
            await each.close()


class ValkeyBench(RedisBench):
    build = WHEEL


class ShardedBench(RedisBench):
    """A job in several parts, all of them on one server."""

    shards = 4


@lru_cache
def nodes() -> RedisCluster:
    """A Cluster with three primaries and their replicas; it lives as long as the tests do."""
    return _running.enter_context(redis_cluster())


def cluster() -> str:
    return nodes().url


class ClusterBench(RedisBench):
    """A job spread over a Cluster of six nodes."""

    shards = 4

    def place(self) -> str:
        for node in nodes().primaries:
            node.command("FLUSHALL")
        return cluster()
