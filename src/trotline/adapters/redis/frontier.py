"""The frontier of a fleet, in Redis or Valkey."""

import asyncio
import random
from collections.abc import Callable, Sequence

from trotline.adapters.redis import keys
from trotline.adapters.redis.connect import listener
from trotline.adapters.redis.console import RedisConsole
from trotline.adapters.redis.news import News
from trotline.adapters.redis.server import Client, Server
from trotline.adapters.redis.shard import Haul, Shard
from trotline.errors import FrontierError
from trotline.model.job import About, Job
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.moments import Moment, Seconds
from trotline.model.task import Task

LOOK: Seconds = 1.0
"""Whoever waits looks again after this at the latest."""
_MOST = 1000
"""Tasks of one call: longer batches go in several, so that no call keeps the server busy for long."""


class RedisFrontier(RedisConsole):
    """Keeps F1 to F16 with one script per call. Implements the Frontier and the Console ports."""

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
        self._shard = Shard(server, job, 0, 1, chance)
        super().__init__(server, job, self._shard)
        self._news = News(lambda: listener(client), [keys.news(self._shard.prefix)])

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        for task in tasks:
            if task.fingerprint == 0:
                raise FrontierError(f"{task.url} did not come through the gate: it has no identity")
        answers: list[Admission] = []
        for start in range(0, len(tasks), _MOST):
            answers += await self._shard.put(tasks[start : start + _MOST])
        return answers

    async def lease(self, worker: str, limit: int, wait: Seconds = 0.0) -> list[Lease]:
        if limit <= 0:
            return []
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        while True:
            self._news.forget()
            haul = await self._haul(worker, limit)
            left = until - loop.time()
            if haul.leases or haul.over or left <= 0:
                return haul.leases
            if not self._news.listening:
                # Listen first, then look once more: what came in between is not missed.
                await self._news.listen(min(left, LOOK))
                continue
            await self._news.wait(min(left, LOOK, haul.pause if haul.pause > 0 else LOOK))

    async def _haul(self, worker: str, limit: int) -> Haul:
        while True:
            haul = await self._shard.lease(worker, limit)
            if haul.leases or not haul.parked:
                return haul

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        return await self._shard.settle(worker, settlements) if settlements else []

    async def beat(self, worker: str, about: About | None = None) -> None:
        await self._shard.beat(worker, about)

    async def leave(self, worker: str, guilty: int | None = None, why: str = "", detail: str = "") -> int:
        return await self._shard.leave(worker, guilty, why, detail)

    async def seal(self) -> None:
        await self._shard.seal()

    async def announce_finish(self) -> bool:
        return await self._shard.announce()

    async def close(self) -> None:
        await self._news.close()
        await self._server.close()
