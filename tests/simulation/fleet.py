"""A whole crawl on virtual time over a job in several shards: the real scripts on a real server, the real code that
spreads over shards and finds the end, and a network that delays, loses and cuts between any two of its calls."""

import asyncio
import random
from collections.abc import Callable
from contextlib import ExitStack
from functools import lru_cache
from multiprocessing.util import Finalize
from typing import Any

from redis import Redis
from redis import exceptions as redis_errors

from tests.simulation.crawl import PACE, Crawl, Verdict
from tests.simulation.faults import CALM, Node, Temper
from tests.simulation.web import Web, spider_for
from trotline.adapters.redis import keys
from trotline.adapters.redis.connection_counter import Reconnects
from trotline.adapters.redis.jobs import RedisJobs
from trotline.model.job import Job, Progress
from trotline.model.time import Seconds
from trotline.testing.clients import redis_client
from trotline.testing.frontier_contract import Client
from trotline.testing.redis_server import WHEEL, RedisServer, redis
from trotline.testing.virtual_time import run_virtual

SHARDS = 3
HOSTS = 4
_NEAR: Seconds = 0.02
_FAR: Seconds = 1.0
"""A call or a reply travels up to this long, so that calls to several shards meet in any order."""
_OFTEN_FAR = 0.1
_LAG: Seconds = 2.0
"""A replica knows nothing of what happened within up to so long."""
_PER_CALL = Temper(crash=0.002, freeze=0.001, lost_reply=0.01, twice=0, slow=0.05)
"""A page takes a dozen calls here, so each of them goes wrong less often than a port's call elsewhere."""


@lru_cache
def server() -> RedisServer:
    """One for all crawls of this process."""
    running = ExitStack()
    # Not `atexit`: nobody calls that in the processes of a pool.
    Finalize(None, running.close, exitpriority=0)
    return running.enter_context(redis(WHEEL, {"appendonly": "no"}))


@lru_cache
def _connection() -> "Redis":
    return Redis(port=server().port)


def simulate_fleet(
    seed: int,
    *,
    temper: Temper | None = None,
    forgetful: bool = False,
    break_it: Callable[[Client], None] | None = None,
) -> Verdict:
    """Run one crawl. The same seed gives the same crawl. `forgetful`: now and then a replica takes over a shard, and
    knows nothing of what happened there last."""
    try:
        return run_virtual(_FleetCrawl(seed, temper or _PER_CALL, forgetful, break_it).run())
    finally:
        _connection().flushall()
        # A script or a function that is known already saves a call, and the next crawl would be another one.
        _connection().script_flush()
        _connection().function_flush()


class _FleetCrawl(Crawl):
    def __init__(self, seed: int, temper: Temper, forgetful: bool, break_it: Callable[[Client], None] | None) -> None:
        super().__init__(seed, temper, "", None)
        self.web = Web(seed, hosts=HOSTS, scattered=True)
        # As with every frontier that is a server: it may forget a page whose validator is kept elsewhere.
        self.spider = spider_for(self.web, f"{PACE:.0f}/s", conditional=False)
        self._forgetful = forgetful
        self._break_frontier = break_it
        self._reconnects = Reconnects()
        """Of everybody at once: when a replica takes over, all connect to it anew."""
        self._job: Job | None = None

    async def run(self) -> Verdict:
        self._word = asyncio.Lock()
        return await super().run()

    async def open_frontier(self) -> Client:
        jobs = RedisJobs(_Wire(), now=self.now, shards=SHARDS)  # type: ignore[arg-type]
        self._job = await jobs.start(self.spider.name, self.spider.rules)
        self._herald = asyncio.create_task(self._listen_for_the_end())
        if self._forgetful:
            self._failing = asyncio.create_task(self._fail_over())
        return self._open(_Wire())

    async def revive(self) -> int:
        async with self._word:
            revived = await super().revive()
            if revived:
                self.finishes = 0
        return revived

    async def _listen_for_the_end(self) -> None:
        """Somebody who asks all the time whether the end is to be told: a word that comes early is one too many."""
        frontier = self.frontier_of(Node("herald", random.Random(0), lambda: CALM))
        while True:
            async with self._word:
                self.finishes += await frontier.announce_finish()
            await asyncio.sleep(self.chance.uniform(0, 1))

    def frontier_of(self, node: Node) -> Client:
        return self._open(_Wire(node, random.Random(self.chance.random())))

    async def _fail_over(self) -> None:
        """In the first half of the job: one that forgets its last open tasks looks finished until they are repeated."""
        assert self._job is not None, "open_frontier comes first"
        chance = random.Random(self.seed)
        while self.web.rude:
            await asyncio.sleep(chance.uniform(1, 10))
            prefix = keys.part(chance.randrange(SHARDS))
            had = {key: _connection().dump(key) for key in sorted(_connection().scan_iter(_matching(prefix)))}
            await asyncio.sleep(chance.uniform(0, _LAG))
            if (await self.frontier.progress()).done > self.web.tasks // 2:
                return
            for key in sorted(_connection().scan_iter(_matching(prefix))):
                _connection().delete(key)
            for key, value in had.items():
                _connection().restore(key, 0, value)
            self._reconnects.count += 1

    def balanced(self, progress: Progress) -> bool:
        """A task that moves to another shard is in both of them for a moment, never in none."""
        if self._forgetful:
            return progress.admitted <= self.web.tasks + self.web.redirects
        moving = self.web.redirects
        return self.admitted - moving <= progress.admitted <= self.web.tasks + moving

    def _open(self, wire: "_Wire") -> Client:
        assert self._job is not None, "open_frontier comes first"
        chance = random.Random(self.chance.random())
        frontier = redis_client(wire, self._job, now=self.now, rng=chance)  # type: ignore[arg-type]
        own: Any = frontier.opened.frontier
        own._wakeups = _Deaf()
        own._server._reconnects = self._reconnects
        if self._break_frontier is not None:
            self._break_frontier(frontier)
        return frontier


class _Wire:
    """A client whose calls have their effect at once, on virtual time, with whatever goes wrong around them."""

    def __init__(self, node: Node | None = None, chance: random.Random | None = None) -> None:
        self._node = node
        self._chance = chance or random.Random(0)
        self.connection_pool = _connection().connection_pool
        """Looked at for the address, and for nothing else."""

    async def initialize(self) -> None:
        return

    async def aclose(self) -> None:
        return

    async def execute_command(self, *command: Any) -> Any:
        if self._node is None:
            return _ask(command)
        return await self._node.call("call", lambda: self._travel(command), _lost)

    async def _travel(self, command: tuple[Any, ...]) -> Any:
        assert self._node is not None, "nobody else travels"
        await self._way()
        await self._node.alive()
        try:
            return _ask(command)
        finally:
            await self._way()

    async def _way(self) -> None:
        farthest = _FAR if self._chance.random() < _OFTEN_FAR else _NEAR
        await asyncio.sleep(self._chance.uniform(0, farthest))


class _Deaf:
    """Nobody is told that there is work: everybody looks again in a while."""

    listening = True

    def forget(self) -> None:
        return

    async def wait(self, seconds: Seconds) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        return


def _ask(command: tuple[Any, ...]) -> Any:
    return _connection().execute_command(*command)


def _matching(prefix: str) -> str:
    """All keys of one shard, as a pattern."""
    return prefix.replace("{", "\\{").replace("}", "\\}") + "*"


def _lost() -> Exception:
    return redis_errors.ConnectionError("the reply got lost")
