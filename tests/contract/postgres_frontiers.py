"""The frontier in PostgreSQL under contract: one server for all tests of a build, and a schema for each bench."""

import asyncio
import atexit
import itertools
import os
import random
from contextlib import ExitStack
from functools import lru_cache

import asyncpg

from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import parse
from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.adapters.postgres.frontier.open_job import open_job
from trotline.adapters.postgres.frontier.proxy_pools import PostgresProxyPools
from trotline.adapters.postgres.sink_url import Address
from trotline.model.job import Job, LaneRules
from trotline.model.time import Moment, Seconds
from trotline.ports.proxy_pools import ProxyPools
from trotline.testing.clocks import ServerClock
from trotline.testing.frontier_contract import BRISK, Client, client
from trotline.testing.postgres_server import DEBIAN, WHEEL, PostgresServer, pgbouncer, postgres

_running = ExitStack()
atexit.register(_running.close)
_numbers = itertools.count(1)
_EMPTY = """
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '{schema}' AND tablename <> 'meta' LOOP
        IF name ~ '_[0-9]+$' THEN
            EXECUTE format('DROP TABLE IF EXISTS {schema}.%I', name);
        ELSE
            EXECUTE format('DELETE FROM {schema}.%I', name);
        END IF;
    END LOOP;
END $$
"""
"""A new frontier in the same schema: to create its tables again would take longer than most tests."""


@lru_cache
def server(build: str) -> PostgresServer:
    """The server of this build; it lives as long as the tests do."""
    # Nothing here cuts the power: a server without fsync forgets no more than one with it.
    return _running.enter_context(postgres(build, {"fsync": "off", "max_connections": "200"}))


@lru_cache
def bouncer() -> str:
    return _running.enter_context(pgbouncer(server(DEBIAN), pool=10))


class PostgresBench:
    """A job on a server. Every client has connections of its own, as another process would."""

    durable = True
    build = DEBIAN

    def __init__(self, *, shared: bool = False) -> None:
        """`shared`: in the schema that the benches of its kind use in turn, for tests that leave its tables whole."""
        self._shared = shared
        self._address: Address | None = None
        self._clients: list[Client] = []
        self._pools: list[ProxyPools] = []
        self._job: Job | None = None
        self.clock = ServerClock()

    def place(self) -> str:
        return server(self.build).url

    def database(self) -> Database:
        assert self._address is not None, "open a job first"
        return Database(self._address, now=self.clock)

    async def open(self, rules: LaneRules = BRISK) -> Client:
        used = self._address is not None
        if self._address is None:
            name = type(self).__name__.lower() if self._shared else str(next(_numbers))
            self._address = parse(f"{self.place()}?schema=f{os.getpid()}_{name}{self.options()}")
        if used or self._shared:
            await self._execute(_EMPTY.format(schema=self._address.schema))
        return await self.another_job(rules)

    def options(self) -> str:
        return "&prepare=yes"

    async def another_job(self, rules: LaneRules = BRISK) -> Client:
        jobs = PostgresJobs(self.database())
        self._job = await jobs.start("contract", rules)
        await jobs.close()
        return await self.again()

    async def again(self) -> Client:
        assert self._job is not None, "open a job first"
        opened = client(await open_job(self.database(), self._job, rng=random.Random(len(self._clients))))
        self._clients.append(opened)
        return opened

    async def proxy_pools(self) -> ProxyPools:
        pools = PostgresProxyPools(self.database())
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
        for each in (*self._clients, *self._pools):
            await each.close()
        if not self._shared:
            await self._drop()

    async def _drop(self) -> None:
        """A schema has some tables per job: thousands of them would slow the server down."""
        if self._address is not None:
            await self._execute(f"DROP SCHEMA IF EXISTS {self._address.quoted} CASCADE")
            self._address = None

    async def _execute(self, text: str) -> None:
        assert self._address is not None, "open a job first"
        secret = self._address.password
        connection = await asyncpg.connect(self._address.dsn, password=secret.reveal() if secret else None)
        try:
            async with asyncio.timeout(60):
                await connection.execute(text)
        finally:
            await connection.close()


class WheelBench(PostgresBench):
    build = WHEEL


class BouncerBench(PostgresBench):
    """Behind pgbouncer in transaction mode, which knows no prepared statements."""

    def place(self) -> str:
        return bouncer()

    def options(self) -> str:
        return "&prepare=no"
