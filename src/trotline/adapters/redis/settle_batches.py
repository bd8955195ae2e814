"""Splits large settles into several calls, as no call may block the server for long.

Children that do not fit are admitted before the call that ends their page's lease, and only while that lease is held.
So the order is kept (store, admit, settle), a stale lease admits nothing, and a job cannot finish before its last page.
After a crash in between the page is visited again, and its children are duplicates.
"""

from collections import defaultdict
from collections.abc import Container, Sequence
from typing import Protocol

import msgspec

from trotline.adapters.redis.batch_codec import MOST, LeaseName, name_of, parts_of, task_weight, weight_of
from trotline.model.lease import Lease, Settled, Settlement
from trotline.model.task import Task


class ShardCalls(Protocol):
    """Methods of a shard, one call each."""

    async def admit_for(self, worker: str, lease: Lease, children: Sequence[Task]) -> bool:
        """Admit them if the worker holds the lease."""
        ...

    async def settle_at_once(
        self, worker: str, settlements: Sequence[Settlement], left: Container[LeaseName]
    ) -> list[Settled]: ...


class SettleBatches:
    """Keeps the results of a batch's first calls if a later one failed: the caller repeats the batch."""

    def __init__(self, shard: ShardCalls) -> None:
        self._shard = shard
        self._answered: dict[str, dict[LeaseName, Settled]] = defaultdict(dict)
        self._unconfirmed: dict[str, LeaseName] = {}
        """Worker -> a lease whose end was sent after its children, without a reply."""

    def forget(self, worker: str) -> None:
        self._answered.pop(worker, None)
        self._unconfirmed.pop(worker, None)

    async def settle(
        self, worker: str, settlements: Sequence[Settlement], left: Container[LeaseName] = frozenset()
    ) -> list[Settled]:
        if worker not in self._answered and sum(map(weight_of, settlements)) <= MOST:
            return await self._shard.settle_at_once(worker, settlements, left)
        answered = self._answered[worker]
        first = {name_of(each.lease): each for each in reversed(settlements)}
        rest = [each for name, each in reversed(first.items()) if name not in answered]
        for part in parts_of(rest, weight_of):
            answers = await self._part(worker, part, left)
            answered.update(zip((name_of(each.lease) for each in part), answers, strict=True))
        del self._answered[worker]
        # A lease that appears twice in one batch is settled once, by the first.
        return [answered.pop(name_of(each.lease), Settled.STALE) for each in settlements]

    async def _part(self, worker: str, part: Sequence[Settlement], left: Container[LeaseName]) -> list[Settled]:
        if weight_of(part[0]) <= MOST:
            return await self._shard.settle_at_once(worker, part, left)
        [large] = part
        name = name_of(large.lease)
        for children in parts_of(large.children, task_weight):
            if not await self._shard.admit_for(worker, large.lease, children):
                if self._unconfirmed.get(worker) == name:
                    # Our lost call may have ended it: a repeat of the call returns its result.
                    break
                # Not settled: its token may belong to another visit now (sharding/settle.py).
                return [Settled.STALE]
        self._unconfirmed[worker] = name
        answers = await self._shard.settle_at_once(worker, [msgspec.structs.replace(large, children=())], left)
        self._unconfirmed.pop(worker, None)
        return answers
