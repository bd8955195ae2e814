"""The operator's view of one job on a server."""

import heapq
import struct
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from trotline.adapters.redis import memory
from trotline.adapters.redis.compact import open_grave, unwrap
from trotline.adapters.redis.forgetting import pairs
from trotline.adapters.redis.lane_view import read_lane
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.server import Server
from trotline.adapters.redis.shard import Shard
from trotline.adapters.redis.tracing import find
from trotline.errors import FrontierError
from trotline.model.job import About, Grave, Job, LaneView, Progress, State, Whereabouts, WorkerView
from trotline.model.moments import Moment
from trotline.model.pace import Pace
from trotline.model.task import Task
from trotline.model.wire import Undecodable
from trotline.rules import redaction

_PAGE = 500
_WHEN = struct.Struct("<d")
_decode_about = msgspec.msgpack.Decoder(About).decode


class RedisConsole:
    """Look at a job and steer it. Implements the Console port."""

    def __init__(self, server: Server, job: Job, shard: Shard) -> None:
        self._server = server
        self.job = job
        self._shard = shard

    async def progress(self) -> Progress:
        told = await self._server.run(script("look"), self._shard.key)
        now, waiting, leased, done, dead, delayed, state, sealed, started_at, finished_at, tallies, examples = told
        return Progress(
            waiting=waiting,
            leased=leased,
            done=done,
            dead=dead,
            delayed=delayed,
            tallies={name: int(count) for name, count in _texts(tallies).items()},
            examples={name: redaction.url(url, self.job.rules.redact) for name, url in _texts(examples).items()},
            started_at=float(started_at),
            now=now / 1e6,
            sealed=bool(sealed),
            finished_at=float(finished_at) if finished_at else None,
            state=State(state.decode()),
            seen=await memory.told(self._server, self.job, [self._shard.prefix]),
        )

    async def finished(self) -> bool:
        finished_at, state = await self._server.ask("HMGET", self._shard.key, "finished_at", "state")
        if state is None:
            raise FrontierError(
                f"no job {self.job.id} at {self._server.place}", hint="See which there are: trotline jobs"
            )
        return finished_at is not None or state == State.CANCELLED.value.encode()

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
        cursor = "0"
        while True:
            told, *lanes = await self._server.run(script("lanes_view"), self._shard.key, cursor, _PAGE)
            for name, packed, waiting in zip(*[iter(lanes)] * 3, strict=True):
                yield read_lane(packed).view(name.decode(errors="replace"), waiting, now)
            cursor = told.decode()
            if cursor == "0":
                return

    async def pause(self, lane: str | None = None) -> None:
        await self._shard.steer(State.PAUSED.value, lane)

    async def resume(self, lane: str | None = None) -> None:
        await self._shard.steer(State.RUNNING.value, lane)

    async def drain(self, lane: str | None = None) -> None:
        await self._shard.steer(State.DRAINING.value, lane)

    async def cancel(self, lane: str | None = None) -> int:
        return await self._shard.steer(State.CANCELLED.value, lane)

    async def set_pace(self, lane: str, pace: Pace) -> None:
        await self._shard.steer("pace", lane, pace)

    async def workers(self) -> list[WorkerView]:
        now, *crew = await self._server.run(script("crew"), self._shard.key)
        return [
            WorkerView(
                name=name.decode(errors="replace"),
                silent_for=max(0.0, (now - heard) / 1e6),
                leased=leased,
                done=int(done),
                failed=int(failed),
                about=_decode_about(about) if about else About(),
            )
            for name, heard, leased, done, failed, about in zip(*[iter(crew)] * 6, strict=True)
        ]

    async def whereabouts(self, task: Task) -> Whereabouts:
        return await find(self._shard, task, self.job.rules.redact)

    async def graves(self, why: str = "", limit: int = 100, after: str = "") -> list[Grave]:
        found: list[Grave] = []
        if not after.startswith("r"):
            async for grave in self._task_graves(why, after):
                found.append(self._shown(grave))
                if len(found) >= limit:
                    return found
        return found + await self._record_graves(why, limit - len(found), after)

    async def _task_graves(self, why: str, after: str = "") -> AsyncIterator[Grave]:
        order = f"{self._shard.prefix}graves:order"
        place = await self._server.ask("ZRANK", order, after) if after else None
        start = 0 if place is None else place + 1
        while ids := await self._server.ask("ZRANGE", order, start, start + _PAGE - 1):
            packed = await self._server.ask("HMGET", f"{self._shard.prefix}graves", *ids)
            for name, grave in zip(ids, packed, strict=True):
                if grave is not None and open_grave(grave)[1].startswith(why):
                    yield await self._read_grave(name.decode(), grave)
            start += len(ids)

    async def _read_grave(self, name: str, packed: bytes) -> Grave:
        died_at, why, detail, parcel = open_grave(packed)
        try:
            _, lane, blob = unwrap(parcel)
            task = await self._shard.read(blob, lane)
        except Undecodable as error:
            return Grave(id=name, url="(undecodable)", route="", why=why, detail=detail or str(error), died_at=died_at)
        return Grave(
            id=name,
            url=task.url,
            route=task.route,
            why=why,
            detail=detail,
            lane=lane,
            attempt=task.attempt,
            died_at=died_at,
            parent=task.parent,
        )

    async def _record_graves(self, why: str, limit: int, after: str) -> list[Grave]:
        start = int(after[1:]) if after.startswith("r") and after[1:].isdecimal() else 0
        found: list[Grave] = []
        while len(found) < limit:
            rows = await self._server.ask("LRANGE", f"{self._shard.prefix}rejects", start, start + _PAGE - 1)
            if not rows:
                break
            graves = (_record_grave(start + number, row) for number, row in enumerate(rows, 1))
            found += [self._shown(grave) for grave in graves if grave.why.startswith(why)]
            start += len(rows)
        return found[:limit]

    def _shown(self, grave: Grave) -> Grave:
        """A grave is for people: the task itself keeps its URL whole, and is revived with it."""
        keys = self.job.rules.redact
        return msgspec.structs.replace(
            grave, url=redaction.url(grave.url, keys), parent=redaction.url(grave.parent, keys)
        )

    async def reasons(self) -> dict[str, int]:
        told = _texts(await self._server.ask("HGETALL", f"{self._shard.prefix}reasons"))
        counted = ((name, int(count)) for name, count in told.items())
        return dict(sorted(counted, key=lambda each: (each[0].startswith("bad record: "), -each[1])))

    async def revive(self, ids: Sequence[str] = (), why: str = "") -> int:
        if ids:
            return await self._revive(why, list(dict.fromkeys(ids)))
        risen = 0
        while True:
            chosen: list[str] = []
            async for grave in self._task_graves(why):
                chosen.append(grave.id)
                if len(chosen) >= _PAGE:
                    break
            count = await self._revive(why, chosen)
            risen += count
            if not count:
                return risen

    async def _revive(self, why: str, ids: Sequence[str]) -> int:
        risen = 0
        for start in range(0, len(ids), _PAGE):
            some = ids[start : start + _PAGE]
            packed = await self._server.ask("HMGET", f"{self._shard.prefix}graves", *some)
            found = [(name, grave) for name, grave in zip(some, packed, strict=True) if grave is not None]
            levels = [(name, await self._level(grave)) for name, grave in found]
            risen += await self._shard.revive(why, levels)
        return risen

    async def _level(self, packed: bytes) -> int:
        """Where it began: what retries have cost it is forgiven."""
        _, lane, blob = unwrap(open_grave(packed)[3])
        try:
            return (await self._shard.read(blob, lane)).priority * 2
        except Undecodable:
            return 0


def _texts(found: Any) -> dict[str, str]:
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, value in pairs(found)}


def _record_grave(number: int, row: bytes) -> Grave:
    at: Moment = _WHEN.unpack_from(row)[0]
    url, route, kind, why, data = msgspec.json.decode(row[_WHEN.size :], type=tuple[str, str, str, str, str])
    return Grave(id=f"r{number}", url=url, route=route, why=f"bad record: {why}", detail=kind, died_at=at, record=data)
