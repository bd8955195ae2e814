"""Brokered frontiers under contract: a broker, and the books on Redis or PostgreSQL."""

import random

from tests.contract.postgres_frontiers import WheelBench
from tests.contract.redis_servers import RedisBench, server
from tests.unit.frontier.memory_broker import MemoryBroker

from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.adapters.postgres.frontier.open_job import open_books as postgres_books
from trotline.adapters.postgres.frontier.open_job import open_job as postgres_job
from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.open_job import open_books, open_job
from trotline.frontier.brokered_frontier import brokered
from trotline.model.job import Job, LaneRules
from trotline.ports.broker import Broker
from trotline.testing.frontier_contract import BRISK, Client
from trotline.testing.frontier_contract.bench import client


class AtBroker:
    """Where the tasks of a job wait."""

    _job: Job | None

    def __init__(self, **of_books: bool) -> None:
        super().__init__(**of_books)
        self._jobs: list[Job] = []

    def use(self, job: Job) -> None:
        """Clients are of this job from now on."""
        self._job = job
        self._jobs.append(job)

    async def make_broker(self) -> Broker:
        raise NotImplementedError

    async def cut(self, broker: Broker) -> None:
        """Its process is killed: its connections end, and it does nothing more."""
        await broker.close()

    async def forget_queues(self) -> None:
        """Of every job: one of the next test may have the same name."""
        for job in self._jobs:
            self._job = job
            broker = await self.make_broker()
            await broker.forget()
            await broker.close()


class BrokeredBench(AtBroker, RedisBench):
    """A job whose tasks wait at a broker, with its books on Redis. Every client has connections of its own."""

    async def another_job(self, rules: LaneRules = BRISK) -> Client:
        jobs = RedisJobs(connect(self.url), now=self.clock, shards=self.shards, shelf=True)
        self.use(await jobs.start("contract", rules))
        await jobs.close()
        return await self.again()

    async def again(self) -> Client:
        assert self._job is not None, "open a job first"
        books = open_books(connect(self.url), self._job, now=self.clock, rng=random.Random(len(self._clients)))
        opened = client(brokered(books, await self.make_broker()))
        self._clients.append(opened)
        return opened

    async def direct(self) -> Client:
        """A client of the books alone."""
        assert self._job is not None
        return client(open_job(connect(self.url), self._job, now=self.clock))

    async def kept(self) -> str:
        """Where the books have something."""
        return str(server(self.build).command("KEYS", "*"))


class PostgresBooksBench(AtBroker, WheelBench):
    """The same with its books on PostgreSQL."""

    def __init__(self) -> None:
        super().__init__(shared=True)

    async def another_job(self, rules: LaneRules = BRISK) -> Client:
        jobs = PostgresJobs(self.database(), shelf=True)
        self.use(await jobs.start("contract", rules))
        await jobs.close()
        return await self.again()

    async def again(self) -> Client:
        assert self._job is not None, "open a job first"
        books = await postgres_books(self.database(), self._job, rng=random.Random(len(self._clients)))
        opened = client(brokered(books, await self.make_broker()))
        self._clients.append(opened)
        return opened

    async def direct(self) -> Client:
        assert self._job is not None
        return client(await postgres_job(self.database(), self._job))

    async def kept(self) -> str:
        assert self._job is not None
        number = self._job.id.rpartition("-")[2]
        database = self.database()
        counts = ", ".join(
            f"(SELECT count(*) FROM {name}_{number}) AS {name}"  # noqa: S608 - our own names
            for name in ("parcel", "unsent", "onshelf")
        )
        async with database.transaction() as db:
            row = await db.fetchrow(f"SELECT {counts}")
        await database.close()
        return str([name for name, count in row.items() if count])


class InMemory(AtBroker):
    """The logic of the pump and of the books, without a broker."""

    def __init__(self) -> None:
        super().__init__()
        self.broker = MemoryBroker()

    async def another_job(self, rules: LaneRules = BRISK) -> Client:
        self.broker = MemoryBroker()
        opened: Client = await super().another_job(rules)  # type: ignore[misc]
        return opened

    async def make_broker(self) -> Broker:
        return self.broker


class MemoryBrokerBench(InMemory, BrokeredBench):
    pass


class MemoryPostgresBench(InMemory, PostgresBooksBench):
    pass


AnyBrokeredBench = BrokeredBench | PostgresBooksBench
