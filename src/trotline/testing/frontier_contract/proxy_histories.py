"""R1, R2, R4 and R8 over random histories: workers die, calls come late, pools are reloaded, and no member is lost."""

import random
from collections.abc import Callable, Coroutine
from typing import Any

from trotline.model.lease import Lease, Settled, Settlement
from trotline.model.outcome import Done, Retry, Snooze
from trotline.model.proxy_pool import MemberResult, lane_of
from trotline.model.time import Moment, Seconds
from trotline.ports.frontier import DEAD_AFTER
from trotline.ports.proxy_pools import ProxyPools
from trotline.testing.frontier_contract.bench import Bench, Client
from trotline.testing.frontier_contract.pool_bench import (
    BLOCKED,
    FAULT,
    GOOD,
    NEWS,
    POOL,
    REST,
    THROTTLED,
    UNUSED,
    give,
    pool_with,
    through,
)

HOSTS = ("a.example", "b.example", "c.example")
LANES = tuple(lane_of(host, POOL) for host in HOSTS)
RESULTS = (*[GOOD] * 12, BLOCKED, BLOCKED, THROTTLED, FAULT, UNUSED, UNUSED)
WORKERS = 4
STEPS = 300


class History:
    """A random history of calls, and a model of who is out and who is banned."""

    def __init__(self, bench: Bench, clients: list[Client], pools: ProxyPools, seed: int, most: int) -> None:
        self.bench = bench
        self.clients = clients
        self.homes: dict[str, Client] = {}
        """The process of each worker."""
        self.pools = pools
        self.chance = random.Random(seed)
        self.live: dict[tuple[str, int], tuple[str, Lease]] = {}
        """Lane and member -> worker and lease."""
        self.stale: list[tuple[str, Lease]] = []
        self.died: dict[str, Moment] = {}
        self.banned: dict[tuple[str, int], Moment] = {}
        self.members = set(range(1, 7))
        self.version = 1.0
        self.workers = [f"w{n}.1" for n in range(WORKERS)]
        self.urls = 0
        self.most = most
        """Visits through a member over all lanes; 0: any number."""

    async def live_through(self, steps: int = STEPS) -> None:
        await self.register()
        acts: list[Callable[[], Coroutine[Any, Any, None]]] = [
            *[self.lease] * 6,
            *[self.settle] * 6,
            self.settle_together,
            self.settle_late,
            self.leave,
            self.forget,
            self.die,
            self.reload,
            self.release,
            self.put,
            *[self.pass_time] * 3,
        ]
        for _ in range(steps):
            await self.chance.choice(acts)()

    def home(self, worker: str) -> Client:
        """Leases of a worker are taken by one process, and it dies with it."""
        if worker not in self.homes:
            self.homes[worker] = self.client
        return self.homes[worker]

    @property
    def client(self) -> Client:
        return self.chance.choice(self.clients)

    async def register(self) -> None:
        pool = pool_with(*sorted(self.members), version=self.version, member_concurrency=self.most)
        assert await self.pools.register(pool)
        await self.put()

    async def put(self) -> None:
        for host in HOSTS:
            fresh = through(self.urls + 20, host=host)[self.urls :]
            await self.client.put(fresh)
        self.urls += 20

    async def lease(self) -> None:
        worker = self.chance.choice(self.workers)
        for lease in await self.home(worker).lease(worker, self.chance.randint(1, 6), pools=(POOL,)):
            self.check(worker, lease)

    def check(self, worker: str, lease: Lease) -> None:
        place, now = (lease.task.lane, lease.member), self.bench.now()
        assert lease.member in self.members, f"{place} is not in the pool"
        assert now >= self.banned.get(place, 0.0), f"{place} is in quarantine for {self.banned[place] - now:.1f} s more"
        if place in self.live:
            holder, held = self.live[place]
            silent = now - self.died.get(holder, now)
            assert silent > DEAD_AFTER, f"{place} is out already, with {holder}"
            self.stale.append((holder, held))
        self.live[place] = (worker, lease)
        through_it = sum(holder not in self.died for (_, other), (holder, _) in self.live.items() if other == place[1])
        assert not self.most or through_it <= self.most, f"{through_it} visits through {lease.member}"

    async def settle(self) -> None:
        held = [(place, *each) for place, each in self.live.items() if each[0] not in self.died]
        if not held:
            return
        place, worker, lease = self.chance.choice(held)
        result = self.chance.choice(RESULTS)
        outcome = self.chance.choice((Done(), Retry(0, "503"), Snooze(0, "later")))
        assert await give(self.client, lease, result, worker, outcome) == Settled.OK
        self.end(place)
        if result is BLOCKED and place[1] in self.members:
            self.banned[place] = self.bench.now() + REST
        if any(view.site_blocked for view in await self.pools.lanes(POOL) if view.lane == place[0]):
            # These bans are lifted by the next good answer.
            self.pardon(place[0])

    async def settle_together(self) -> None:
        """All pages of a worker are good."""
        worker = self.chance.choice(self.workers)
        places = [place for place, (holder, _) in self.live.items() if holder == worker]
        held = [self.live[place][1] for place in places]
        good = [Settlement(lease, Done(), news=NEWS[GOOD], member=GOOD) for lease in held]
        assert await self.client.settle(worker, good) == [Settled.OK] * len(held)
        for place in places:
            self.end(place)

    def pardon(self, lane: str, member: int | None = None) -> None:
        for place in [each for each in self.banned if each[0] == lane and member in (None, each[1])]:
            del self.banned[place]

    def end(self, place: tuple[str, int]) -> None:
        self.stale.append(self.live.pop(place))

    async def settle_late(self) -> None:
        """What a worker says of a lease that it has no more."""
        for worker, lease in self.chance.sample(self.stale, min(3, len(self.stale))):
            assert await give(self.client, lease, self.chance.choice(RESULTS), worker) == Settled.STALE

    async def leave(self) -> None:
        worker = self.chance.choice(self.workers)
        await self.client.leave(worker)
        for place in [place for place, (holder, _) in self.live.items() if holder == worker]:
            self.end(place)

    async def forget(self) -> None:
        """A worker says what it holds, and some of it is missing."""
        worker = self.chance.choice(self.workers)
        held = {place: lease for place, (holder, lease) in self.live.items() if holder == worker}
        known = {place for place in held if self.chance.random() < 0.5}
        assert await self.home(worker).holds(worker, [held[place].token for place in known]) == len(held) - len(known)
        for place in held.keys() - known:
            self.end(place)

    async def die(self) -> None:
        """A worker dies, or a process and all workers in it."""
        self.replace(self.chance.randrange(WORKERS))
        if self.bench.durable and self.chance.random() < 0.3:
            crashed = self.clients.pop(self.chance.randrange(len(self.clients)))
            for number, worker in enumerate(self.workers):
                if self.homes.get(worker) is crashed:
                    self.replace(number)
            await self.bench.crash(crashed)
            self.clients.append(await self.bench.again())

    def replace(self, number: int) -> None:
        old = self.workers[number]
        self.died[old] = self.bench.now()
        name, _, generation = old.partition(".")
        self.workers[number] = f"{name}.{int(generation) + 1}"

    async def reload(self) -> None:
        """Another version of the pool; an older one comes late."""
        gone = set(self.chance.sample(sorted(self.members), self.chance.randint(0, 2)))
        added = set(self.chance.sample(range(1, 12), 2))
        self.members = (self.members - gone) | added
        for lane in LANES:
            for member in gone:
                self.pardon(lane, member)
        self.version += 1
        await self.register()
        assert not await self.pools.register(pool_with(99, version=self.version - 1))

    async def release(self) -> None:
        if self.chance.random() < 0.2:
            lane = self.chance.choice(LANES)
            await self.pools.release(POOL, lane)
            self.pardon(lane)

    async def pass_time(self) -> None:
        seconds: Seconds = self.chance.choice((0.1, 1.0, 5.0, 30.0, 200.0))
        while seconds > 0:
            for worker in self.workers:
                await self.clients[0].beat(worker)
            step = min(5.0, seconds)
            self.bench.jump(step)
            seconds -= step
        for worker in self.workers:
            await self.clients[0].beat(worker)

    async def return_all(self) -> None:
        """Every visit ends, and every rest; no lane is left with a site that blocks us."""
        for place, (worker, lease) in list(self.live.items()):
            if worker not in self.died:
                assert await give(self.client, lease, MemberResult.GOOD, worker) == Settled.OK
                self.end(place)
        self.banned.clear()
        self.bench.jump(3 * 86_400)
        await self.put()
        for _ in range(5 * len(LANES)):
            for lease in await self.client.lease("last", 1, pools=(POOL,)):
                self.check("last", lease)
                assert await give(self.client, lease, MemberResult.GOOD, "last") == Settled.OK
                self.end((lease.task.lane, lease.member))
            self.bench.jump(1.0)

    async def take_all(self) -> dict[str, list[int]]:
        """Lease until every member of every lane is out; some lose their turn for a while."""
        self.most, self.version = 0, self.version + 1
        await self.register()
        out: dict[str, list[int]] = {lane: [] for lane in LANES}
        for _ in range(600):
            for lease in await self.client.lease("last", 100, pools=(POOL,)):
                out[lease.task.lane].append(lease.member)
            self.bench.jump(0.5)
            await self.client.beat("last")
        return {lane: sorted(members) for lane, members in out.items()}


async def history(bench: Bench, seed: int, most: int = 0) -> History:
    clients = [await bench.open(), await bench.again()]
    made = History(bench, clients, await bench.proxy_pools(), seed, most)
    await made.live_through()
    await made.return_all()
    return made


class ProxyHistories:
    async def test_r2_no_member_is_lost_or_doubled_whatever_workers_do(self, bench: Bench) -> None:
        for seed in range(2):
            lived = await history(bench, seed)

            views = [view for lane in LANES for view in await lived.pools.members(POOL, lane)]
            assert not any(view.in_flight for view in views)
            assert await lived.take_all() == {lane: sorted(lived.members) for lane in LANES}, f"seed {seed}"

    async def test_r9_the_limit_of_a_member_holds_whatever_workers_do(self, bench: Bench) -> None:
        for seed in range(10, 12):
            lived = await history(bench, seed, most=2)

            assert await lived.take_all() == {lane: sorted(lived.members) for lane in LANES}, f"seed {seed}"
