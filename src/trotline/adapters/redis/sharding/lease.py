"""Leases from several shards: by priority, and in turns by their ready lanes."""

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
"""Maximum calls per shard and lease."""
_LONGEST: Seconds = START_SLACK / 3
"""Time limit: start times of the first leases pass meanwhile."""


class ShardedLease:
    """Shards with work of the same priority get turns in proportion to their ready lanes."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = shards
        self._turns = [0.0] * len(shards)
        """Leases of each shard, divided by its ready lanes."""
        self._now = 0.0

    async def lease(self, worker: str, limit: int, pools: Sequence[str] = DIRECT, queues: str = "") -> LeaseResult:
        latest = await self._ask_all(worker, pools, queues)
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
                result = await self._shards[number].lease(worker, wanted, pools, queues, upto)
            except FrontierError:
                # The other leases must reach the worker; the next call to this shard returns the lost ones.
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

    async def _ask_all(self, worker: str, pools: Sequence[str], queues: str) -> dict[int, LeaseResult]:
        """What every shard has. One that does not answer is left out, unless none does."""
        answers = await asyncio.gather(
            *(shard.lease(worker, 0, pools, queues) for shard in self._shards), return_exceptions=True
        )
        results = {number: result for number, result in enumerate(answers) if isinstance(result, LeaseResult)}
        for error in answers:
            if isinstance(error, BaseException) and (not results or not isinstance(error, FrontierUnreachable)):
                raise error
        return results

    def _next(self, best: dict[int, LeaseResult], left: int) -> tuple[int, int, int]:
        """The next shard, the number of tasks, and the maximum level."""
        priorities = {number: (result.best or 0) // 2 for number, result in best.items()}
        first = min(priorities.values())
        tied = [number for number, priority in priorities.items() if priority == first]
        number = min(tied, key=lambda each: max(self._turns[each], self._now))
        # A shard that was empty for a while does not catch up on its turns.
        self._now = self._turns[number] = max(self._turns[number], self._now)
        lanes = sum(best[each].line for each in tied)
        share = ceil(left * best[number].line / lanes) if lanes else left
        others = [priority for each, priority in priorities.items() if each != number]
        upto = min(others) if others and len(tied) == 1 else first
        return number, max(1, min(left, share)), (upto if others else _ALL) * 2 + 1


_ALL = 2**30
