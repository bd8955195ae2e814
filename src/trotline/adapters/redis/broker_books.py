"""The books of a brokered frontier (ports/broker_books.py): tasks that wait on the shelves of a broker."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from trotline.adapters.redis.batch_codec import encode
from trotline.adapters.redis.job_shards import JobShards
from trotline.adapters.redis.lua_layouts import SHELVED
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.shard import Shard
from trotline.adapters.redis.task_codec import template_of
from trotline.adapters.redis.task_templates import templates_in
from trotline.model.task import Task
from trotline.model.task_json import Undecodable
from trotline.ports.broker_books import CLAIM, Parcel, ShelfView, Shelves, Unshelved
from trotline.rules.broker_shelves import PARCEL_TASKS, order

_LETTERS = {ord("m"): Unshelved.MOVED, ord("k"): Unshelved.KNOWN, ord("x"): Unshelved.DAMAGED}
_AT_ONCE = 1000
"""Tasks of one call that moves parcels."""


class RedisBooks:
    """Implements the Books port. A parcel's id and shelf begin with the number of its shard."""

    def __init__(self, parts: JobShards) -> None:
        self._server = parts.server
        self._shards = parts.shards
        self._made: list[Parcel] = []
        self._more = True
        """There may be parcels of others to publish."""
        for shard in self._shards:
            shard.made = self._made

    async def shelves(self) -> Shelves:
        replies = await asyncio.gather(
            *(self._server.run(script("shelf_status"), shard.key, CLAIM, len(self._shards)) for shard in self._shards)
        )
        found = [
            ShelfView(f"s{number}.{name.decode()}", parcels, bool(room))
            for number, reply in enumerate(replies)
            for name, parcels, room in zip(*[iter(reply[3:])] * 3, strict=True)
        ]
        ready, unpublished, stale = (sum(reply[place] for reply in replies) for place in range(3))
        return Shelves(ready, unpublished, stale, tuple(sorted(found, key=lambda view: order(view.shelf))))

    def share_new(self) -> None:
        for shard in self._shards:
            shard.made = None

    async def unpublished(self, limit: int, published: Sequence[Parcel] = ()) -> list[Parcel]:
        ids: dict[int, list[str]] = defaultdict(list)
        for parcel in published:
            number, own = _split(parcel.id)
            ids[number].append(own)
        # Own ones first: they are at hand. Others are looked for when a look says that there are some.
        mine, self._made[:limit] = self._made[:limit], []
        looks = not mine and (self._more or not published)
        found = await asyncio.gather(
            *(
                self._claim(number, limit if looks else 0, ids.get(number, []))
                for number in range(len(self._shards))
                if looks or number in ids
            )
        )
        if looks:
            self._more = any(len(some) == limit for some in found)
        return mine or [parcel for some in found for parcel in some]

    async def _claim(self, number: int, limit: int, published: list[str]) -> list[Parcel]:
        shard = self._shards[number]
        flat = await self._server.run(script("publish_parcels"), shard.key, limit, CLAIM, *published)
        found = []
        for own, shelf, body in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
            try:
                tasks = await self._tasks(shard, body)
            except Undecodable:
                # Changed by another program. It stays unpublished, and is counted as waiting.
                continue
            name = shelf.decode().partition(" ")[2]
            found.append(Parcel(f"{number}.{own.decode()}", f"s{number}.{name}", tuple(tasks)))
        return found

    async def _tasks(self, shard: Shard, body: bytes) -> list[Task]:
        entries, at = [], 0
        while at + SHELVED.size <= len(body):
            size, length = SHELVED.unpack_from(body, at)
            lane = at + SHELVED.size
            at = lane + length + size
            entries.append((body[lane : lane + length].decode(errors="replace"), body[lane + length : at]))
        await shard.templates.look_up(templates_in([blob for _, blob in entries]))
        return [shard.codec.unpack(blob, lane, shard.templates.template)[0] for lane, blob in entries]

    async def unshelve(self, parcels: Sequence[Parcel]) -> list[Unshelved]:
        homes: dict[int, list[int]] = defaultdict(list)
        answers = [Unshelved.KNOWN] * len(parcels)
        for place, parcel in enumerate(parcels):
            number, _ = _split(parcel.id)
            if number < len(self._shards):
                homes[number].append(place)
        for number, places in homes.items():
            for start in range(0, len(places), _AT_ONCE // PARCEL_TASKS):
                some = places[start : start + _AT_ONCE // PARCEL_TASKS]
                letters = await self._unshelve(self._shards[number], [parcels[place] for place in some])
                for place, letter in zip(some, letters, strict=True):
                    answers[place] = _LETTERS[letter]
        return answers

    async def _unshelve(self, shard: Shard, parcels: Sequence[Parcel]) -> bytes:
        if not shard.templates.has(template_of(task) for parcel in parcels for task in parcel.tasks):
            parcels = await self._without_foreign(shard, parcels)
        batch = shard.batch()
        await batch.add([task for parcel in parcels for task in parcel.tasks])
        flat = [part for parcel in parcels for part in (_split(parcel.id)[1], len(parcel.tasks))]
        letters: bytes = await self._server.run(
            script("unshelve", seen=shard.seen), shard.key, encode((batch.names, batch.tasks, flat))
        )
        return letters

    async def _without_foreign(self, shard: Shard, parcels: Sequence[Parcel]) -> list[Parcel]:
        """Parcels that the books do not count have no tasks: a template that was learned stays, and a job has room for
        so many only."""
        ids = [_split(parcel.id)[1] for parcel in parcels]
        found = await self._server.ask("HMGET", f"{shard.prefix}shelved", *ids)
        return [
            parcel
            if counted and counted.split()[0] == b"%d" % len(parcel.tasks)
            else msgspec.structs.replace(parcel, tasks=())
            for parcel, counted in zip(parcels, found, strict=True)
        ]

    async def shelved(self, lane: str | None = None) -> int:
        total = 0
        for shard in self._shards:
            if lane is None:
                total += int(await self._server.ask("HGET", shard.key, "shelved") or 0)
            else:
                for name in ("onshelf", "overflow"):
                    total += int(await self._server.ask("HGET", f"{shard.prefix}{name}", lane) or 0)
        return total


def _split(name: str) -> tuple[int, str]:
    """The number of the shard, and the id there. An id of another program names no shard."""
    number, _, own = name.partition(".")
    return (int(number), own) if number.isdecimal() and len(number) < 6 else (1 << 30, own)
