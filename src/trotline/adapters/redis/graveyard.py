"""The graveyard of a job, over all its shards."""

from collections.abc import AsyncIterator, Callable, Sequence
from heapq import nsmallest

import msgspec

from trotline.adapters.redis.flat_pairs import pairs
from trotline.adapters.redis.revive_with_other_pool import PoolMoves, finish_leaving
from trotline.adapters.redis.shard import Shard
from trotline.adapters.redis.task_codec import REJECT, open_grave, unwrap
from trotline.model.job import Grave
from trotline.model.task_json import Undecodable
from trotline.model.time import Moment
from trotline.rules.grave_redaction import seed_of
from trotline.rules.untrusted_values import counter

_PAGE = 500
_AT_ONCE = 50
"""Rejected records per call: each is searched in a list of up to 10,000."""


class Graveyard:
    def __init__(self, shards: Sequence[Shard], home: Callable[[str], Shard]) -> None:
        self._shards = shards
        self._home = home

    async def read(self, why: str, limit: int, after: str) -> list[Grave]:
        """Tasks, oldest first, then records; `after`: the last id of the previous page."""
        found: list[Grave] = []
        if not after.startswith("r"):
            since = await self._since(after)
            for shard in self._shards:
                found += await _some(_graves(shard, why, since), limit)
            found = nsmallest(limit, found, key=lambda grave: (grave.died_at, grave.id))
        if len(found) >= limit:
            return found
        records: list[Grave] = []
        for place, shard in enumerate(self._shards):
            records += await _some(_records(shard, why, after, place, len(self._shards)), limit - len(found))
        return found + nsmallest(limit - len(found), records, key=lambda grave: int(grave.id[1:]))

    async def _since(self, after: str) -> tuple[Moment, str]:
        for shard in self._shards if after else ():
            died_at = await shard.server.ask("ZSCORE", f"{shard.prefix}graves:order", after)
            if died_at is not None:
                return float(died_at), after
        return float("-inf"), ""

    async def reasons(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for shard in self._shards:
            for why, count in pairs(await shard.server.ask("HGETALL", f"{shard.prefix}reasons")):
                name = why.decode(errors="replace")
                counts[name] = counts.get(name, 0) + counter(count)
        return dict(sorted(counts.items(), key=lambda each: (each[0].startswith("bad record: "), -each[1])))

    async def revive(self, ids: Sequence[str], why: str, pool: str | None) -> int:
        """`pool`: that they go out through from now on."""
        revival = Revival(why, list(dict.fromkeys(ids)), self._home, pool)
        if pool is not None:
            for shard in self._shards:
                await revival.check(shard, len(self._shards))
        risen = 0
        for place, shard in enumerate(self._shards):
            risen += await revival.revive(shard)
            if not ids or any(name.startswith("r") for name in ids):
                risen += await _revisit_rejects(shard, why, set(ids), place, len(self._shards))
        return risen


async def _some(graves: AsyncIterator[Grave], limit: int) -> list[Grave]:
    found: list[Grave] = []
    async for grave in graves:
        if len(found) >= limit:
            break
        found.append(grave)
    return found


async def _graves(shard: Shard, why: str, since: tuple[Moment, str]) -> AsyncIterator[Grave]:
    order, start = f"{shard.prefix}graves:order", 0
    if since[1]:
        start = int(await shard.server.ask("ZCOUNT", order, "-inf", f"({since[0]!r}"))
    while ids := await shard.server.ask("ZRANGE", order, start, start + _PAGE - 1):
        packed = await shard.server.ask("HMGET", f"{shard.prefix}graves", *ids)
        for name, grave in zip(ids, packed, strict=True):
            if grave is not None:
                died_at, its_why, _, _ = open_grave(grave)
                if its_why.startswith(why) and (died_at, name.decode()) > since:
                    yield await _read(shard, name.decode(), grave)
        start += len(ids)


async def _read(shard: Shard, name: str, packed: bytes) -> Grave:
    died_at, why, detail, parcel = open_grave(packed)
    try:
        _, lane, blob = unwrap(parcel)
        task = await shard.read(blob, lane)
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
        task=seed_of(task),
    )


