"""The frontier of a fleet, in Redis or Valkey."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence

from trotline.adapters.redis import keys
from trotline.adapters.redis.account_sessions import read_session, save_session
from trotline.adapters.redis.connect import listener
from trotline.adapters.redis.job_shards import JobShards
from trotline.adapters.redis.lease_result import LeaseResult
from trotline.adapters.redis.shard import Shard
from trotline.adapters.redis.sharding.chains import ChainLanes
from trotline.adapters.redis.sharding.finish import ended_with, read_counts
from trotline.adapters.redis.sharding.lease import ShardedLease
from trotline.adapters.redis.sharding.settle import ShardedSettle
from trotline.adapters.redis.wakeups import Wakeups
from trotline.errors import FrontierError
from trotline.model.job import State, WorkerInfo
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.ports.frontier import DIRECT
from trotline.rules import route_queues

LOOK: Seconds = 1.0
"""A waiting worker polls again after this at the latest,"""
IDLE_LOOK: Seconds = 15.0
"""and while there is nothing, twice as long each time, up to this: it is woken when there is."""


class RedisFrontier:
    """Keeps F1 to F21, and C1 to C7, with one script per call."""

    def __init__(self, parts: JobShards) -> None:
        self._parts = parts
        self._server = parts.server
        self._shards = parts.shards
        self._sharded_lease = ShardedLease(parts.shards)
        self._chain_lanes = ChainLanes(parts.shards, parts.home)
        self._sharded_settle = ShardedSettle(parts.shards, parts.home)
        self._wakeups = Wakeups(lambda: listener(parts.client), [keys.wakeups(shard.prefix) for shard in parts.shards])
        self._supply: Callable[[int], Awaitable[bool]] | None = None
        self._checked = False
        self._look = LOOK

    def set_supply(self, supply: Callable[[int], Awaitable[bool]]) -> None:
        """Called each time before the queues are looked at, with the number of tasks that are wanted."""
        self._supply = supply

    @property
    def generation(self) -> int:
        return self._server.generation

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        for task in tasks:
            if task.fingerprint == 0:
                raise FrontierError(f"{task.url} did not come through the gate: it has no identity")
        if not self._parts.several:
            return await self._shards[0].put(tasks)
        await self._chain_lanes.check(tasks)
        homes: dict[Shard, list[int]] = defaultdict(list)
        for place, task in enumerate(tasks):
            homes[self._parts.home(task.lane)].append(place)
        answers = await asyncio.gather(
            *(shard.put([tasks[place] for place in places]) for shard, places in homes.items())
        )
        by_place = {
            place: one
            for places, some in zip(homes.values(), answers, strict=True)
            for place, one in zip(places, some, strict=True)
        }
        return [by_place[place] for place in range(len(tasks))]

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        if limit <= 0:
            return []
        queues = ",".join(map(str, route_queues.wanted(self._parts.job.rules.queues, routes)))
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        while True:
            self._wakeups.forget()
            await self._sharded_settle.repeat()
            busy = self._supply is not None and await self._supply(limit)
            result = await self._lease(worker, limit, pools, queues)
            left = until - loop.time()
            if not result.leases and not self._checked:
                await self._check_shelf()
            if result.leases:
                self._look = LOOK
            if result.leases or (left <= 0 and not busy) or (result.over and await self.finished()):
                return result.leases
            if busy:
                continue
            if not self._wakeups.listening:
                # Subscribe first, then check once more, so that no wake-up is missed.
                await self._wakeups.listen(min(left, LOOK))
                continue
            # What waits at a broker is not announced.
            look = self._look if self._supply is None else LOOK
            woken = await self._wakeups.wait(min(left, look, result.pause if result.pause > 0 else look))
            if not woken and look > LOOK and loop.time() >= until:
                # The next call looks.
                return []
            self._look = min(IDLE_LOOK, 2 * self._look)

    async def _check_shelf(self) -> None:
        """A worker that does not know of the broker would wait for ever."""
        if self._supply is None and await self._server.ask("HGET", self._shards[0].key, "shelf") == b"1":
            raise FrontierError(
                f"the tasks of job {self._parts.job.id} wait at a broker; {self._server.place} keeps only its books",
                hint="Name the frontier that it was started with: --frontier 'amqp://...?books=redis://...'",
            )
        self._checked = True

    async def _lease(self, worker: str, limit: int, pools: Sequence[str], queues: str) -> LeaseResult:
        several = self._parts.several
        source = self._sharded_lease if several else self._shards[0]
        if several and not (limit := await self._parts.budgets.left(limit)):
            # Rescuing a dead worker's leases may make room again.
            result = await source.lease(worker, 0, pools, queues)
            return LeaseResult(result.leases, result.pause, over=True)
        while True:
            result = await source.lease(worker, limit, pools, queues)
            if result.leases or not result.parked:
                return result

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        if not settlements:
            return []
        if not self._parts.several:
            return await self._shards[0].settle(worker, settlements)
        return await self._sharded_settle.settle(worker, await self._chain_lanes.filtered(settlements))

    async def beat(self, worker: str, about: WorkerInfo | None = None) -> None:
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
        found = await self._server.ask("HGET", key, session)
        return found.decode() if found else ""

    async def read_session(self, worker: str, lease: Lease) -> bytes | None:
        return await read_session(self._parts.home(lease.task.lane), worker, lease)

    async def save_session(self, worker: str, lease: Lease, state: bytes) -> bool:
        return await save_session(self._parts.home(lease.task.lane), worker, lease, state)

    async def seal(self) -> None:
        await asyncio.gather(*(shard.seal() for shard in self._shards))

    async def finished(self) -> bool:
        if self._parts.several:
            at = await self._parts.ended_at()
            if at is not None or (await read_counts(self._server, self._parts.job)).state is State.CANCELLED:
                return True
            return bool(await self._parts.budgets.spent(await self._server.ask("HGET", self._shards[0].key, "budget")))
        finished_at, state, budget = await self._server.ask(
            "HMGET", self._shards[0].key, "finished_at", "state", "budget"
        )
        if state is None:
            raise FrontierError(
                f"no job {self._parts.job.id} at {self._server.place}", hint="See which there are: trotline jobs"
            )
        if finished_at is not None or state == State.CANCELLED.value.encode():
            return True
        return bool(await self._parts.budgets.spent(budget))

    async def announce_finish(self) -> bool:
        if not await self._announce():
            return False
        # Errors are ignored: the finish is announced by this worker only.
        with contextlib.suppress(FrontierError):
            for shard in self._shards:
                await shard.tidy()
        return True

    async def _announce(self) -> bool:
        if not self._parts.several:
            return await self._shards[0].announce()
        total = await ended_with(self._server, self._parts.job)
        return total is not None and (await self._shards[0].finish(total, announce=True))[1]

    async def close(self) -> None:
        await self._wakeups.close()
        await self._server.close()
