"""Leasing from several shards as if they were one: the best priority first, lanes of all shards in turn."""

import asyncio
from collections.abc import Sequence
from math import ceil

from trotline.adapters.redis.lease_result import LeaseResult
from trotline.adapters.redis.shard import Shard
from trotline.errors import FrontierError, FrontierUnreachable
from trotline.model.lease import Lease
from trotline.model.pace import START_SLACK
from trotline.model.time import Seconds
from trotline.ports.frontier import DIRECT

_ROUNDS = 4
"""Calls per shard at most; what is left then is for the next lease."""
_LONGEST: Seconds = START_SLACK / 3
"""The moments of what was leased first pass while others are asked."""


class ShardedLease:
    """Whose turn is it? Among shards with work of the same priority, turns go by how many lanes stand in line there."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = shards
        self._turns = [0.0] * len(shards)
        """How much each was given, by the lanes that it has."""
        self._now = 0.0

    async def lease(self, worker: str, limit: int, pools: Sequence[str] = DIRECT) -> LeaseResult:
        latest = await self._ask_all(worker, pools)
        best = {number: result for number, result in latest.items() if result.best is not None}
        leases: list[Lease] = []
        parked = 0
        clock = asyncio.get_running_loop().time
        until = clock() + _LONGEST
        for _ in range(_ROUNDS * len(self._shards)):
            if not best or len(leases) >= limit or (leases and clock() > until):
                break
            number, wanted, upto = self._next(best, limit - len(leases))
            try:
                result = await self._shards[number].lease(worker, wanted, pools, upto)
            except FrontierError:
                # What the others gave must reach the worker; and this one takes back what its lost reply gave.
                if not leases:
                    raise
                break
            leases += result.leases
            parked += result.parked
            self._turns[number] += len(result.leases) / max(1.0, best[number].line)
            latest[number] = result
            if result.best is None or (not result.leases and not result.parked and result.best == best[number].best):
                del best[number]
            else:
                best[number] = result
        pauses = [result.pause for result in latest.values() if result.pause > 0]
        over = len(latest) == len(self._shards) and all(result.over for result in latest.values())
        return LeaseResult(leases, min(pauses, default=-1.0), over, parked=parked)

    async def _ask_all(self, worker: str, pools: Sequence[str]) -> dict[int, LeaseResult]:
        """What every shard has. One that does not answer is left out, unless none does."""
        answers = await asyncio.gather(
            *(shard.lease(worker, 0, pools) for shard in self._shards), return_exceptions=True
        )
        results = {number: result for number, result in enumerate(answers) if isinstance(result, LeaseResult)}
        for trouble in answers:
            if isinstance(trouble, BaseException) and (not results or not isinstance(trouble, FrontierUnreachable)):
                raise trouble
        return results

    def _next(self, best: dict[int, LeaseResult], left: int) -> tuple[int, int, int]:
        """The shard, how many tasks are asked of it, and up to which level."""
        priorities = {number: (result.best or 0) // 2 for number, result in best.items()}
        first = min(priorities.values())
        tied = [number for number, priority in priorities.items() if priority == first]
        number = min(tied, key=lambda each: max(self._turns[each], self._now))
        # A shard that had nothing for a while does not get all its turns back.
        self._now = self._turns[number] = max(self._turns[number], self._now)
        lanes = sum(best[each].line for each in tied)
        share = ceil(left * best[number].line / lanes) if lanes else left
        others = [priority for each, priority in priorities.items() if each != number]
        upto = min(others) if others and len(tied) == 1 else first
        return number, max(1, min(left, share)), (upto if others else _ALL) * 2 + 1


_ALL = 2**30
