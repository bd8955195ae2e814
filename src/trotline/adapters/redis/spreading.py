"""Settling leases whose pages led to other shards.

What belongs to another shard goes there first, then the lease ends: a crash in between leaves a task that is visited
again, and whose children are known by then. A lease that is no longer held leads nowhere.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence

import msgspec

from trotline.adapters.redis.batches import moved
from trotline.adapters.redis.shard import Shard
from trotline.model.lease import Settled, Settlement
from trotline.model.moments import Seconds
from trotline.model.outcome import Snooze
from trotline.model.task import Task

_Move = tuple[Task, Seconds, bytes]


class Spread:
    def __init__(self, shards: Sequence[Shard], home: Callable[[str], Shard]) -> None:
        self._shards = shards
        self._home = home
        self._known: dict[str, dict[int, Settled]] = defaultdict(dict)
        """By worker: what was answered by some shards, when others did not answer. The caller asks again."""

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        known = self._known[worker]
        asked = [each for each in settlements if each.lease.token not in known]
        groups: dict[int, list[Settlement]] = defaultdict(list)
        for settlement in asked:
            groups[settlement.lease.token % len(self._shards)].append(settlement)
        answers = await asyncio.gather(
            *(self._settle(worker, self._shards[number], group) for number, group in groups.items()),
            return_exceptions=True,
        )
        told = _by_token(groups, answers)
        for trouble in answers:
            if isinstance(trouble, BaseException):
                known.update({token: answer[0] for token, answer in told.items()})
                raise trouble
        del self._known[worker]
        return [
            known[each.lease.token] if each.lease.token in known else told[each.lease.token].pop(0)
            for each in settlements
        ]

    async def _settle(self, worker: str, shard: Shard, group: list[Settlement]) -> list[Settled]:
        away = [each for each in _first_of_each(group) if self._leads_away(shard, each)]
        left = await self._send(worker, shard, away) if away else frozenset()
        return await shard.settle(worker, [self._own(shard, each) for each in group], left)

    async def _send(self, worker: str, shard: Shard, away: list[Settlement]) -> Container[int]:
        """Children and moved tasks go to their shards; which leases' tasks have moved there."""
        told = await shard.live(worker, [each.lease for each in away])
        children: list[Task] = []
        moves: dict[Shard, list[_Move]] = defaultdict(list)
        left: set[int] = set()
        for settlement, counts in zip(away, told, strict=True):
            if counts is None:
                continue
            children += [child for child in settlement.children if self._home(child.lane) is not shard]
            task = moved(settlement)
            if task is not None and self._home(task.lane) is not shard:
                assert isinstance(settlement.outcome, Snooze)  # noqa: S101 - only those move
                moves[self._home(task.lane)].append((task, settlement.outcome.wait, counts))
                left.add(settlement.lease.token)
        await asyncio.gather(
            *(target.put(tasks) for target, tasks in self._by_home(children).items()),
            *(target.arrive(tasks) for target, tasks in moves.items()),
        )
        return left

    def _leads_away(self, shard: Shard, settlement: Settlement) -> bool:
        task = moved(settlement)
        return (task is not None and self._home(task.lane) is not shard) or any(
            self._home(child.lane) is not shard for child in settlement.children
        )

    def _own(self, shard: Shard, settlement: Settlement) -> Settlement:
        """The settlement without the children that belong elsewhere."""
        own = tuple(child for child in settlement.children if self._home(child.lane) is shard)
        return settlement if len(own) == len(settlement.children) else msgspec.structs.replace(settlement, children=own)

    def _by_home(self, tasks: Iterable[Task]) -> dict[Shard, list[Task]]:
        homes: dict[Shard, list[Task]] = defaultdict(list)
        for task in tasks:
            homes[self._home(task.lane)].append(task)
        return homes


def _first_of_each(group: list[Settlement]) -> list[Settlement]:
    """A lease that stands twice in one call is settled once, by the first."""
    return list({each.lease.token: each for each in reversed(group)}.values())[::-1]


def _by_token(
    groups: dict[int, list[Settlement]], answers: Sequence[list[Settled] | BaseException]
) -> dict[int, list[Settled]]:
    """By token, in the order asked: a lease may stand in one call twice."""
    told: dict[int, list[Settled]] = defaultdict(list)
    for group, answer in zip(groups.values(), answers, strict=True):
        if not isinstance(answer, BaseException):
            for settlement, one in zip(group, answer, strict=True):
                told[settlement.lease.token].append(one)
    return told
