"""The operator's view of one job on a server."""

import asyncio
import heapq
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
from xxhash import xxh3_64_intdigest

from trotline.adapters.redis import seen_memory
from trotline.adapters.redis.budgets import Budgets
from trotline.adapters.redis.delete_job import pairs
from trotline.adapters.redis.graveyard import Graveyard
from trotline.adapters.redis.lane_view import lane_pace, views
from trotline.adapters.redis.priority_levels import waiting_in_more
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.server import Server
from trotline.adapters.redis.shard import Shard
from trotline.adapters.redis.sharding.finish import ended_with, look
from trotline.adapters.redis.trace_task import find
from trotline.errors import FrontierError
from trotline.model.job import About, Budget, Grave, Job, LanePace, LaneView, Progress, State, Whereabouts, WorkerView
from trotline.model.pace import Pace
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.rules import grave_view, redaction

_PAGE = 500


class RedisConsole:
    """Look at a job and steer it. Implements the Console port."""

    def __init__(self, server: Server, job: Job, shards: Sequence[Shard]) -> None:
        self._server = server
        self.job = job
        self._shards = shards
        self._graveyard = Graveyard(shards)
        self._budgets = Budgets(server, [shard.key for shard in shards])

    def _home(self, lane: str) -> Shard:
        """The shard that keeps this lane."""
        if len(self._shards) == 1:
            return self._shards[0]
        return self._shards[xxh3_64_intdigest(lane.encode()) % len(self._shards)]

    async def progress(self) -> Progress:
        looks = await asyncio.gather(*(self._server.run(script("look"), shard.key) for shard in self._shards))
        now, _, _, _, _, _, state, _, started_at, finished_at, _, _ = looks[0]
        waiting, leased, done, dead, delayed = (sum(view[place] for view in looks) for place in range(1, 6))
        tallies: Counter[str] = Counter()
        examples: dict[str, str] = {}
        for *_, counted, urls in looks:
            tallies.update({name: int(count) for name, count in _texts(counted).items()})
            examples = _texts(urls) | examples
        if len(self._shards) > 1:
            finished_at = await self._ended_at()
        return Progress(
            waiting=waiting,
            leased=leased,
            done=done,
            dead=dead,
            delayed=delayed,
            tallies=dict(tallies),
            examples={name: redaction.url(url, self.job.rules.redact) for name, url in examples.items()},
            started_at=float(started_at),
            now=now / 1e6,
            sealed=all(view[7] for view in looks),
            finished_at=float(finished_at) if finished_at else None,
            state=State(state.decode()),
            seen=await seen_memory.told(self._server, self.job, [shard.prefix for shard in self._shards]),
            budget=await self._budgets.read(),
        )

    async def finished(self) -> bool:
        if len(self._shards) > 1:
            at = await self._ended_at()
            if at is not None or (await look(self._server, self.job)).state is State.CANCELLED:
                return True
            return bool(await self._budgets.spent(await self._server.ask("HGET", self._shards[0].key, "budget")))
        finished_at, state, budget = await self._server.ask(
            "HMGET", self._shards[0].key, "finished_at", "state", "budget"
        )
        if state is None:
            raise FrontierError(
                f"no job {self.job.id} at {self._server.place}", hint="See which there are: trotline jobs"
            )
        if finished_at is not None or state == State.CANCELLED.value.encode():
            return True
        return bool(await self._budgets.spent(budget))

    async def _ended_at(self) -> Moment | None:
        """When a job with several shards ended; the first that sees it writes it down."""
        total = await ended_with(self._server, self.job)
        return None if total is None else (await self._shards[0].finish(total))[0]

    async def lanes(self, limit: int = 20) -> list[LaneView]:
        now = await self._server.now()
        found: list[tuple[tuple[bool, bool, int], LaneView]] = []
        async for view in self._all_lanes(now):
            if view.waiting + view.leased:
                found.append(((view.state is not State.RUNNING, view.rests_for > 0, view.waiting), view))
            if len(found) > 4 * limit + _PAGE:
                found = heapq.nlargest(limit, found, key=lambda each: each[0])
        return [view for _, view in heapq.nlargest(limit, found, key=lambda each: each[0])]

    async def _all_lanes(self, now: Moment) -> AsyncIterator[LaneView]:
        for shard in self._shards:
            cursor = ""
            while cursor != "0":
                told, *lanes = await self._server.run(script("lanes_view"), shard.key, cursor or "0", _PAGE)
                for view, record in views(lanes, now):
                    more = await waiting_in_more(self._server, shard.prefix, view.lane, record) if record.more else 0
                    yield msgspec.structs.replace(view, waiting=view.waiting + more) if more else view
                cursor = told.decode()
            for view in (await self._only_visited(shard, now)).values():
                yield view

    async def _only_visited(self, shard: Shard, now: Moment) -> dict[str, LaneView]:
        """Lanes of which the last tasks are being visited."""
        found: dict[str, LaneView] = {}
        for worker in await self._server.ask("ZRANGE", f"{shard.prefix}workers", 0, -1):
            cursor = ""
            while cursor != "0":
                told, *lanes = await self._server.run(script("lanes_held"), shard.key, worker, cursor or "0", _PAGE)
                found |= {view.lane: view for view, _ in views(lanes, now)}
                cursor = told.decode()
        return found

    async def pause(self, lane: str | None = None) -> None:
        await self._steer(State.PAUSED, lane)

    async def resume(self, lane: str | None = None) -> None:
        await self._steer(State.RUNNING, lane)

    async def drain(self, lane: str | None = None) -> None:
        await self._steer(State.DRAINING, lane)

    async def cancel(self, lane: str | None = None) -> int:
        return await self._steer(State.CANCELLED, lane)

    async def _steer(self, wanted: State, lane: str | None) -> int:
        """How many tasks were buried."""
        shards = self._shards if lane is None else [self._home(lane)]
        return sum(await asyncio.gather(*(shard.steer(wanted.value, lane) for shard in shards)))

    async def set_budget(self, budget: Budget) -> None:
        await self._budgets.write(budget)

    async def set_high_water(self, waiting: int) -> None:
        for shard in self._shards:
            await self._server.ask("HSET", shard.key, "high_water", waiting)

    async def set_pace(self, lane: str, pace: Pace | None) -> None:
        await self._home(lane).steer("pace", lane, pace)

    async def lane_pace(self, lane: str) -> LanePace | None:
        told = await self._server.run(script("lane_pace"), self._home(lane).key, lane)
        return lane_pace(lane, told, await self._server.now()) if told else None

    async def workers(self) -> list[WorkerView]:
        crews = await asyncio.gather(*(shard.crew() for shard in self._shards))
        merged: dict[str, WorkerView] = {}
        for view in (each for crew in crews for each in crew):
            other = merged.get(view.name)
            merged[view.name] = view if other is None else _together(view, other)
        return list(merged.values())

    async def whereabouts(self, task: Task) -> Whereabouts:
        return await find(self._home(task.lane), task, self.job.rules.redact)

    async def graves(self, why: str = "", limit: int = 100, after: str = "") -> list[Grave]:
        return [self._shown(grave) for grave in await self._graveyard.read(why, limit, after)]

    def _shown(self, grave: Grave) -> Grave:
        return grave_view.shown(grave, self.job.rules.redact)

    async def reasons(self) -> dict[str, int]:
        return await self._graveyard.reasons()

    async def revive(self, ids: Sequence[str] = (), why: str = "") -> int:
        return await self._graveyard.revive(ids, why)


def _together(one: WorkerView, other: WorkerView) -> WorkerView:
    """A worker as two shards know it."""
    last = one if one.silent_for <= other.silent_for else other
    return msgspec.structs.replace(
        last,
        leased=one.leased + other.leased,
        done=one.done + other.done,
        failed=one.failed + other.failed,
        about=last.about if last.about != About() else other.about if last is one else one.about,
    )


def _texts(found: Any) -> dict[str, str]:
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, value in pairs(found)}
