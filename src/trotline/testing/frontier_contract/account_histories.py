"""A1 to A3 and A5 over random histories: an account is with one worker at a time, and none is locked for ever."""

import random
from collections.abc import Callable, Coroutine
from typing import Any

from trotline.model.lease import Lease, Settled
from trotline.model.outcome import Done, Outcome, Retry, Snooze
from trotline.model.proxy_pool import MemberResult, lane_of, only_member
from trotline.model.time import Moment, Seconds
from trotline.ports.frontier import DEAD_AFTER
from trotline.testing.frontier_contract.accounts import ANNA, API, BERT, BUYERS, CLEO, accounts, as_buyer
from trotline.testing.frontier_contract.bench import SHOP, Bench, Client
from trotline.testing.frontier_contract.pool_bench import BLOCKED, FAULT, GOOD, THROTTLED, UNUSED, give, register

LANES = ((SHOP, BUYERS), (API, BUYERS), (SHOP, f"{BUYERS}/anna"), (API, f"{BUYERS}/anna"), (SHOP, f"{BUYERS}/bert"))
RESULTS = (*[GOOD] * 12, BLOCKED, THROTTLED, FAULT, UNUSED, UNUSED)
OUTCOMES: tuple[Outcome, ...] = (Done(), Done(), Retry(0, "503"), Snooze(0, "later"))
WORKERS = 3
"""Of each job."""
STEPS = 200
REST_OF_DEAD: Seconds = 40.0
GRAIN: Seconds = 1.5
"""Heartbeats are recorded once a second."""


