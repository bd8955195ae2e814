"""A job's budget (F20).

In one shard lease.lua enforces it exactly. Over several shards the counters are added up before a lease, so concurrent
leases of other workers may exceed it, by their slots at most.

P job   budget                    JSON
        most_pages, most_bytes    its limits, for the script
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from trotline.adapters.redis.lua_layouts import read_books
from trotline.adapters.redis.server_calls import Server
from trotline.model.job import BYTES, Budget

_decode = msgspec.json.Decoder(Budget).decode
_NONE = Budget()


class Budgets:
    def __init__(self, server: Server, keys: Sequence[str]) -> None:
        """`keys`: P job of each shard."""
        self._server = server
        self._keys = keys

    async def write(self, budget: Budget) -> None:
        marks = {"most_pages": budget.pages, "most_bytes": budget.size}
        given: list[Any] = [part for name, mark in marks.items() if mark is not None for part in (name, mark)]
        if given:
            given += ["budget", msgspec.json.encode(budget)]
        gone = [name for name, mark in marks.items() if mark is None] + ([] if given else ["budget"])
        for key in self._keys:
            if given:
                await self._server.ask("HSET", key, *given)
            if gone:
                await self._server.ask("HDEL", key, *gone)

    async def read(self) -> Budget:
        packed = await self._server.ask("HGET", self._keys[0], "budget")
        return _NONE if packed is None else _decode(packed)

    async def spent(self, packed: bytes | None) -> str:
        """Which limit of this budget is reached; empty if none is."""
        if packed is None:
            return ""
        ended, _, size = await self._used()
        return _decode(packed).spent(ended, size)

    async def left(self, limit: int) -> int:
        """The number of leases that the budget allows, at most `limit`."""
        budget = await self.read()
        if budget == _NONE:
            return limit
        ended, leased, size = await self._used()
        if budget.size is not None and size >= budget.size:
            return 0
        return limit if budget.pages is None else min(limit, max(0, budget.pages - ended - leased))

    async def _used(self) -> tuple[int, int, int]:
        """Ended pages, leased pages, and bytes."""
        found = await asyncio.gather(
            *(self._server.ask("HGET", key, "books") for key in self._keys),
            *(self._server.ask("HGET", key.removesuffix("job") + "tallies", BYTES) for key in self._keys),
        )
        books = [read_books(packed) for packed in found[: len(self._keys)] if packed is not None]
        ended = sum(each.done + each.dead for each in books)
        return int(ended), int(sum(each.leased for each in books)), sum(int(n or 0) for n in found[len(self._keys) :])
