"""The frontiers under contract: how each is opened, and how its clock is turned."""

import os
import random
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.postgres_servers import anywhere, everywhere, postgres_servers  # noqa: F401 - fixtures
from tests.contract.queue_bench import place, queue  # noqa: F401 - fixtures

from trotline.adapters.sqlite.database import Database
from trotline.adapters.sqlite.frontier import SqliteFrontier
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.proxy_pools import SqliteProxyPools
from trotline.model.job import Job, LaneRules
from trotline.model.time import Moment, Seconds
from trotline.ports.proxy_pools import ProxyPools
from trotline.testing.clients import sqlite_client
from trotline.testing.clocks import ServerClock
from trotline.testing.frontier_contract import BRISK, Client

SERVERS = re.compile(
    r"redis|valkey|rabbitmq|sqs|broker|cluster|sharded|postgres|outbox|shared_cache|s3|\b(debian|wheel)\b",
    re.IGNORECASE,
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where no server may be started, do not even import the files whose tests all need one."""
    without = "not server" in config.getoption("markexpr")
    return True if without and SERVERS.search(collection_path.stem) and collection_path.suffix == ".py" else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what starts a server: the names of these tests say so, or the fixtures that they use."""
    name = f"{item.path.name}::{item.nodeid.partition('::')[2]}"
    if SERVERS.search(name) or "postgres_servers" in getattr(item, "fixturenames", ()):
        item.add_marker("server")


BOOKS_ONLY = re.compile(r"::Test(?:SQS|RabbitMQ)::test_(?:[crna]\d|f(?:[6-9]|13|16|18|19|20|21)_)")
"""Chains, notes, proxies, accounts, settling, pace and routes are the books' alone, and tested with a broker in memory
and without one."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """SOAK=1, and scripts/guarantees.py, run them on RabbitMQ and SQS, too."""
    if os.environ.get("SOAK"):
        return
    left_out = [item for item in items if BOOKS_ONLY.search(item.nodeid)]
    if left_out:
        items[:] = [item for item in items if not BOOKS_ONLY.search(item.nodeid)]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="module")
def patient_brokers() -> Iterator[None]:
    """On a busy machine a broker takes seconds for an answer, and a lease that goes on without it finds nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trotline.frontier.broker_pump.PATIENCE", 15.0)
        yield


class SqliteFileBench:
    """A job in a file. Every client has a connection and a thread of its own, as another process would."""

    durable = True

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="trotline-contract-")
        self._path = ""
        self._files = 0
        self._clients: list[Client] = []
        self._pools: list[ProxyPools] = []
        self._job: Job | None = None
        self.clock = ServerClock()

    async def open(self, rules: LaneRules = BRISK) -> Client:
        self._files += 1
        self._path = str(Path(self._folder.name) / f"frontier-{self._files}.db")
        return await self.another_job(rules)

    async def another_job(self, rules: LaneRules = BRISK) -> Client:
        jobs = SqliteJobs(self._path, now=self.clock)
        self._job = await jobs.start("contract", rules)
        await jobs.close()
        return await self.again()

    async def again(self) -> Client:
        assert self._job is not None, "open a job first"
        client = self.make(self._path, self._job)
        self._clients.append(client)
        return client

    def make(self, path: str, job: Job) -> Client:
        return sqlite_client(path, job, now=self.clock, rng=random.Random(len(self._clients)))

    async def proxy_pools(self) -> ProxyPools:
        pools = SqliteProxyPools(Database(self._path, now=self.clock))
        self._pools.append(pools)
        return pools

    async def crash(self, client: Client) -> None:
        # What the kernel does for a process that was killed: its connections end, its transactions roll back.
        self._clients.remove(client)
        await client.close()

    def jump(self, seconds: Seconds) -> None:
        self.clock.jump(seconds)

    def now(self) -> Moment:
        return self.clock()

    async def close(self) -> None:
        for opened in (*self._clients, *self._pools):
            await opened.close()
        self._folder.cleanup()


class SqliteMemoryBench:
    """A job in memory: one process, one handle, so that every "other client" is the same object."""

    durable = False

    def __init__(self) -> None:
        self._client: Client | None = None
        self.clock = ServerClock()

    async def open(self, rules: LaneRules = BRISK) -> Client:
        await self.close()
        job = Job(id="contract-1", spider="contract", started_at=self.clock(), rules=rules)
        self._client = sqlite_client(":memory:", job, now=self.clock, rng=random.Random(1), inline=True)
        return self._client

    async def another_job(self, rules: LaneRules = BRISK) -> Client:
        raise AssertionError("a memory has one job")

    async def again(self) -> Client:
        assert self._client is not None, "open a job first"
        return self._client

    async def proxy_pools(self) -> ProxyPools:
        frontier = (await self.again()).opened.frontier
        assert isinstance(frontier, SqliteFrontier)
        return frontier.proxy_pools()

    async def crash(self, client: Client) -> None:
        raise AssertionError("a job in memory dies with its process")

    def jump(self, seconds: Seconds) -> None:
        self.clock.jump(seconds)

    def now(self) -> Moment:
        return self.clock()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None