class AccountHistory:
    """A random history of calls of one or two jobs, and a model of who has which account."""

    def __init__(self, bench: Bench, jobs: list[Client], seed: int) -> None:
        self.bench = bench
        self.jobs = jobs
        self.chance = random.Random(seed)
        self.workers = [(job, f"w{n}.1") for job in range(len(jobs)) for n in range(WORKERS)]
        self.live: dict[int, tuple[int, str, Lease]] = {}
        """Account -> job, worker and lease."""
        self.stale: list[tuple[int, str, Lease]] = []
        self.died: dict[tuple[int, str], Moment] = {}
        self.members = {ANNA, BERT, CLEO}
        self.removed: set[int] = set()
        """Since their last lease: a rest ends with the removal."""
        self.sessions: dict[int, bytes] = {}
        self.version = 0.0
        self.urls = 0

    async def live_through(self) -> None:
        await self.register()
        acts: list[Callable[[], Coroutine[Any, Any, None]]] = [
            *[self.lease] * 8,
            *[self.settle] * 5,
            *[self.save] * 3,
            self.call_late,
            self.leave,
            self.forget,
            self.die,
            self.reload,
            *[self.pass_time] * 4,
        ]
        for _ in range(STEPS):
            await self.chance.choice(acts)()

    async def register(self) -> None:
        self.version += 1
        pool = accounts(*sorted(self.members), version=self.version, rest_of_dead=REST_OF_DEAD)
        await register(self.bench, pool)
        for job in self.jobs:
            for host, name in LANES:
                await job.put(as_buyer(self.urls + 2, host, name)[self.urls :])
        self.urls += 2

    async def lease(self) -> None:
        job, worker = self.chance.choice(self.workers)
        for lease in await self.jobs[job].lease(worker, self.chance.randint(1, 4), pools=(BUYERS,)):
            self.check(lease)
            self.live[lease.member] = (job, worker, lease)
            assert await self.jobs[job].read_session(worker, lease) == self.sessions.get(lease.member, b"")

    def check(self, lease: Lease) -> None:
        member, now = lease.member, self.bench.now()
        assert member in self.members, f"{member} is not in the pool"
        pool = lease.task.pool
        assert only_member(lane_of(SHOP, pool)) in (0, member), f"{member} makes a visit of {pool}"
        if member in self.live:
            job, holder, _ = self.live[member]
            died = self.died.get((job, holder), now)
            assert now - died > DEAD_AFTER - GRAIN, f"{member} is with {holder} of job {job}"
            rested = lease.leased_at + lease.start_in - died - DEAD_AFTER
            assert member in self.removed or rested >= REST_OF_DEAD - GRAIN, f"{member} rested for {rested:.1f} s"
            self.end(member)
        self.removed.discard(member)

    def end(self, member: int) -> None:
        self.stale.append(self.live.pop(member))

    def held(self) -> list[int]:
        """Accounts with a worker that is alive."""
        return [member for member, (job, worker, _) in self.live.items() if (job, worker) not in self.died]

    async def settle(self) -> None:
        if held := self.held():
            member = self.chance.choice(held)
            job, worker, lease = self.live[member]
            result, outcome = self.chance.choice(RESULTS), self.chance.choice(OUTCOMES)
            assert await give(self.jobs[job], lease, result, worker, outcome) == Settled.OK
            self.end(member)

    async def save(self) -> None:
        if held := [member for member in self.held() if member in self.members]:
            member = self.chance.choice(held)
            job, worker, lease = self.live[member]
            self.sessions[member] = self.chance.randbytes(5)
            assert await self.jobs[job].save_session(worker, lease, self.sessions[member])

    async def call_late(self) -> None:
        """What a worker says of a lease that it has no more."""
        for job, worker, lease in self.chance.sample(self.stale, min(3, len(self.stale))):
            assert not await self.jobs[job].save_session(worker, lease, b"late")
            assert await give(self.jobs[job], lease, self.chance.choice(RESULTS), worker) == Settled.STALE

    async def leave(self) -> None:
        """A worker stops, or one of its pages kills it."""
        job, worker = self.chance.choice(self.workers)
        held = self.held_by(job, worker)
        guilty = self.live[held[0]][2].token if held and self.chance.random() < 0.3 else None
        assert await self.jobs[job].leave(worker, guilty) == len(held)
        for member in held:
            self.end(member)

    async def forget(self) -> None:
        """A worker says what it holds, and some of it is missing."""
        job, worker = self.chance.choice(self.workers)
        held = self.held_by(job, worker)
        known = [member for member in held if self.chance.random() < 0.5]
        gone = await self.jobs[job].holds(worker, [self.live[member][2].token for member in known])
        assert gone == len(held) - len(known)
        for member in set(held) - set(known):
            self.end(member)

    def held_by(self, job: int, worker: str) -> list[int]:
        return [member for member, holder in self.live.items() if holder[:2] == (job, worker)]

    async def die(self) -> None:
        """A worker is silent from now on; another one takes its place."""
        number = self.chance.randrange(len(self.workers))
        job, old = self.workers[number]
        self.died[job, old] = self.bench.now()
        name, _, generation = old.partition(".")
        self.workers[number] = (job, f"{name}.{int(generation) + 1}")

    async def reload(self) -> None:
        """Accounts are removed, and some come back at once, while they are out."""
        gone = set(self.chance.sample((ANNA, BERT, CLEO), self.chance.randint(0, 2)))
        self.members = {ANNA, BERT, CLEO} - gone
        self.removed |= gone
        for member in gone:
            self.sessions.pop(member, None)
        await self.register()
        self.members |= {member for member in gone if self.chance.random() < 0.7}
        await self.register()

    async def pass_time(self) -> None:
        seconds: Seconds = self.chance.choice((0.1, 0.5, 5.0, 20.0, 60.0))
        while seconds > 0:
            await self.beat()
            step = min(7.0, seconds)
            self.bench.jump(step)
            seconds -= step
        await self.beat()

    async def beat(self) -> None:
        for job, worker in self.workers:
            await self.jobs[job].beat(worker)

    async def serve_all(self) -> None:
        """Every visit ends, every account is in the pool, and every rest is over: then everything is visited."""
        for member in self.held():
            job, worker, lease = self.live[member]
            assert await give(self.jobs[job], lease, MemberResult.GOOD, worker) == Settled.OK
            self.end(member)
        self.members = {ANNA, BERT, CLEO}
        await self.register()
        await self.beat()
        self.bench.jump(3 * 86_400)
        for _ in range(3000):
            left = [await job.progress() for job in self.jobs]
            if not any(each.waiting or each.leased for each in left):
                return
            for client in self.jobs:
                for lease in await client.lease("last", 4, pools=(BUYERS,)):
                    assert await give(client, lease, MemberResult.GOOD, "last") == Settled.OK
            self.bench.jump(0.5)
        raise AssertionError(f"tasks that wait, by job: {[each.waiting for each in left]}")


class AccountHistories:
    async def test_a1_no_account_is_doubled_or_locked_whatever_workers_do(self, bench: Bench) -> None:
        for seed in range(2):
            jobs = [await bench.open()]
            if bench.durable:
                jobs.append(await bench.another_job())
            lived = AccountHistory(bench, jobs, seed)
            await lived.live_through()
            await lived.serve_all()
