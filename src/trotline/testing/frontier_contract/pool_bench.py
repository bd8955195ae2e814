"""What tests of proxy pools need beside the bench: pools, tasks that go through them, and visits."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from trotline.model.lease import LaneFeedback, Lease, Settled, Settlement
from trotline.model.outcome import Done, Outcome, Snooze
from trotline.model.proxy_pool import MemberResult, Pool, PoolMember, PoolRules, lane_of
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds
from trotline.model.verdict import Kind
from trotline.testing.frontier_contract.bench import (
    SHOP,
    Bench,
    Client,
    live_on,
    task,
)
from trotline.testing.frontier_contract.pacing import GRAIN

POOL = "datacenter"
VIA_POOL = lane_of(SHOP, POOL)
GOOD, BLOCKED, THROTTLED = MemberResult.GOOD, MemberResult.BLOCKED, MemberResult.THROTTLED
FAULT, UNUSED = MemberResult.FAULT, MemberResult.UNUSED
REST: Seconds = 600.0
JITTER = 0.1
"""Rests are longer by up to this share."""
SITE_BLOCK = 5
"""Members blocked one after another, from which on the site blocks us."""
DOWN: Seconds = 10.0
"""The first rest of a member that failed three times."""
NEWS = {GOOD: LaneFeedback(Kind.OK), BLOCKED: LaneFeedback(Kind.BLOCKED), THROTTLED: LaneFeedback(Kind.THROTTLED)}


def pool_with(*ids: int, version: Moment = 1.0, name: str = POOL, **rules: Any) -> Pool:
    members = tuple(PoolMember(each) for each in ids)
    return Pool(name=name, version=version, rules=PoolRules(**({"rest": REST} | rules)), members=members)


def through(count: int, host: str = SHOP, pool: str = POOL, **fields: Any) -> list[Task]:
    """`count` tasks of a host that go out through a pool."""
    lane = lane_of(host, pool)
    return [task(f"https://{host}/{n}?{pool}", lane=lane, pool=pool, **fields) for n in range(count)]


async def register(bench: Bench, *pools: Pool) -> None:
    known = await bench.proxy_pools()
    for pool in pools:
        assert await known.register(pool)


async def take(client: Client, worker: str = "w", limit: int = 100, pools: Sequence[str] = (POOL,)) -> list[Lease]:
    """Every task that may run now, up to `limit`."""
    held: list[Lease] = []
    while len(held) < limit and (more := await client.lease(worker, limit - len(held), pools=pools)):
        held += more
    return held


async def give(
    client: Client,
    lease: Lease,
    result: MemberResult = GOOD,
    worker: str = "w",
    outcome: Outcome | None = None,
    lift: tuple[int, ...] = (),
) -> Settled:
    """Settle one lease with this result for its member."""
    ending = outcome or (Snooze(0, "again") if result in (UNUSED, FAULT) else Done())
    settlement = Settlement(lease, ending, news=NEWS.get(result), member=result, lift=lift)
    [settled] = await client.settle(worker, [settlement])
    return settled


async def visit(client: Client, result: MemberResult = GOOD, worker: str = "w", host: str = SHOP) -> int:
    """One visit, and the member that it went through."""
    [lease] = await take(client, worker, 1)
    assert lease.task.lane == lane_of(host, POOL)
    assert await give(client, lease, result, worker) == Settled.OK
    return lease.member


def members_of(leases: Sequence[Lease]) -> list[int]:
    return sorted(lease.member for lease in leases)


def assert_apart(leases: Sequence[Lease], interval: Seconds) -> None:
    """Starts through one member are at least this far apart."""
    starts: dict[int, list[Moment]] = {}
    for lease in leases:
        starts.setdefault(lease.member, []).append(lease.leased_at + lease.start_in)
    for member, moments in starts.items():
        moments.sort()
        for one, other in pairwise(moments):
            assert other - one >= interval - GRAIN, f"two starts through {member} within {other - one:.3f} s"


async def patiently(bench: Bench, client: Client, worker: str) -> list[Lease]:
    """The next lease; a member may lose some turns, and a job waits a moment for another one's."""
    for _ in range(200):
        if leases := await client.lease(worker, 1, pools=(POOL,)):
            return leases
        await live_on(bench, client, 0.5, worker)
    raise AssertionError("no lease within 100 s")
