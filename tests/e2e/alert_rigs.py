"""A job on a real frontier whose clock is turned by hand, and the processes that watch its alerts."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from trotline.coordinator.alert_sample import AlertSampler
from trotline.coordinator.alert_watch import AlertPlan, AlertWatch
from trotline.coordinator.job_observer import Observer
from trotline.coordinator.pool_sampler import PoolSampler
from trotline.frontier.pool_status import PoolWatch
from trotline.model.job import LaneRules, State, WorkerInfo
from trotline.model.lease import Settlement
from trotline.model.outcome import Done, Outcome
from trotline.ports.alert_receiver import AlertReceiver
from trotline.ports.proxy_pools import ProxyPools
from trotline.rules.alerts import AlertRules
from trotline.testing.frontier_contract import BRISK, Client
from trotline.testing.frontier_contract.bench import SHOP, Bench, lease_all, task

STEP = 30.0
"""Seconds between two looks, longer than in real life."""


class Watcher:
    """One process that watches the job."""

    def __init__(self, rig: "Rig", client: Client, pools: PoolWatch) -> None:
        console = client.opened.console
        self.rig = rig
        self.events: list[tuple[str, str]] = []
        self.observer = Observer(console, rig.bench.now)
        sampler = AlertSampler(
            client.opened.job,
            self.observer,
            rig.plan.rules,
            last_tallies=rig.tallies_before,
            pools=PoolSampler(console, pools, STEP),
        )
        self.watch = AlertWatch(client.opened.job, console, rig.plan, sampler, rig.bench.now, self._emit)

    def _emit(self, event: str, text: str, **data: object) -> None:
        self.events.append((event, text))

    async def look(self) -> None:
        observation = await self.observer.observe()
        progress = msgspec.structs.replace(observation.progress, broker=self.rig.broker)
        observation = msgspec.structs.replace(observation, progress=progress)
        ended = progress.finished_at is not None or progress.state is State.CANCELLED
        await self.watch.check(observation, final=ended)


class Rig:
    def __init__(self, bench: Bench, receivers: tuple[AlertReceiver, ...], rules: AlertRules | None = None) -> None:
        self.bench = bench
        self.plan = AlertPlan(rules=rules or AlertRules(), receivers=receivers, link="https://dash.example")
        self.before: Mapping[str, int] | None = None
        self.about: dict[str, WorkerInfo | None] = {"w": None}
        """Living workers, and what they report."""
        self.broker = ""
        """Why the broker cannot be asked."""
        self.watchers: list[Watcher] = []
        self._number = 0
        self._pools: list[PoolWatch] = []

    async def open(self, rules: LaneRules = BRISK, watchers: int = 1) -> Client:
        self.client = await self.bench.open(rules)
        for _ in range(watchers):
            await self.join()
        return self.client

    async def join(self) -> Watcher:
        """One more process that watches."""
        pools = PoolWatch(self._open_pools)
        self._pools.append(pools)
        self.watchers.append(Watcher(self, await self.bench.again(), pools))
        return self.watchers[-1]

    async def tallies_before(self) -> Mapping[str, int] | None:
        return self.before

    async def _open_pools(self) -> ProxyPools:
        return await self.bench.proxy_pools()

    async def put(self, count: int) -> None:
        first, self._number = self._number, self._number + count
        await self.client.put([task(f"https://{SHOP}/{number}") for number in range(first, first + count)])

    async def visit(self, count: int, outcome: Outcome | None = None, **tallies: int) -> None:
        """End so many tasks; a record each, unless `tallies` say otherwise."""
        named = {name.replace("_", " "): number for name, number in (tallies or {"records": 1}).items()}
        leases = await lease_all(self.client, "w", count)
        assert len(leases) == count
        await self.client.settle("w", [Settlement(lease, outcome or Done(), tallies=named) for lease in leases])

    async def after(self, seconds: float, work: Callable[[], Awaitable[None]] | None = None) -> None:
        """Time passes; everybody looks now and then, and messages are delivered."""
        while seconds > 0:
            step = min(STEP, seconds)
            seconds -= step
            await self.pass_time(step)
            if work is not None:
                await work()
            for watcher in self.watchers:
                await watcher.look()
            for watcher in self.watchers:
                await watcher.watch.drain()

    async def pass_time(self, seconds: float) -> None:
        """Nobody looks."""
        self.bench.jump(seconds)
        for worker, about in self.about.items():
            await self.client.beat(worker, about)

    async def close(self) -> None:
        for watcher in self.watchers:
            await watcher.watch.close()
        for pools in self._pools:
            await pools.close()
