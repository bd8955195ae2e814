"""Revived tasks that go out through another proxy pool: their lanes change, and with them perhaps their shard.

Within a shard the grave gets the new lane before its task is revived. To another shard a task goes in three calls: its
grave records where it goes, it arrives there, the grave is emptied. The next revive after a crash goes on with
what was recorded; the mark of its arrival is kept until the grave is emptied, so it arrives once.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec

from trotline.adapters.redis import keys
from trotline.adapters.redis.batch_codec import encode, parts_of, raw, task_weight
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.shard import Shard
from trotline.adapters.redis.task_codec import (
    CHAIN_FAILED,
    FINGERPRINT,
    LEVEL_BYTES,
    PARCEL,
    open_grave,
    read_chain,
    unwrap,
)
from trotline.errors import FrontierError
from trotline.model.task import Task
from trotline.model.task_json import Undecodable
from trotline.rules.revive_with_other_pool import moved

_PAGE = 500
_FRESH = bytes(4)
"""No attempts, deaths or kills."""

Grave = tuple[str, bytes]
"""Id, packed."""


class PoolMoves:
    def __init__(self, home: Callable[[str], Shard], pool: str) -> None:
        self._home = home
        self._pool = pool

    async def check(self, shard: Shard, graves: Sequence[Grave]) -> None:
        """Raises FrontierError for a chain of which a step would get into another shard."""
        chains: set[str] = set()
        for _, grave in graves:
            task = await _read(shard, grave)
            if task is not None and task.chain and task.chain not in chains:
                chains.add(task.chain)
                for _, step in await self._dead_steps(shard, task, open_grave(grave).why):
                    self._check_step(shard, await _read(shard, step))

    def _check_step(self, shard: Shard, step: Task | None) -> None:
        lane = "" if step is None else moved(step, self._pool).lane
        if step is not None and self._home(lane) is not shard:
            raise FrontierError(
                f"chain {step.chain[:100]!r} cannot go out through {self._pool}: its lane {lane} would be in another"
                " shard of this frontier than the chain",
                hint="Revive the chain without a pool, and other tasks by their ids or reasons. Or use a frontier with"
                " one shard (?shards=1).",
            )

    async def move(self, shard: Shard, graves: Sequence[Grave]) -> int:
        """Give them their new lanes. Returns how many are revived by that: those that went to another shard."""
        stay: dict[str, Task] = {}
        leave: dict[str, Task] = {}
        for name, grave in graves:
            task = await _read(shard, grave)
            if task is None or name in stay:
                continue
            if task.chain and (steps := await self._dead_steps(shard, task, open_grave(grave).why)):
                read = [(step, await _read(shard, packed)) for step, packed in steps]
                stay |= {step: moved(found, self._pool) for step, found in read if found is not None}
            else:
                goes = moved(task, self._pool)
                (stay if self._home(goes.lane) is shard else leave)[name] = goes
        await _rewrite(shard, stay)
        return await self._leave(shard, leave)

    async def _dead_steps(self, shard: Shard, task: Task, why: str) -> list[Grave]:
        """All that is revived with this step of a failed chain; none if it is revived alone."""
        packed = await shard.server.ask("HGET", f"{shard.prefix}chains", task.chain)
        chain = read_chain(packed) if packed else None
        if chain is None or chain.mode != CHAIN_FAILED:
            return []
        head = unwrap(chain.parcel).blob[FINGERPRINT].hex()
        if task.id != head and why != chain.why:
            return []
        names, start, found = [head], 0, list[Grave]()
        while some := await shard.server.ask("LRANGE", keys.dead_steps(shard.prefix, task.chain), start, start + _PAGE):
            names += [name.decode() for name in some]
            start += len(some)
        for start in range(0, len(names), _PAGE):
            some = names[start : start + _PAGE]
            graves = await shard.server.ask("HMGET", f"{shard.prefix}graves", *some)
            found += [(name, grave) for name, grave in zip(some, graves, strict=True) if grave is not None]
        return found

    async def _leave(self, shard: Shard, tasks: dict[str, Task]) -> int:
        risen = 0
        for some in parts_of(list(tasks.items()), lambda item: task_weight(item[1])):
            batch, flat = shard.batch(), []
            for name, task in some:
                flat += [name, raw(_parcel(task, shard.codec.level_of(task), await batch.blob(task)))]
            recorded = await shard.server.run(script("mark_moved_graves"), shard.key, encode(flat))
            found = zip((name for name, _ in some), recorded[::2], recorded[1::2], strict=True)
            parcels = {name: (parcel, grave) for name, parcel, grave in found if parcel is not None}
            risen += await finish_leaving(shard, self._home, parcels)
        return risen


async def finish_leaving(shard: Shard, home: Callable[[str], Shard], parcels: dict[str, tuple[bytes, bytes]]) -> int:
    """Send what was recorded (id -> parcel, grave) to its shards, and empty the graves. Returns how many were."""
    arrivals: dict[Shard, list[Task]] = defaultdict(list)
    marks: dict[int, str] = {}
    for name, (parcel, grave) in parcels.items():
        _, lane, blob = unwrap(parcel)
        task = await shard.read(blob, lane)
        # Of this grave: the task may die in its new lane, and be moved back.
        marks[task.fingerprint] = f"g{name}.{open_grave(grave).died_at!r}"
        arrivals[home(lane)].append(task)
    for target, tasks in arrivals.items():
        moves = [
            (task, 0.0, target.codec.level_of(task).to_bytes(LEVEL_BYTES, "little", signed=True) + _FRESH)
            for task in tasks
        ]
        await target.arrive(moves, lambda task: marks[task.fingerprint])
    if not parcels:
        return 0
    dropped = int(await shard.server.run(script("delete_moved_graves"), shard.key, encode(list(parcels))))
    await asyncio.gather(
        *(_let_expire(target, [marks[task.fingerprint] for task in tasks]) for target, tasks in arrivals.items())
    )
    return dropped


async def _let_expire(shard: Shard, marks: Sequence[str]) -> None:
    now = repr(await shard.server.now())
    await shard.server.ask("ZADD", f"{shard.prefix}moved", "XX", *(part for mark in marks for part in (now, mark)))


async def _rewrite(shard: Shard, tasks: dict[str, Task]) -> None:
    for some in parts_of(list(tasks.items()), lambda item: task_weight(item[1])):
        batch, flat = shard.batch(), []
        for name, task in some:
            flat += [name, task.lane, raw(await batch.blob(task))]
        await shard.server.run(script("change_grave_lanes"), shard.key, encode(flat))


def _parcel(task: Task, level: int, blob: bytes) -> bytes:
    lane = task.lane.encode()
    return PARCEL.pack(level, len(lane)) + lane + blob


async def _read(shard: Shard, grave: bytes) -> Task | None:
    """Without its attempts; None if it cannot be decoded: such a task stays where it is."""
    _, lane, blob = unwrap(open_grave(grave).parcel)
    try:
        task = await shard.read(blob, lane)
    except Undecodable:
        return None
    return msgspec.structs.replace(task, attempt=0)
