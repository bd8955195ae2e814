"""The bench on which a frontier is tried, and the small tools lying on it."""

from collections.abc import Sequence
from typing import Any, Protocol

import xxhash

from trotline.model.job import LaneRules, LaneView
from trotline.model.lease import LaneFeedback, Lease, Settled, Settlement
from trotline.model.outcome import Bury, Done, Outcome
from trotline.model.pace import Pace, Rate
from trotline.model.task import NORMAL, Task
from trotline.model.time import Moment, Seconds
from trotline.model.verdict import Kind
from trotline.ports.backend import OpenJob
from trotline.ports.console import Console
from trotline.ports.frontier import Frontier
from trotline.ports.proxy_pools import ProxyPools

SHOP = "shop.example"
FAST = Rate(10_000.0)


class Client(Frontier, Console, Protocol):
    """One process's connection to a job: what a worker uses, and what an operator uses."""

    opened: OpenJob


class _Both:
    """A job's frontier and its console under one name, for tests that are a worker and an operator at once."""

    def __init__(self, opened: OpenJob) -> None:
        self.opened = opened

    def __getattr__(self, name: str) -> Any:
        of_worker = hasattr(self.opened.frontier, name)
        return getattr(self.opened.frontier if of_worker else self.opened.console, name)


def client(opened: OpenJob) -> Client:
    both: Any = _Both(opened)
    found: Client = both
    return found


def steady(rate: float = FAST.per_second, concurrency: int = 10_000, **rules: Any) -> LaneRules:
    """Rules with a pace that does not adapt, no cap on retries and endless patience, unless the test says otherwise."""
    pace = Pace(rate=Rate(rate), concurrency=concurrency, slowest=Rate(rate))
    usual: dict[str, Any] = {"default": pace, "retry_share": 1000.0, "give_up": 1e9}
    return LaneRules(**(usual | rules))


BRISK = steady()
"""Rules that never stand in the way of a test about something else."""


class Bench(Protocol):
    """What the suite and the state machine need to know of a backend."""

    durable: bool
    """Does a job outlive the processes that work on it?"""

    async def open(self, rules: LaneRules = BRISK) -> Client:
        """A client of a new, empty, unsealed job, on a new frontier."""
        ...

    async def another_job(self, rules: LaneRules = BRISK) -> Client:
        """A client of another new job, on the frontier of the job opened last."""
        ...

    async def again(self) -> Client:
        """Another client of the job opened last, as another process would have it."""
        ...

    async def crash(self, client: Client) -> None:
        """The process that had this client has died without leaving the frontier."""
        ...

    async def proxy_pools(self) -> ProxyPools:
        """The proxy pools of the frontier of the job opened last; `close` closes them."""
        ...

    def jump(self, seconds: Seconds) -> None:
        """Turn the server's clock forward."""
        ...

    def now(self) -> Moment:
        """The server's time."""
        ...

    async def close(self) -> None:
        """Close every client and delete what they left."""
        ...


def task(
    url: str, route: str = "page", lane: str = SHOP, priority: int = NORMAL, key: str | None = None, **fields: Any
) -> Task:
    """A task as it leaves the gate: lane and fingerprint filled."""
    unsigned = xxhash.xxh3_64_intdigest(f"{route}\n{url if key is None else key}".encode())
    fingerprint = unsigned - 2**64 if unsigned >= 2**63 else unsigned
    return Task(url=url, route=route, lane=lane, fingerprint=fingerprint, priority=priority, key=key, **fields)


def tasks(count: int, lane: str = SHOP, **fields: Any) -> list[Task]:
    return [task(f"https://{lane}/{number}", lane=lane, **fields) for number in range(count)]


async def lease_all(client: Client, worker: str, limit: int = 100_000) -> list[Lease]:
    """Every task that may run now, up to `limit`: a frontier may hand them out in several portions."""
    held: list[Lease] = []
    while len(held) < limit and (more := await client.lease(worker, min(limit - len(held), 500))):
        held += more
    return held


async def lease_one(client: Client, worker: str) -> Lease:
    leases = await client.lease(worker, 1)
    assert len(leases) == 1, f"one task may run, so one lease must come; came: {leases}"
    return leases[0]


async def end(client: Client, worker: str, lease: Lease, outcome: Outcome, news: LaneFeedback | None = None) -> Settled:
    [settled] = await client.settle(worker, [Settlement(lease, outcome, news=news)])
    return settled


async def finish(client: Client, worker: str, leases: Sequence[Lease], kind: Kind | None = None) -> None:
    """Settle every lease as done, with `kind` as the lane's news; every token must still be good."""
    news = LaneFeedback(kind) if kind is not None else None
    settled = await client.settle(worker, [Settlement(lease, Done(), news=news) for lease in leases])
    assert settled == [Settled.OK] * len(leases)


async def bury_one(client: Client, worker: str, why: str, detail: str = "") -> Lease:
    lease = await lease_one(client, worker)
    assert await end(client, worker, lease, Bury(why, detail)) == Settled.OK
    return lease


async def lane_view(client: Client, lane: str = SHOP) -> LaneView:
    [view] = [view for view in await client.lanes(1000) if view.lane == lane]
    return view


async def live_on(bench: Bench, client: Client, seconds: Seconds, *workers: str) -> None:
    """Time passes on the server while these workers beat."""
    while seconds > 0:
        for worker in workers:
            await client.beat(worker)
        step = min(seconds, 5.0)
        bench.jump(step)
        seconds -= step
    for worker in workers:
        await client.beat(worker)


def urls(leases: Sequence[Lease]) -> list[str]:
    return [lease.task.url for lease in leases]
