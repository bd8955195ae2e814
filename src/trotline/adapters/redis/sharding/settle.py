"""Settling leases whose pages led to other shards.

What belongs to another shard goes there first, then the lease ends: a crash in between leaves a task that is visited
again, and whose children are known by then. A lease that is no longer held leads nowhere.

A shard whose primary died may have forgotten what it was sent last, and the page that led there is not visited again:
its own shard remembers its end. So what was sent lately is sent once more after a reconnect.
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
"""Replicas are behind by far less."""


class _Sent(msgspec.Struct):
    """What went to another shard, and when."""

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
        """By worker: what was answered by some shards, when others did not answer. The caller asks again."""
        self._server = shards[0].server
        self._generation = self._server.generation
        self._sent: deque[_Sent] = deque()

    async def repeat(self) -> None:
        """Send once more what may be forgotten, if there was a reason to forget: it is known, or it is needed."""
        generation = self._server.generation
        if generation == self._generation:
            return
        now = asyncio.get_running_loop().time()
        for sent in tuple(self._sent):
            await sent.send()
            # That can be forgotten just as well.
            sent.at = now
        self._generation = generation

    def _remember(self, sent: _Sent) -> None:
        self._sent.append(sent)
        if self._generation != self._server.generation:
            # All of it may be needed yet.
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
        for trouble in answers:
            if isinstance(trouble, BaseException):
                known.update({name: answer[0] for name, answer in answered.items()})
                raise trouble
        del self._known[worker]
        return [
            known[name] if (name := name_of(each.lease)) in known else answered[name].pop(0) for each in settlements
        ]

    async def _settle(self, worker: str, shard: Shard, group: list[Settlement]) -> list[Settled]:
        away = [each for each in _first_of_each(group) if self._leads_away(shard, each)]
        if not away:
            return await shard.settle(worker, group)
        left, gone = await self._send(worker, shard, away)
        # Not asked again: a server that forgot the lease may have given us the same task once more, by the same token,
        # and would take the end of this visit for that of the other, without what it led to.
        kept = [self._own(shard, each) for each in group if name_of(each.lease) not in gone]
        answers = iter(await shard.settle(worker, kept, left) if kept else [])
        return [Settled.STALE if name_of(each.lease) in gone else next(answers) for each in group]

    async def _send(self, worker: str, shard: Shard, away: list[Settlement]) -> tuple[set[LeaseName], set[LeaseName]]:
        """Children and moved tasks go to their shards. Which leases' tasks have moved there, and which leases are held
        no more: those lead nowhere."""
        held = await shard.check_leases(worker, [each.lease for each in away])
        children: list[Task] = []
        moves: dict[Shard, list[_Move]] = defaultdict(list)
        left: set[LeaseName] = set()
        gone: set[LeaseName] = set()
        for settlement, counts in zip(away, held, strict=True):
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
    return list({name_of(each.lease): each for each in reversed(group)}.values())[::-1]


def _by_name(
    groups: dict[int, list[Settlement]], answers: Sequence[list[Settled] | BaseException]
) -> dict[LeaseName, list[Settled]]:
    """By lease, in the order asked: a lease may stand in one call twice."""
    answered: dict[LeaseName, list[Settled]] = defaultdict(list)
    for group, answer in zip(groups.values(), answers, strict=True):
        if not isinstance(answer, BaseException):
            for settlement, one in zip(group, answer, strict=True):
                answered[name_of(settlement.lease)].append(one)
    return answered
