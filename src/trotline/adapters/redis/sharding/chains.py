"""Chains of a sharded job.

All steps of a chain are in the shard of its first step's lane, which releases them one after another, atomically. Steps
in lanes of other shards are refused (docs/decisions/093-chains.md).
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import msgspec
from xxhash import xxh3_64_intdigest

from trotline.adapters.redis.batch_codec import moved
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.shard import Shard
from trotline.errors import FrontierError
from trotline.model.lease import Settlement
from trotline.model.outcome import Bury
from trotline.model.task import Task

REFUSED = "refused: chain over several shards"
"""The tally of children that were refused."""
_AT_ONCE = 500
_KNOWN = 100_000
"""Chains in the cache."""


class ChainLanes:
    """The lane of each chain's first step: the first client that puts a step records it."""

    def __init__(self, shards: Sequence[Shard], home: Callable[[str], Shard]) -> None:
        self._shards = shards
        self._home = home
        self._lanes: dict[str, str] = {}
        self._generation = shards[0].server.generation

    async def check(self, tasks: Iterable[Task]) -> None:
        """Raises FrontierError if a task's lane is in another shard than its chain."""
        steps = [task for task in tasks if task.chain]
        lanes = await self._first_lanes(steps)
        for task in steps:
            if not self._fits(task, lanes):
                raise FrontierError(
                    f"{task.url} cannot join chain {task.chain[:100]!r}: its lane {task.lane} is in another shard of"
                    f" this frontier than lane {lanes[task.chain]} of the chain's first step",
                    hint="Give the steps of a chain one lane (lane=...), or use a frontier with one shard (?shards=1).",
                )

    async def filtered(self, settlements: Sequence[Settlement]) -> Sequence[Settlement]:
        """Without children in other shards than their chain; a step that was redirected to another shard is buried."""
        if not any(each.lease.task.chain or any(child.chain for child in each.children) for each in settlements):
            return settlements
        lanes = await self._first_lanes([child for each in settlements for child in each.children if child.chain])
        return [self._redirected(self._without_foreign(each, lanes)) for each in settlements]

    def _fits(self, task: Task, lanes: dict[str, str]) -> bool:
        return not task.chain or self._home(lanes[task.chain]) is self._home(task.lane)

    def _without_foreign(self, settlement: Settlement, lanes: dict[str, str]) -> Settlement:
        kept = tuple(child for child in settlement.children if self._fits(child, lanes))
        foreign = len(settlement.children) - len(kept)
        if not foreign:
            return settlement
        tallies = {**settlement.tallies, REFUSED: settlement.tallies.get(REFUSED, 0) + foreign}
        return msgspec.structs.replace(settlement, children=kept, tallies=tallies)

    def _redirected(self, settlement: Settlement) -> Settlement:
        task, lease = moved(settlement), settlement.lease
        if task is None or not lease.task.chain:
            return settlement
        if self._home(task.lane) is self._shards[lease.token % len(self._shards)]:
            return settlement
        why = f"chain: redirected to lane {task.lane}, which is in another shard than the chain"
        return msgspec.structs.replace(settlement, outcome=Bury(why))

    async def _first_lanes(self, steps: Sequence[Task]) -> dict[str, str]:
        generation = self._shards[0].server.generation
        if generation != self._generation or len(self._lanes) > _KNOWN:
            # After a reconnect the server may have lost some: then they are recorded again.
            self._generation = generation
            self._lanes.clear()
        asked: dict[Shard, dict[str, str]] = defaultdict(dict)
        for task in steps:
            if task.chain not in self._lanes:
                keeper = self._shards[xxh3_64_intdigest(task.chain.encode()) % len(self._shards)]
                asked[keeper].setdefault(task.chain, task.lane)
        await asyncio.gather(*(self._ask(shard, chains) for shard, chains in asked.items()))
        return self._lanes

    async def _ask(self, shard: Shard, chains: dict[str, str]) -> None:
        names = list(chains)
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            flat = [part for name in some for part in (name, chains[name])]
            lanes = await shard.server.run_timeless(script("first_lane_of_chain"), shard.key, *flat)
            self._lanes.update(zip(some, (lane.decode() for lane in lanes), strict=True))
