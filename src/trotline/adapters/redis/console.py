"""The operator's view of one job on a server."""

import asyncio
import heapq
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from trotline.adapters.redis import duplicate_filter
from trotline.adapters.redis.damaged_jobs import readable
from trotline.adapters.redis.flat_pairs import pairs
from trotline.adapters.redis.graveyard import Graveyard
from trotline.adapters.redis.in_flight import in_flight
from trotline.adapters.redis.job_shards import JobShards
from trotline.adapters.redis.lane_view import lane_pace
from trotline.adapters.redis.list_lanes import all_lanes, named_lanes, waiting_by_queue
from trotline.adapters.redis.lua_layouts import ProgressReply
from trotline.adapters.redis.notes import read_notes, write_note
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.trace_task import find
from trotline.model.job import (
    Budget,
    Grave,
    InFlight,
    LanePace,
    LaneView,
    Progress,
    State,
    TaskStatus,
    WorkerInfo,
    WorkerView,
)
from trotline.model.note import Note
from trotline.model.pace import Pace
from trotline.model.task import Task
from trotline.ports.console import MOST_CHAINS
from trotline.rules import grave_redaction, note_limits, redaction, revive_with_other_pool, route_queues
from trotline.rules.broker_shelves import books_only
from trotline.rules.chain_failures import shown_counts
from trotline.rules.untrusted_values import bounded
from trotline.rules.worker_info import with_own_counts

_PAGE = 500


class RedisConsole:
    """Look at a job and steer it. Implements the Console port."""

    def __init__(self, parts: JobShards) -> None:
        self._parts = parts
        self._server = parts.server
        self._shards = parts.shards
        self._graveyard = Graveyard(parts.shards, parts.home)
        self.job = parts.job

    async def progress(self) -> Progress:
        with readable(self.job.id):
            return await self._progress()

    async def _progress(self) -> Progress:
        replies = await asyncio.gather(*(self._server.run(script("progress"), shard.key) for shard in self._shards))
        looks = [ProgressReply(*reply) for reply in replies]
        first = looks[0]
        finished_at: Any = first.finished_at
        tallies: Counter[str] = Counter()
        examples: dict[str, str] = {}
        for look in looks:
            tallies.update({name: bounded(int(count)) for name, count in _texts(look.tallies).items()})
            examples = _texts(look.examples) | examples
        if len(self._shards) > 1:
            finished_at = await self._parts.ended_at()
        return Progress(
            waiting=sum(look.waiting for look in looks),
            leased=sum(look.leased for look in looks),
            done=sum(look.done for look in looks),
            dead=sum(look.dead for look in looks),
            delayed=sum(look.delayed for look in looks),
            due_in=max(look.due_in for look in looks) / 1e6,
            tallies=dict(tallies),
            examples={name: redaction.url(url, self.job.rules.redact) for name, url in examples.items()},
            started_at=float(first.started_at),
            now=first.now / 1e6,
            sealed=all(look.sealed for look in looks),
            finished_at=float(finished_at) if finished_at else None,
            state=State(first.state.decode()),
            seen=await duplicate_filter.describe(self._server, self.job, [shard.prefix for shard in self._shards]),
            missing=books_only(self._server.place) if first.shelf and not finished_at else "",
            budget=await self._parts.budgets.read(),
        )

    async def lanes(self, limit: int = 20) -> list[LaneView]:
        found: list[tuple[tuple[bool, bool, int], LaneView]] = []
        async for page in self.all_lanes():
            for view in page:
                if view.waiting + view.leased:
                    found.append(((view.state is not State.RUNNING, view.rests_for > 0, view.waiting), view))
            if len(found) > 4 * limit + _PAGE:
                found = heapq.nlargest(limit, found, key=lambda each: each[0])
        return [view for _, view in heapq.nlargest(limit, found, key=lambda each: each[0])]

    async def all_lanes(self) -> AsyncIterator[Sequence[LaneView]]:
        async for page in all_lanes(self._shards, await self._server.now()):
            yield page

    async def lane_views(self, names: Sequence[str]) -> list[LaneView]:
        return await named_lanes(self._parts.home, names, await self._server.now())

    async def waiting_routes(self) -> dict[str, int]:
        queues = self.job.rules.queues
        if not queues:
            return {}
        counts = await waiting_by_queue(self._shards)
        return {route_queues.route_of(queues, number): counts[number] for number in sorted(counts) if counts[number]}

    async def steer(self, state: State, lane: str | None = None) -> int:
        shards = self._shards if lane is None else [self._parts.home(lane)]
        return sum(await asyncio.gather(*(shard.steer(state.value, lane) for shard in shards)))

    async def set_budget(self, budget: Budget) -> None:
        await self._parts.budgets.write(budget)

    async def set_high_water(self, waiting: int) -> None:
        for shard in self._shards:
            await self._server.ask("HSET", shard.key, "high_water", waiting)

    async def set_pace(self, lane: str, pace: Pace | None) -> None:
        await self._parts.home(lane).steer("pace", lane, pace)

    async def lane_pace(self, lane: str) -> LanePace | None:
        reply = await self._server.run(script("lane_pace"), self._parts.home(lane).key, lane)
        return lane_pace(lane, reply, await self._server.now()) if reply else None

    async def workers(self) -> list[WorkerView]:
        found = await asyncio.gather(*(shard.workers() for shard in self._shards))
        merged: dict[str, WorkerView] = {}
        for view in (each for some in found for each in some):
            other = merged.get(view.name)
            merged[view.name] = view if other is None else _together(view, other)
        # Once, for all shards together.
        return list(map(with_own_counts, merged.values()))

    async def in_flight(self, limit: int = 100) -> list[InFlight]:
        return await in_flight(self._shards, limit, self.job.rules.redact)

    async def chains(self) -> int:
        counts: list[int] = [await self._server.ask("HLEN", f"{shard.prefix}chains") for shard in self._shards]
        return min(MOST_CHAINS, sum(counts))

    async def whereabouts(self, task: Task) -> TaskStatus:
        return await find(self._parts.home(task.lane), task, self.job.rules.redact)

    async def graves(self, why: str = "", limit: int = 100, after: str = "") -> list[Grave]:
        return [self._shown(grave) for grave in await self._graveyard.read(why, limit, after)]

    def _shown(self, grave: Grave) -> Grave:
        return grave_redaction.shown(grave, self.job.rules.redact)

    async def reasons(self) -> dict[str, int]:
        return shown_counts(await self._graveyard.reasons(), self.job.rules.redact)

    async def revive(self, ids: Sequence[str] = (), why: str = "", pool: str | None = None) -> int:
        if pool is not None:
            revive_with_other_pool.check(pool)
        return await self._graveyard.revive(ids, why, pool)

    async def read_notes(self, names: Sequence[str]) -> list[Note | None]:
        return await read_notes(self._shards[0], names)

    async def write_note(self, name: str, data: bytes, version: int) -> bool:
        note_limits.check(name, data)
        return await write_note(self._shards[0], name, data, version)


def _together(one: WorkerView, other: WorkerView) -> WorkerView:
    last = one if one.silent_for <= other.silent_for else other
    return msgspec.structs.replace(
        last,
        leased=one.leased + other.leased,
        done=one.done + other.done,
        failed=one.failed + other.failed,
        about=last.about if last.about != WorkerInfo() else other.about if last is one else one.about,
    )


def _texts(found: Any) -> dict[str, str]:
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, value in pairs(found)}
