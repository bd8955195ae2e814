"""A whole crawl on virtual time over PostgreSQL: the real statements on a real server, with delays, lost replies and
dead processes between any two of them, also in the middle of a transaction.

Statements run in a thread with an event loop of its own, while virtual time stands still. One that waits for a lock
lets virtual time go on.
"""

import asyncio
import itertools
import os
import random
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager
from functools import lru_cache
from multiprocessing.util import Finalize
from typing import Any

import asyncpg

from tests.simulation.crawl import PACE, Crawl, Verdict
from tests.simulation.faults import Node, Temper
from tests.simulation.web import Web, spider_for
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import parse
from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.adapters.postgres.pool import dial
from trotline.errors import FrontierUnreachable, TrotlineError
from trotline.model.job import Job
from trotline.model.time import Seconds
from trotline.testing.clients import postgres_client
from trotline.testing.frontier_contract import Client
from trotline.testing.postgres_server import WHEEL, PostgresServer, postgres
from trotline.testing.virtual_time import run_virtual

HOSTS = 4
_NEAR: Seconds = 0.02
_FAR: Seconds = 1.0
_OFTEN_FAR = 0.05
_LOCK_WITHIN: Seconds = 10.0
_IDLE_WITHIN: Seconds = 40.0
"""The server's timeouts, on virtual time."""
_PATIENCE: Seconds = 0.05
"""Real time after which a statement is taken for one that waits for a lock."""
_PER_CALL = Temper(crash=0.001, freeze=0.0005, lost_reply=0.004, twice=0, slow=0.05)
"""A page takes dozens of statements here, so each of them goes wrong less often than a port's call elsewhere."""
_numbers = itertools.count(1)


