"""Leases under way, as operators see them."""

import heapq
from bisect import bisect_right
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

from trotline.adapters.redis import keys
from trotline.adapters.redis.flat_pairs import pairs
from trotline.adapters.redis.lua_layouts import STARTS, TOKEN_BYTES
from trotline.adapters.redis.pool_members import open_lease, unpack_member
from trotline.adapters.redis.shard import Shard
from trotline.model.job import InFlight
from trotline.model.task_json import Undecodable
from trotline.model.time import Moment
from trotline.rules import redaction

_PAGE = 500
_WORKERS = 100
_RECORD = TOKEN_BYTES + STARTS.size
_UNKNOWN: Moment = 0.0


class _Held(NamedTuple):
    leased_at: Moment
    starts_at: Moment
    token: int
    worker: str
    shard: Shard
    parcel: bytes


async def in_flight(shards: Sequence[Shard], limit: int, redact: Sequence[str]) -> list[InFlight]:
    """The longest first, after those whose time is unknown."""
    oldest: list[_Held] = []
    for shard in shards:
        async for some in _held(shard, len(shards)):
            oldest = heapq.nsmallest(max(0, limit), oldest + some, key=lambda each: (each.leased_at, each.token))
    return [await _shown(each, redact) for each in oldest]


async def _held(shard: Shard, shards: int) -> AsyncIterator[list[_Held]]:
    """All leases of a shard, in pages."""
    workers = await shard.server.ask("ZRANGE", f"{shard.prefix}workers", 0, -1)
    for start in range(0, len(workers), _WORKERS):
        names = workers[start : start + _WORKERS]
        times = await shard.server.ask(
            "MGET", *(keys.starts(shard.prefix, name.decode(errors="replace")) for name in names)
        )
        for name, packed in zip(names, times, strict=True):
            worker, starts = name.decode(errors="replace"), _Starts(packed or b"", shards)
            async for flat in _leases(shard, worker):
                tokens = [(int.from_bytes(field), parcel) for field, parcel in pairs(flat)]
                yield [_Held(*starts.of(token), token, worker, shard, parcel) for token, parcel in tokens]


async def _leases(shard: Shard, worker: str) -> AsyncIterator[list[Any]]:
    cursor: Any = 0
    while True:
        cursor, flat = await shard.server.ask("HSCAN", keys.held(shard.prefix, worker), cursor, "COUNT", _PAGE)
        yield flat
        if int(cursor) == 0:
            return


class _Starts:
    """When the leases of a worker were handed out, and when they may start (lua/helpers/lease_times.lua)."""

    def __init__(self, packed: bytes, shards: int) -> None:
        self._shards = shards
        self._records = packed if len(packed) % _RECORD == 0 else b""
        # Tokens only grow, and with them the records.
        places = range(0, len(self._records), _RECORD)
        self._first = [int.from_bytes(self._records[at : at + TOKEN_BYTES]) for at in places]

    def of(self, token: int) -> tuple[Moment, Moment]:
        """Both are `_UNKNOWN` if an older version leased it."""
        place = bisect_right(self._first, token) - 1
        if place < 0:
            return _UNKNOWN, _UNKNOWN
        count, leased_at, start, interval = STARTS.unpack_from(self._records, place * _RECORD + TOKEN_BYTES)
        number = (token - self._first[place]) // self._shards
        if number >= count:
            return _UNKNOWN, _UNKNOWN
        return leased_at, leased_at + start + number * interval


async def _shown(held: _Held, redact: Sequence[str]) -> InFlight:
    lane, blob, member = open_lease(held.parcel)
    try:
        task = await held.shard.read(blob, lane)
        url, route, attempt = redaction.url(task.url, redact), task.route, task.attempt
    except Undecodable:
        url, route, attempt = "(undecodable)", "", 0
    known = held.leased_at != _UNKNOWN
    return InFlight(
        url=url,
        lane=lane,
        worker=held.worker,
        route=route,
        attempt=attempt,
        leased_at=held.leased_at if known else None,
        starts_at=held.starts_at if known else None,
        member=0 if member is None else unpack_member(member).identity.member,
    )
