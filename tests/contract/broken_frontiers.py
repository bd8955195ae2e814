"""Frontiers with a planted bug each; those of proxies and accounts: broken_pools.py."""

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from trotline.model.job import Progress, State, WorkerView
from trotline.model.lease import Admission, LaneFeedback, Lease, Settled, Settlement
from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.model.pace import Pace
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.verdict import Kind
from trotline.ports.frontier import DIRECT
from trotline.testing.frontier_contract import Client

numbers = itertools.count()


class Broken:
    """A healthy frontier in unhealthy hands. `common` is what all clients of the job share."""

    def __init__(self, healthy: Client, common: dict[str, Any]) -> None:
        self.healthy = healthy
        self.common = common

    def __getattr__(self, verb: str) -> Any:
        return getattr(self.healthy, verb)


class ChecksThenAdds(Broken):
    """F1: looks whether a task is known, and adds it in a second step."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        answers = []
        for task in tasks:
            if task.fingerprint in self.common:
                answers.append(Admission.DUPLICATE)
                continue
            await asyncio.sleep(0)
            # The healthy frontier would notice the second one; under a name of its own it does not.
            self.common[task.fingerprint] = True
            nonce = hash((task.fingerprint, len(self.common), next(numbers)))
            await self.healthy.put([replace(task, fingerprint=nonce)])
            answers.append(Admission.NEW)
        return answers


class AnswersBeforeWriting(Broken):
    """F2: a put is answered at once and written with the next one."""

    pending: Sequence[Task] = ()

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        await self.healthy.put(self.pending)
        self.pending = tasks
        return [Admission.NEW] * len(tasks)


class LeasesTwice(Broken):
    """F3: what somebody leased a moment ago is handed out once more."""

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        fresh = await self.healthy.lease(worker, limit, wait, pools, routes)
        again, self.common["last"] = self.common.get("last", []), fresh
        return fresh or again


class IgnoresDueTimes(Broken):
    """F4: everything may run now."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        return await self.healthy.put([replace(task, not_before=0.0) for task in tasks])


class CountsNoAttempts(Broken):
    """F5: a rescued task looks as if nothing had happened."""

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        leases = await self.healthy.lease(worker, limit, wait, pools, routes)
        return [replace(lease, task=replace(lease.task, attempt=0)) for lease in leases]


class DoesNotFence(Broken):
    """F6: whoever settles a task settles it, whatever the token says."""

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        leases = await self.healthy.lease(worker, limit, wait, pools, routes)
        self.common.update((lease.task.fingerprint, lease) for lease in leases)
        return leases

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        current = [self.common.get(each.lease.task.fingerprint, each.lease) for each in settlements]
        pairs = zip(settlements, current, strict=True)
        return await self.healthy.settle(worker, [replace(each, lease=lease) for each, lease in pairs])


class ForgetsWhatIsDone(Broken):
    """F7: a task that is put again is a new task."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        answers = await self.healthy.put(tasks)
        again = [replace(task, fingerprint=hash((task.fingerprint, next(numbers)))) for task in tasks]
        if Admission.DUPLICATE in answers:
            return await self.healthy.put(again)
        return answers


class CountsSnoozes(Broken):
    """F8: a snooze costs an attempt."""

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        return await self.healthy.settle(worker, [replace(each, outcome=_costly(each)) for each in settlements])


class BuriesWithoutReason(Broken):
    """F9: nobody will ever know why."""

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        return await self.healthy.settle(worker, [replace(each, outcome=_silent(each)) for each in settlements])


class HidesLeasedTasks(Broken):
    """F10: while it is leased, a task is nowhere."""

    async def progress(self) -> Progress:
        return replace(await self.healthy.progress(), leased=0)


class NeverWaits(Broken):
    """F11: leasing returns at once."""

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        return await self.healthy.lease(worker, limit)


class DoesNotPause(Broken):
    """F12: the button is painted on."""

    async def steer(self, state: State, lane: str | None = None) -> int:
        return 0 if state is State.PAUSED else await self.healthy.steer(state, lane)


class DrainsByPausing(Broken):
    """F12: nothing new comes in, and nothing that waits goes out."""

    async def steer(self, state: State, lane: str | None = None) -> int:
        return await self.healthy.steer(State.PAUSED if state is State.DRAINING else state, lane)


class RemembersWhatItRefused(Broken):
    """F12: what a draining job refuses is known from then on, and never admitted again."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        answers = await self.healthy.put(tasks)
        refused = self.common.setdefault("refused", set())
        for place, (task, answer) in enumerate(zip(tasks, answers, strict=True)):
            if task.fingerprint in refused:
                answers[place] = Admission.DUPLICATE
            elif answer is Admission.REFUSED:
                refused.add(task.fingerprint)
        return answers