async def _records(shard: Shard, why: str, after: str, place: int, shards: int) -> AsyncIterator[Grave]:
    """Records of one shard. Their ids are unique over all shards."""
    seen = int(after[1:]) if after.startswith("r") and after[1:].isdecimal() else 0
    start = max(0, -(-(seen - place) // shards))
    async for number, row in _entries(shard, start):
        grave = _record(number * shards + place + 1, row)
        if grave.why.startswith(why):
            yield grave


async def _entries(shard: Shard, start: int = 0) -> AsyncIterator[tuple[int, bytes]]:
    while rows := await shard.server.ask("LRANGE", f"{shard.prefix}rejects", start, start + _PAGE - 1):
        for number, row in enumerate(rows, start):
            yield number, row
        start += len(rows)


async def _revisit_rejects(shard: Shard, why: str, ids: set[str], place: int, shards: int) -> int:
    """Queue the pages of the selected rejected records again, and delete all their rejected records."""
    pages: dict[bytes, list[tuple[bytes, str]]] = {}
    chosen: set[bytes] = set()
    async for number, row in _entries(shard):
        grave, page = _record(number * shards + place + 1, row), _parcel_of(row)
        pages.setdefault(page, []).append((row, grave.why))
        if grave.why.startswith(why) and (not ids or grave.id in ids):
            chosen.add(page)
    records: list[tuple[bytes, str, int | None]] = []
    for page in chosen:
        *others, last = pages[page]
        # The page is queued with the last of its records: until then a failed call can be repeated.
        records += [(*each, None) for each in others]
        records.append((*last, await _level(shard, page)))
    risen = 0
    for start in range(0, len(records), _AT_ONCE):
        risen += await shard.revisit_rejects(records[start : start + _AT_ONCE])
    return risen


def _parcel_of(row: bytes) -> bytes:
    _, size = REJECT.unpack_from(row)
    return row[REJECT.size + size :]


def _record(number: int, row: bytes) -> Grave:
    at, size = REJECT.unpack_from(row)
    packed = row[REJECT.size : REJECT.size + size]
    url, route, kind, why, data = msgspec.json.decode(packed, type=tuple[str, str, str, str, str])
    return Grave(id=f"r{number}", url=url, route=route, why=f"bad record: {why}", detail=kind, died_at=at, record=data)


class Revival:
    """Buried tasks that get a fresh start: those with these ids, or all; of which the reason starts with `why`."""

    def __init__(self, why: str, ids: Sequence[str], home: Callable[[str], Shard], pool: str | None) -> None:
        self._why = why
        self._ids = ids
        self._home = home
        self._moves = None if pool is None else PoolMoves(home, pool)

    async def check(self, shard: Shard, shards: int) -> None:
        """Raises FrontierError, before anything is changed, if some cannot have their new pool."""
        # Chains of which steps are still to be buried are moved as a whole, too.
        await shard.tend_chains()
        if self._moves is not None and shards > 1:
            async for graves in self._chosen(shard):
                await self._moves.check(shard, graves)

    async def revive(self, shard: Shard) -> int:
        risen = 0
        async for graves in self._chosen(shard):
            risen += await self._finish_leaving(shard, [name for name, _ in graves])
            if self._moves is not None:
                risen += await self._moves.move(shard, graves)
            risen += await shard.revive(
                self._why, [(name, await _level(shard, open_grave(grave).parcel)) for name, grave in graves]
            )
        return risen

    async def _chosen(self, shard: Shard) -> AsyncIterator[list[tuple[str, bytes]]]:
        """Id and grave, in pages."""
        if self._ids:
            for start in range(0, len(self._ids), _PAGE):
                yield await self._read(shard, self._ids[start : start + _PAGE])
            return
        since = (float("-inf"), "")
        while chosen := await _some(_graves(shard, self._why, since), _PAGE):
            since = (chosen[-1].died_at, chosen[-1].id)
            yield await self._read(shard, [grave.id for grave in chosen])

    async def _read(self, shard: Shard, ids: Sequence[str]) -> list[tuple[str, bytes]]:
        packed = await shard.server.ask("HMGET", f"{shard.prefix}graves", *ids)
        found = [(name, grave) for name, grave in zip(ids, packed, strict=True) if grave is not None]
        return [(name, grave) for name, grave in found if open_grave(grave).why.startswith(self._why)]

    async def _finish_leaving(self, shard: Shard, ids: Sequence[str]) -> int:
        """Go on with moves to other shards that a crash has interrupted."""
        if not ids or not await shard.server.ask("EXISTS", f"{shard.prefix}leaving"):
            return 0
        parcels = await shard.server.ask("HMGET", f"{shard.prefix}leaving", *ids)
        graves = await shard.server.ask("HMGET", f"{shard.prefix}graves", *ids)
        both = {
            name: (parcel, grave)
            for name, parcel, grave in zip(ids, parcels, graves, strict=True)
            if parcel is not None and grave is not None
        }
        return await finish_leaving(shard, self._home, both)


async def _level(shard: Shard, parcel: bytes) -> int:
    """The level of its first attempt."""
    _, lane, blob = unwrap(parcel)
    try:
        return shard.codec.level_of(msgspec.structs.replace(await shard.read(blob, lane), attempt=0))
    except Undecodable:
        return 0
