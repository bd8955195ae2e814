"""The frontier of a fleet, in Redis or Valkey."""

import asyncio
import contextlib
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

from trotline.adapters.redis import keys
from trotline.adapters.redis.connect import listener
from trotline.adapters.redis.console import RedisConsole
from trotline.adapters.redis.lease_result import Haul
from trotline.adapters.redis.server import Client, Server
from trotline.adapters.redis.shard import Shard
from trotline.adapters.redis.sharding.finish import ended_with
from trotline.adapters.redis.sharding.lease import Rounds
from trotline.adapters.redis.sharding.settle import Spread
from trotline.adapters.redis.wakeups import News
from trotline.errors import FrontierError
from trotline.model.job import About, Job
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds

LOOK: Seconds = 1.0
"""Whoever waits looks again after this at the latest."""


class RedisFrontier(RedisConsole):
    """Keeps F1 to F20 with one script per call. Implements the Frontier and the Console ports."""

    def __init__(
        self,
        client: Client,
        job: Job,
        *,
        now: Callable[[], Moment] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        server = Server(client, now=now)
        chance = rng or random.Random()  # noqa: S311 - spreads waiting times, guards nothing
        super().__init__(server, job, [Shard(server, job, number, job.shards, chance) for number in range(job.shards)])
        self._rounds = Rounds(self._shards)
        self._spread = Spread(self._shards, self._home)
        self._news = News(lambda: listener(client), [keys.news(shard.prefix) for shard in self._shards])

    @property
    def generation(self) -> int:
        return self._server.generation

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        for task in tasks:
            if task.fingerprint == 0:
                raise FrontierError(f"{task.url} did not come through the gate: it has no identity")
        if len(self._shards) == 1:
            return await self._shards[0].put(tasks)
        homes: dict[Shard, list[int]] = defaultdict(list)
        for place, task in enumerate(tasks):
            homes[self._home(task.lane)].append(place)
        answers = await asyncio.gather(
            *(shard.put([tasks[place] for place in places]) for shard, places in homes.items())
        )
        told = {
            place: one
            for places, some in zip(homes.values(), answers, strict=True)
            for place, one in zip(places, some, strict=True)
        }
        return [told[place] for place in range(len(tasks))]

    async def lease(self, worker: str, limit: int, wait: Seconds = 0.0) -> list[Lease]:
        if limit <= 0:
            return []
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        while True:
            self._news.forget()
            await self._spread.repeat()
            haul = await self._haul(worker, limit)
            left = until - loop.time()
            if haul.leases or left <= 0 or (haul.over and await self.finished()):
                return haul.leases
            if not self._news.listening:
                # Listen first, then look once more: what came in between is not missed.
                await self._news.listen(min(left, LOOK))
                continue
            await self._news.wait(min(left, LOOK, haul.pause if haul.pause > 0 else LOOK))

    async def _haul(self, worker: str, limit: int) -> Haul:
        several = len(self._shards) > 1
        source = self._rounds if several else self._shards[0]
        if several and not (limit := await self._budgets.left(limit)):
            # Somebody may have to be rescued, and then there is room again.
            haul = await source.lease(worker, 0)
            return Haul(haul.leases, haul.pause, over=True)
        while True:
            haul = await source.lease(worker, limit)
            if haul.leases or not haul.parked:
                return haul

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        if not settlements:
            return []
        if len(self._shards) == 1:
            return await self._shards[0].settle(worker, settlements)
        return await self._spread.settle(worker, settlements)

    async def beat(self, worker: str, about: About | None = None) -> None:
        await asyncio.gather(*(shard.beat(worker, about) for shard in self._shards))

    async def leave(self, worker: str, guilty: int | None = None, why: str = "", detail: str = "") -> int:
        return sum(await asyncio.gather(*(shard.leave(worker, guilty, why, detail) for shard in self._shards)))

    async def holds(self, worker: str, tokens: Collection[int]) -> int:
        return sum(await asyncio.gather(*(shard.holds(worker, tokens) for shard in self._shards)))

    async def session_home(self, session: str, home: str = "") -> str:
        key = f"{self._shards[0].prefix}sessions"
        if home:
            await self._server.ask("HSET", key, session, home)
            return home
        told = await self._server.ask("HGET", key, session)
        return told.decode() if told else ""

    async def seal(self) -> None:
        await asyncio.gather(*(shard.seal() for shard in self._shards))

    async def announce_finish(self) -> bool:
        if not await self._announce():
            return False
        # The word is ours now, and nobody else gives it: a server that is away for this must not keep us from it.
        with contextlib.suppress(FrontierError):
            for shard in self._shards:
                await shard.tidy()
        return True

    async def _announce(self) -> bool:
        if len(self._shards) == 1:
            return await self._shards[0].announce()
        total = await ended_with(self._server, self.job)
        return total is not None and (await self._shards[0].finish(total, announce=True))[1]

    async def close(self) -> None:
        await self._news.close()
        await self._server.close()
