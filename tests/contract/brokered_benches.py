"""Brokered frontiers under contract: a broker, and the books on Redis."""

import random

from tests.contract.redis_servers import RedisBench
from tests.unit.frontier.memory_broker import MemoryBroker

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.open_job import open_books
from trotline.frontier.brokered import brokered
from trotline.model.job import LaneRules
from trotline.ports.broker import Broker
from trotline.testing.frontier_contract import BRISK, Client
from trotline.testing.frontier_contract.bench import client


class BrokeredBench(RedisBench):
    """A job whose tasks wait at a broker. Every client has connections of its own."""

    async def another_job(self, rules: LaneRules = BRISK) -> Client:
        jobs = RedisJobs(connect(self.url), now=self.clock, shards=self.shards, shelf=True)
        self._job = await jobs.start("contract", rules)
        await jobs.close()
        return await self.again()

    async def make_broker(self) -> Broker:
        raise NotImplementedError

    async def cut(self, broker: Broker) -> None:
        """Its process is killed: its connections end, and it does nothing more."""
        await broker.close()

    async def again(self) -> Client:
        assert self._job is not None, "open a job first"
        books = open_books(connect(self.url), self._job, now=self.clock, rng=random.Random(len(self._clients)))
        opened = client(brokered(books, await self.make_broker()))
        self._clients.append(opened)
        return opened


class MemoryBrokerBench(BrokeredBench):
    """The logic of the pump and of the books, without a broker."""

    def __init__(self) -> None:
        super().__init__()
        self.broker = MemoryBroker()

    async def another_job(self, rules: LaneRules = BRISK) -> Client:
        self.broker = MemoryBroker()
        return await super().another_job(rules)

    async def make_broker(self) -> Broker:
        return self.broker
