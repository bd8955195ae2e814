"""Settles leases whose children or redirects belong to other shards.

Those are sent first, then the lease ends: after a crash in between the task is visited again, and its children are
duplicates. A lease that is no longer held sends nothing.

A failover of a shard may lose what it was sent last, and the page that it came from is not visited again, as its own
shard has settled it. So recently sent tasks are sent once more after a reconnect.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence

import msgspec

from trotline.adapters.redis.batch_codec import LeaseName, moved, name_of
from trotline.adapters.redis.shard import Shard
from trotline.model.lease import Settled, Settlement
from trotline.model.outcome import Snooze
from trotline.model.task import Task
from trotline.model.time import Seconds

_Move = tuple[Task, Seconds, bytes]
_REMEMBER: Seconds = 10.0
"""Much longer than the lag of replicas."""


class _Sent(msgspec.Struct):
    """Tasks sent to other shards."""

    at: Seconds
    children: dict[Shard, list[Task]]
    moves: dict[Shard, list[_Move]]

    async def send(self) -> None:
        await asyncio.gather(
            *(target.put(tasks) for target, tasks in self.children.items()),
            *(target.arrive(tasks) for target, tasks in self.moves.items()),
        )


class ShardedSettle:
    def __init__(self, shards: Sequence[Shard], home: Callable[[str], Shard]) -> None:
        self._shards = shards
        self._home = home
        self._known: dict[str, dict[LeaseName, Settled]] = defaultdict(dict)
        """Worker -> results of some shards, if others failed: the caller repeats the call."""
        self._server = shards[0].server
        self._generation = self._server.generation
        self._sent: deque[_Sent] = deque()

    async def repeat(self) -> None:
        """After a reconnect, send recent tasks again, as they may be lost; otherwise they are duplicates."""
        generation = self._server.generation
        if generation == self._generation:
            return
        now = asyncio.get_running_loop().time()
        for sent in tuple(self._sent):
            await sent.send()
            # The repeat can be lost, too.
            sent.at = now
        self._generation = generation

    def _remember(self, sent: _Sent) -> None:
        self._sent.append(sent)
        if self._generation != self._server.generation:
            # Keep all until they were sent again.
            return
        while sent.at - self._sent[0].at > _REMEMBER:
            self._sent.popleft()

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        await self.repeat()
        known = self._known[worker]
        asked = [each for each in settlements if name_of(each.lease) not in known]
        groups: dict[int, list[Settlement]] = defaultdict(list)
        for settlement in asked:
            groups[settlement.lease.token % len(self._shards)].append(settlement)
        answers = await asyncio.gather(
            *(self._settle(worker, self._shards[number], group) for number, group in groups.items()),
            return_exceptions=True,
        )
        answered = _by_name(groups, answers)
        for error in answers:
            if isinstance(error, BaseException):
                known.update({name: answer[0] for name, answer in answered.items()})
                raise error
        del self._known[worker]
        return [
            known[name] if (name := name_of(each.lease)) in known else answered[name].pop(0) for each in settlements
        ]

    async def _settle(self, worker: str, shard: Shard, group: list[Settlement]) -> list[Settled]:
        leaving = [each for each in _first_of_each(group) if self._leaves(shard, each)]
        if not leaving:
            return await shard.settle(worker, group)
        left, gone = await self._send(worker, shard, leaving)
        # Stale ones are not settled: a server that lost the lease may have leased the same task again, with the same
        # token, and would settle that visit without its children.
        kept = [self._own(shard, each) for each in group if name_of(each.lease) not in gone]
        answers = iter(await shard.settle(worker, kept, left) if kept else [])
        return [Settled.STALE if name_of(each.lease) in gone else next(answers) for each in group]

    async def _send(
        self, worker: str, shard: Shard, leaving: list[Settlement]
    ) -> tuple[set[LeaseName], set[LeaseName]]:
        """Send children and moved tasks to their shards. Returns the leases whose tasks moved, and the stale leases."""
        held = await shard.check_leases(worker, [each.lease for each in leaving])
        children: list[Task] = []
        moves: dict[Shard, list[_Move]] = defaultdict(list)
        left: set[LeaseName] = set()
        gone: set[LeaseName] = set()
        for settlement, counts in zip(leaving, held, strict=True):
            if counts is None:
                gone.add(name_of(settlement.lease))
                continue
            children += [child for child in settlement.children if self._home(child.lane) is not shard]
            task = moved(settlement)
            if task is not None and self._home(task.lane) is not shard:
                assert isinstance(settlement.outcome, Snooze)  # noqa: S101 - only those move
                moves[self._home(task.lane)].append((task, settlement.outcome.wait, counts))
                left.add(name_of(settlement.lease))
        sent = _Sent(asyncio.get_running_loop().time(), self._by_home(children), moves)
        self._remember(sent)
        await sent.send()
        return left, gone

    def _leaves(self, shard: Shard, settlement: Settlement) -> bool:
        task = moved(settlement)
        return (task is not None and self._home(task.lane) is not shard) or any(
            self._home(child.lane) is not shard for child in settlement.children
        )

    def _own(self, shard: Shard, settlement: Settlement) -> Settlement:
        """The settlement without children of other shards."""
        own = tuple(child for child in settlement.children if self._home(child.lane) is shard)
        return settlement if len(own) == len(settlement.children) else msgspec.structs.replace(settlement, children=own)

    def _by_home(self, tasks: Iterable[Task]) -> dict[Shard, list[Task]]:
        homes: dict[Shard, list[Task]] = defaultdict(list)
        for task in tasks:
            homes[self._home(task.lane)].append(task)
        return homes


def _first_of_each(group: list[Settlement]) -> list[Settlement]:
    """A lease that appears twice in one call is settled once, by the first."""
    return list({name_of(each.lease): each for each in reversed(group)}.values())[::-1]


def _by_name(
    groups: dict[int, list[Settlement]], answers: Sequence[list[Settled] | BaseException]
) -> dict[LeaseName, list[Settled]]:
    """By lease, in the order of the call: a lease may appear twice."""
    answered: dict[LeaseName, list[Settled]] = defaultdict(list)
    for group, answer in zip(groups.values(), answers, strict=True):
        if not isinstance(answer, BaseException):
            for settlement, one in zip(group, answer, strict=True):
                answered[name_of(settlement.lease)].append(one)
    return answered
