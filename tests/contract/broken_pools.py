"""Frontiers with a planted bug each in what they do with proxies and accounts."""

from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec.structs import replace
from tests.contract.broken_frontiers import Broken, numbers

from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.proxy_pool import MemberResult, Pool, PoolRules
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.ports.frontier import DEAD_AFTER, DIRECT
from trotline.ports.proxy_pools import ProxyPools


class NamesNoMember(Broken):
    """R1: the choice of a member is left to the worker."""

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        leases = await self.healthy.lease(worker, limit, wait, pools, routes)
        return [replace(lease, member=0) for lease in leases]


class LendsTwice(Broken):
    """R2: a member is free again as soon as it went out, and so is its next lease."""

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        leases = await self.healthy.lease(worker, limit, wait, pools, routes)
        self.common.setdefault("members", []).extend(lease.member for lease in leases)
        if not leases and self.common["members"]:
            return [replace(lease, member=self.common["members"][-1]) for lease in self.common["last"]]
        self.common["last"] = leases
        return leases


class ServesEveryPool(Broken):
    """R11: what the worker can serve is not asked."""

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        return await self.healthy.lease(worker, limit, wait, ("", "datacenter", "isp"))


class AnyAccount(Broken):
    """A2: the account in the name of a lane is not read."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        return await self.healthy.put([replace(task, lane=task.lane.partition("/")[0]) for task in tasks])


class LeavesForTheSilent(Broken):
    """A3: what a silent worker held comes back as if the worker had left."""

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        for each in await self.healthy.workers():
            if each.silent_for > DEAD_AFTER:
                await self.healthy.leave(each.name)
        return await self.healthy.lease(worker, limit, wait, pools, routes)


class SavesWithoutALease(Broken):
    """A5: sessions are kept by the client, and nobody asks for the lease."""

    async def save_session(self, worker: str, lease: Lease, state: bytes) -> bool:
        self.common[lease.member] = state
        return True

    async def read_session(self, worker: str, lease: Lease) -> bytes | None:
        return bytes(self.common.get(lease.member, b""))


class Mistakes(Broken):
    """The result of a visit is taken for another one."""

    taken_for: ClassVar[dict[MemberResult, MemberResult]]

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        return await self.healthy.settle(
            worker, [replace(each, member=self.taken_for.get(each.member, each.member)) for each in settlements]
        )


class ForgivesBans(Mistakes):
    """R4, R5, R10: a ban is taken for a good answer."""

    taken_for: ClassVar = {MemberResult.BLOCKED: MemberResult.GOOD}


class ForgivesFaults(Mistakes):
    """R6: a proxy that fails is as good as one that was not used."""

    taken_for: ClassVar = {MemberResult.FAULT: MemberResult.UNUSED}


class BansForFaults(Mistakes):
    """R6: a proxy that fails is banned in one lane, instead of resting in all."""

    taken_for: ClassVar = {MemberResult.FAULT: MemberResult.BLOCKED}


class BrokenPools:
    """Healthy pools in unhealthy hands."""

    def __init__(self, healthy: ProxyPools) -> None:
        self.healthy = healthy

    def __getattr__(self, verb: str) -> Any:
        return getattr(self.healthy, verb)


class PoolsWithoutRules(BrokenPools):
    """R3, R7, R9: intervals, holds and limits are ignored."""

    async def register(self, pool: Pool) -> bool:
        return await self.healthy.register(replace(pool, rules=PoolRules()))


class PoolsThatOnlyGrow(BrokenPools):
    """R8: a member that is gone from the list stays in the pool."""

    async def register(self, pool: Pool) -> bool:
        self.known = dict.fromkeys((*getattr(self, "known", ()), *pool.members))
        return await self.healthy.register(replace(pool, members=tuple(self.known)))


class PoolsOfAnyVersion(BrokenPools):
    """R8: the last who registers wins."""

    async def register(self, pool: Pool) -> bool:
        await self.healthy.register(replace(pool, version=float(next(numbers))))
        return True