class AnnouncesTheCancelled(Broken):
    """F14: a job that was cancelled is told to the world as a job that is done."""

    async def announce_finish(self) -> bool:
        announced = await self.healthy.announce_finish()
        return announced or (await self.healthy.progress()).state is State.CANCELLED


class CancelsForEver(Broken):
    """F12: a cancelled job cannot be resumed."""

    async def steer(self, state: State, lane: str | None = None) -> int:
        if state is State.RUNNING and (await self.healthy.progress()).state is State.CANCELLED:
            return 0
        return await self.healthy.steer(state, lane)


class KeepsItsPace(Broken):
    """F13: the operator's word about a lane's pace is not heard."""

    async def set_pace(self, lane: str, pace: Pace) -> None:
        pass


class CountsStaleSettles(Broken):
    """F10: a worker's figures count what was refused."""

    async def workers(self) -> list[WorkerView]:
        late = self.common.get("late", 0)
        return [replace(view, done=view.done + late) for view in await self.healthy.workers()]

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        answers = await self.healthy.settle(worker, settlements)
        self.common["late"] = self.common.get("late", 0) + answers.count(Settled.STALE)
        return answers


class StartsAtOnce(Broken):
    """F13: the reserved moments are thrown away."""

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        return [replace(lease, start_in=0.0) for lease in await self.healthy.lease(worker, limit, wait, pools, routes)]


class AnnouncesToEverybody(Broken):
    """F14: everybody who asks is told to tell the world."""

    async def announce_finish(self) -> bool:
        return await self.healthy.finished()


class OneQueueForAll(Broken):
    """F15: lanes exist by name only."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        return await self.healthy.put([replace(task, lane="all", meta={"lane": task.lane}) for task in tasks])

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        leases = await self.healthy.lease(worker, limit, wait, pools, routes)
        return [replace(lease, task=replace(lease.task, lane=lease.task.meta["lane"], meta={})) for lease in leases]


class LearnsNothing(Broken):
    """F16: a lane's news are not read."""

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        return await self.healthy.settle(worker, [replace(each, news=None) for each in settlements])


class KeepsLanesByJob(Broken):
    """F13: every job has its own lane for a host, and its own pace for it."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        own = f"#{self.healthy.job.id}"
        return await self.healthy.put([replace(task, lane=task.lane + own) for task in tasks])

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        leases = await self.healthy.lease(worker, limit, wait, pools, routes)
        return [replace(lease, task=replace(lease.task, lane=lease.task.lane.split("#")[0])) for lease in leases]


class DoesNotWaitForRobots(Broken):
    """F18: a lane is taken for known before anybody has told."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        answers = await self.healthy.put(tasks)
        first = await self.healthy.lease("nobody", 1)
        known = LaneFeedback(Kind.REFUSED, robots=True)
        await self.healthy.settle("nobody", [Settlement(lease, Snooze(0, "seen"), news=known) for lease in first])
        return answers


class TakesEveryRoute(Broken):
    """F21: tasks of all routes are handed out, whichever the worker takes."""

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        return await self.healthy.lease(worker, limit, wait, pools)


class LooksAtTheHeadOnly(Broken):
    """F21: what comes next is looked at, and given back if its route is another one."""

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        leases = await self.healthy.lease(worker, limit, wait, pools)
        other = [lease for lease in leases if routes is not None and lease.task.route not in routes]
        await self.healthy.settle(worker, [Settlement(lease, Snooze(1.0, "another route")) for lease in other])
        return [lease for lease in leases if lease not in other]


class IgnoresChains(Broken):
    """C1: every task may run at once."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        return await self.healthy.put([replace(task, chain="") for task in tasks])


class LosesThePlace(Broken):
    """C3: a retried step goes to the end of its chain."""

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        return await self.healthy.settle(worker, [self._at_the_end(each) for each in settlements])

    def _at_the_end(self, settlement: Settlement) -> Settlement:
        task = settlement.lease.task
        if not isinstance(settlement.outcome, Retry | Snooze):
            return settlement
        again = replace(task, fingerprint=task.fingerprint ^ 1)
        return replace(settlement, outcome=Done(), children=(again,))


class GoesOnAfterAFailure(Broken):
    """C4: a buried step counts as done for its chain."""

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        return await self.healthy.settle(
            worker,
            [replace(each, outcome=Done()) if isinstance(each.outcome, Bury) else each for each in settlements],
        )


def _costly(settlement: Settlement) -> Any:
    match settlement.outcome:
        case Snooze(wait=wait, why=why):
            return Retry(wait, why)
        case other:
            return other


def _silent(settlement: Settlement) -> Any:
    match settlement.outcome:
        case Bury():
            return Bury("")
        case other:
            return other