class _Thread:
    """An event loop on real time."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def start(self, step: Coroutine[Any, Any, Any]) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(step, self.loop)


@lru_cache
def _thread() -> _Thread:
    return _Thread()


@lru_cache
def server(build: str) -> PostgresServer:
    """One for all crawls of this process."""
    running = ExitStack()
    # Not `atexit`: nobody calls that in the processes of a pool.
    Finalize(None, running.close, exitpriority=0)
    return running.enter_context(postgres(build, {"fsync": "off", "max_connections": "300"}))


def simulate_postgres(seed: int, *, temper: Temper | None = None, build: str = WHEEL) -> Verdict:
    """Run one crawl."""
    crawl = _PostgresCrawl(seed, temper or _PER_CALL, build)
    try:
        return run_virtual(crawl.run())
    finally:
        crawl.drop()


class _PostgresCrawl(Crawl):
    def __init__(self, seed: int, temper: Temper, build: str) -> None:
        super().__init__(seed, temper, "", None)
        self.web = Web(seed, hosts=HOSTS)
        # As with every frontier that is a server: it may forget a page whose validator is kept elsewhere.
        self.spider = spider_for(self.web, f"{PACE:.0f}/s", conditional=False)
        self._address = parse(f"{server(build).url}?schema=sim{os.getpid()}_{next(_numbers)}&prepare=yes")
        self._job: Job | None = None
        self._wires: list[_Wire] = []

    async def open_frontier(self) -> Any:
        jobs = PostgresJobs(self._database(_Wire(self._address)))
        self._job = await jobs.start(self.spider.name, self.spider.rules)
        frontier: Any = _Patient(await self._open(_Wire(self._address)))
        self._herald = asyncio.create_task(self._listen_for_the_end(frontier))
        return frontier

    async def _listen_for_the_end(self, frontier: Any) -> None:
        """Somebody who asks all the time whether the end is to be told: a word that comes early is one too many."""
        while True:
            self.finishes += await frontier.announce_finish()
            await asyncio.sleep(self.chance.uniform(0, 1))

    async def revive(self) -> int:
        revived = await super().revive()
        if revived:
            self.finishes = 0
        return revived

    def frontier_of(self, node: Node) -> Any:
        return _Opening(lambda: self._open(_Wire(self._address, node, random.Random(self.chance.random()))))

    async def _open(self, wire: "_Wire") -> Client:
        assert self._job is not None, "open_frontier comes first"
        opened = await postgres_client(self._database(wire), self._job, rng=random.Random(self.chance.random()))
        own: Any = opened.opened.frontier
        own.store.wakeups = _Deaf()
        return opened

    def _database(self, wire: "_Wire") -> Database:
        self._wires.append(wire)
        database = Database(self._address, now=self.now)
        database._connections = wire  # type: ignore[assignment]
        return database

    def drop(self) -> None:
        for wire in self._wires:
            wire.cut()
        _thread().start(self._drop()).result(60)

    async def _drop(self) -> None:
        connection = await dial(self._address, "drop")
        await connection.execute(f"DROP SCHEMA IF EXISTS {self._address.quoted} CASCADE")
        await connection.close()


class _Patient:
    """The frontier of somebody who never dies: while a frozen node holds a lock, calls are repeated."""

    def __init__(self, frontier: Client) -> None:
        self._frontier = frontier

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **options: Any) -> Any:
            while True:
                try:
                    return await getattr(self._frontier, name)(*args, **options)
                except FrontierUnreachable:
                    await asyncio.sleep(0.5)

        return call


class _Opening:
    """A frontier that is opened by its first call: a node has it before it can wait for anything. A call whose opening
    failed, because a reply was lost, is one that did not reach it; the next call opens it again."""

    generation = 0

    def __init__(self, open_it: Callable[[], Coroutine[Any, Any, Client]]) -> None:
        self._open_it = open_it
        self._opening: asyncio.Task[Client] | None = None

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **options: Any) -> Any:
            return await getattr(await self._opened(), name)(*args, **options)

        return call

    async def _opened(self) -> Client:
        if self._opening is None or (self._opening.done() and self._opening.exception() is not None):
            self._opening = asyncio.ensure_future(self._open_it())
        return await asyncio.shield(self._opening)


class _Wire:
    """The connections of one process."""

    def __init__(self, address: Any, node: Node | None = None, chance: random.Random | None = None) -> None:
        self._address = address
        self._node = node
        self._chance = chance or random.Random(0)
        self._free: list[_Link] = []
        self._all: list[_Link] = []
        self.broken = 0
        self.direct = True

    @asynccontextmanager
    async def session(self) -> AsyncIterator["_Link"]:
        link = self._free.pop() if self._free else self._dial()
        try:
            yield link
        except BaseException as error:
            if isinstance(error, asyncpg.PostgresError | TrotlineError) and link.in_order():
                self._free.append(link)
            else:
                link.terminate()
                self.broken += 1
            raise
        self._free.append(link)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["_Link"]:
        """For the creation of the tables."""
        async with self.session() as link:
            await link.execute("BEGIN")
            yield link
            await link.execute("COMMIT")

    async def close(self) -> None:
        self.cut()

    def cut(self) -> None:
        for link in self._all:
            link.terminate()

    def _dial(self) -> "_Link":
        link = _Link(_thread().start(dial(self._address, "simulation")).result(30), self._node, self._chance)
        self._all.append(link)
        return link


class _Link:
    """A connection. Its statements have their effect at once, on virtual time, unless they wait for a lock."""

    def __init__(self, real: Any, node: Node | None, chance: random.Random) -> None:
        self._real = real
        self._node = node
        self._chance = chance
        self._used_at = 0.0
        self._given_up = False
        """A statement of it may still run."""

    async def execute(self, *args: Any) -> Any:
        return await self._call("execute", args)

    async def fetch(self, *args: Any) -> Any:
        return await self._call("fetch", args)

    async def fetchrow(self, *args: Any) -> Any:
        return await self._call("fetchrow", args)

    async def fetchval(self, *args: Any) -> Any:
        return await self._call("fetchval", args)

    def in_order(self) -> bool:
        return not self._given_up and not self._real.is_closed() and not self._real.is_in_transaction()

    def terminate(self) -> None:
        _thread().loop.call_soon_threadsafe(self._real.terminate)

    async def _call(self, kind: str, args: tuple[Any, ...]) -> Any:
        if self._node is None:
            return await self._ask(kind, args)
        return await self._node.call("call", lambda: self._travel(kind, args), _lost)

    async def _travel(self, kind: str, args: tuple[Any, ...]) -> Any:
        assert self._node is not None, "nobody else travels"
        await asyncio.sleep(self._chance.uniform(0, _NEAR))
        await self._node.alive()
        now = asyncio.get_running_loop().time()
        if self._real.is_in_transaction() and now - self._used_at > _IDLE_WITHIN:
            raise asyncpg.ConnectionDoesNotExistError("idle in transaction for too long")
        try:
            return await self._ask(kind, args)
        finally:
            self._used_at = asyncio.get_running_loop().time()
            farthest = _FAR if self._chance.random() < _OFTEN_FAR else _NEAR
            await asyncio.sleep(self._chance.uniform(0, farthest))

    async def _ask(self, kind: str, args: tuple[Any, ...]) -> Any:
        answer = _thread().start(getattr(self._real, kind)(*args))
        until = asyncio.get_running_loop().time() + _LOCK_WITHIN
        patience = _PATIENCE
        while True:
            try:
                return answer.result(patience)
            except TimeoutError:
                if answer.done():
                    raise
            if asyncio.get_running_loop().time() > until:
                self._given_up = answer.cancel()
                raise asyncpg.LockNotAvailableError("canceling statement due to lock timeout")
            patience = 0.02
            await asyncio.sleep(0.1)


class _Deaf:
    """Nobody is told that there is work: everybody looks again in a while."""

    def forget(self) -> None:
        return

    def notify(self, job: int) -> None:
        return

    async def listen(self, job: int, patience: Seconds) -> None:
        return

    async def wait(self, seconds: Seconds) -> bool:
        await asyncio.sleep(min(seconds, 1.0))
        return True

    def found(self) -> None:
        return

    async def close(self) -> None:
        return


def _lost() -> Exception:
    return asyncpg.ConnectionDoesNotExistError("the reply got lost")
