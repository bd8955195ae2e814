"""Proxy pools, accounts and chains in PostgreSQL: every end of a lease returns its member, and calls that come at the
same moment neither double nor lose one."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.contract.postgres_frontiers import PostgresBench, server
from tests.contract.postgres_servers import fresh

from trotline.adapters.postgres.frontier.jobs import PostgresJobs
from trotline.adapters.postgres.frontier.load_pool_rings import decode_ring
from trotline.config import backends
from trotline.model.lease import Lease, Settlement
from trotline.model.outcome import Bury, Done
from trotline.model.proxy_pool import lane_of
from trotline.ports.frontier import KILLS
from trotline.rules.member_choice import OUT
from trotline.testing.frontier_contract import Client, tasks
from trotline.testing.frontier_contract.accounts import ANNA, API, BERT, BUYERS, CLEO, accounts, as_buyer, hold
from trotline.testing.frontier_contract.bench import SHOP
from trotline.testing.frontier_contract.chain_bench import counts, step, url_of
from trotline.testing.frontier_contract.pool_bench import (
    GOOD,
    POOL,
    give,
    members_of,
    pool_with,
    register,
    take,
    through,
)
from trotline.testing.frontier_contract.proxy_histories import history
from trotline.testing.postgres_server import DEBIAN

OF_ANNA = f"{BUYERS}/anna"


@pytest.fixture
async def bench() -> AsyncIterator[PostgresBench]:
    bench = PostgresBench()
    yield bench
    await bench.close()


async def ask(bench: PostgresBench, query: str, *values: object) -> list[tuple[Any, ...]]:
    database = bench.database()
    try:
        async with database.transaction() as db:
            return [tuple(row) for row in await db.fetch(query, *values)]
    finally:
        await database.close()


async def deadlocks(bench: PostgresBench) -> int:
    [(count,)] = await ask(bench, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    return int(count)


# What is left in the tables


@pytest.mark.parametrize("seed", [100, 101])
async def test_after_a_history_the_members_in_the_ring_are_those_that_were_dealt(
    bench: PostgresBench, seed: int
) -> None:
    await history(bench, seed, most=seed % 2)

    assert await ask(bench, "SELECT count(*) FROM identity WHERE place = $1", OUT) == [(0,)]
    assert await ask(bench, "SELECT sum(running) FROM pool_member") == [(0,)]
    rings = await ask(bench, "SELECT pace, state, dealt FROM ring")
    assert len(rings) == 3
    for pace, state, dealt in rings:
        assert decode_ring(state).dealt == dealt
        assert await ask(bench, "SELECT member FROM pool_member WHERE seq <= $1 ORDER BY 1", dealt) == await ask(
            bench,
            "SELECT i.member FROM identity i JOIN pool_member m ON m.member = i.member WHERE i.pace = $1 ORDER BY 1",
            pace,
        )


async def test_a_task_that_cannot_be_read_keeps_no_member_and_no_account(bench: PostgresBench) -> None:
    frontier = await bench.open()
    await register(bench, pool_with(1), accounts(ANNA))
    await frontier.put(through(2) + as_buyer(1) + as_buyer(1, API))
    await ask(bench, "UPDATE waiting_1 SET body = '\\x00' WHERE id IN (SELECT min(id) FROM waiting_1 GROUP BY lane)")
    await frontier.put(as_buyer(2, "third.example"))

    assert members_of(await frontier.lease("w", 5, wait=5.0, pools=(POOL,))) == [1]
    assert members_of(await frontier.lease("w", 5, wait=5.0, pools=(BUYERS,))) == [ANNA]


async def test_a_deleted_job_gives_its_members_back_and_its_accounts_rest(bench: PostgresBench) -> None:
    frontier = await bench.open()
    await register(bench, pool_with(1, 2), accounts(ANNA, rest_of_dead=60.0))
    other = await bench.another_job()
    for client in (frontier, other):
        await client.put(through(5) + as_buyer(1))
    assert members_of(await take(other, "o")) == [1, 2]
    assert members_of(await hold(other, "o")) == [ANNA]
    assert await take(frontier) == await hold(frontier) == []
    jobs = PostgresJobs(bench.database())

    await jobs.forget(other.opened.job.id)
    await jobs.close()

    bench.jump(1.0)
    assert members_of(await take(frontier)) == [1, 2]
    assert await hold(frontier) == []
    bench.jump(60.0)
    assert members_of(await hold(frontier)) == [ANNA]


async def test_a_lane_without_a_pool_keeps_no_ring(bench: PostgresBench) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(3))
    for lease in await frontier.lease("w", 3):
        await give(frontier, lease)

    assert await ask(bench, "SELECT count(*) FROM ring") == [(0,)]


async def test_registering_what_is_in_force_writes_nothing(bench: PostgresBench) -> None:
    await bench.open()
    pools = await bench.proxy_pools()
    versions = "SELECT xmin::text, member FROM pool_member UNION ALL SELECT xmin::text, 0 FROM pool ORDER BY member"
    await pools.register(pool_with(1, 2))
    before = await ask(bench, versions)

    assert await pools.register(pool_with(1, 2))
    assert await ask(bench, versions) == before
    assert await pools.register(pool_with(1, 3))
    assert await ask(bench, versions) != before


async def test_a_lane_of_an_account_that_is_in_no_pool_does_not_poll(bench: PostgresBench) -> None:
    frontier = await bench.open()
    await register(bench, accounts(ANNA, BERT))
    await frontier.put(as_buyer(1, pool=f"{BUYERS}/cleo"))
    assert await hold(frontier) == []

    assert await ask(bench, "SELECT ready_at FROM turn") == [(float("inf"),)]
    [view] = await (await bench.proxy_pools()).lanes(BUYERS)
    assert (view.lane, view.members) == (lane_of(SHOP, f"{BUYERS}/cleo"), 0)


async def test_an_account_that_is_removed_and_added_while_it_is_out_is_not_doubled(bench: PostgresBench) -> None:
    frontier = await bench.open()
    await register(bench, accounts(ANNA))
    await frontier.put(as_buyer(2) + as_buyer(2, API))
    [lease] = await hold(frontier)
    await register(bench, accounts(CLEO, version=2.0), accounts(ANNA, version=3.0))

    assert await hold(frontier) == []
    await give(frontier, lease)

    bench.jump(1.0)
    assert members_of(await hold(frontier)) == [ANNA]


@pytest.mark.parametrize("pool", [BUYERS, OF_ANNA])
async def test_a_worker_that_always_asks_first_shares_an_account_with_other_jobs(
    bench: PostgresBench, pool: str
) -> None:
    hurried = await bench.open()
    patient = await bench.another_job()
    await register(bench, accounts(ANNA))
    await hurried.put(as_buyer(60))
    await patient.put(as_buyer(60, API, pool))
    of_hurried, of_patient = await hold(hurried, "hurried"), []
    visits = [0, 0]
    for _ in range(60):
        for lease in of_patient:
            await give(patient, lease, worker="patient")
        of_patient = await hold(patient, "patient")
        for lease in of_hurried:
            await give(hurried, lease, worker="hurried")
        of_hurried = await hold(hurried, "hurried")
        visits = [visits[0] + len(of_hurried), visits[1] + len(of_patient)]
        bench.jump(0.1)

    assert min(visits) >= 9, visits


async def test_a_waiting_call_of_another_job_returns_when_the_account_does(bench: PostgresBench) -> None:
    frontier = await bench.open()
    other = await bench.another_job()
    await register(bench, accounts(ANNA))
    await frontier.put(as_buyer(2))
    await other.put(as_buyer(1, API, OF_ANNA))
    [lease] = await hold(frontier)
    waiting = asyncio.create_task(other.lease("v", 1, wait=30.0, pools=(BUYERS,)))
    await asyncio.sleep(0.3)
    assert not waiting.done()

    await give(frontier, lease)

    async with asyncio.timeout(10):
        assert members_of(await waiting) == [ANNA]


async def test_pools_are_opened_by_the_url_of_a_frontier() -> None:
    opened = await backends.open_proxy_pools(fresh(server(DEBIAN).url))
    try:
        assert await opened.register(pool_with(1))
        assert await opened.lanes(POOL) == await opened.members(POOL, "a") == await opened.down(POOL) == []
        assert await opened.release(POOL, "shop.example via datacenter") == 0
        assert [(pool.name, pool.members) for pool in await opened.pools()] == [(POOL, 1)]
    finally:
        await opened.close()


# Calls at the same moment


class Crowd:
    """Workers of several jobs that lease and settle at the same time, and a book of who has which member."""

    def __init__(self, clients: list[Client], pool: str, most: int) -> None:
        self.clients = clients
        self.pool = pool
        self.most = most
        self.through: Counter[int] = Counter()
        self.in_lane: set[tuple[str, int]] = set()
        self.visits = 0

    def begins(self, lease: Lease) -> None:
        place = (lease.task.lane, lease.member)
        assert place not in self.in_lane, f"{place} is out already"
        self.in_lane.add(place)
        self.through[lease.member] += 1
        assert not self.most or self.through[lease.member] <= self.most, f"{self.through} through one member"

    async def work(self, number: int, rounds: int) -> None:
        client, chance, worker = self.clients[number % len(self.clients)], random.Random(number), f"w{number}"
        for _ in range(rounds):
            leases = await client.lease(worker, chance.randint(1, 6), pools=(self.pool,))
            for lease in leases:
                self.begins(lease)
            self.visits += len(leases)
            await asyncio.sleep(chance.random() * 0.01)
            for lease in leases:
                # Before the call: from then on another worker may have it.
                self.in_lane.remove((lease.task.lane, lease.member))
                self.through[lease.member] -= 1
            if chance.random() < 0.1:
                await client.leave(worker)
            elif leases:
                chance.shuffle(leases)
                await client.settle(worker, [Settlement(lease, Done(), member=GOOD) for lease in leases])


@pytest.mark.parametrize(("pool", "most"), [(POOL, 0), (POOL, 2), (BUYERS, 1)])
async def test_members_are_neither_doubled_nor_lost_by_calls_at_the_same_moment(
    bench: PostgresBench, pool: str, most: int
) -> None:
    jobs = [await bench.open(), await bench.another_job()]
    clients = [*jobs, await bench.again()]
    pools = await bench.proxy_pools()
    given = pool_with(*range(1, 9), member_concurrency=most, name=pool)
    await pools.register(given)
    hosts = [f"h{n}.example" for n in range(6)]
    for job in jobs:
        await job.put([each for host in hosts for each in through(400, host=host, pool=pool)])
    crowd = Crowd(clients, pool, most)
    before = await deadlocks(bench)

    async def reload() -> None:
        for version in range(2, 8):
            await asyncio.sleep(0.05)
            changed = pool_with(*range(1, 9 + version % 2), version=float(version), member_concurrency=most, name=pool)
            assert await pools.register(changed)

    async def clock() -> None:
        while True:
            await asyncio.sleep(0.01)
            bench.jump(0.2)
            await asyncio.gather(*(clients[n % 3].beat(f"w{n}") for n in range(6)))

    ticking = asyncio.create_task(clock())
    await asyncio.gather(*(crowd.work(n, 25) for n in range(6)), reload())
    ticking.cancel()
    for number, client in enumerate(clients):
        for worker in range(6):
            if worker % 3 == number:
                await client.leave(f"w{worker}")

    assert crowd.visits > 50
    assert await ask(bench, "SELECT count(*) FROM identity WHERE place = $1", OUT) == [(0,)]
    assert await ask(bench, "SELECT sum(running) FROM pool_member") == [(0,)]
    assert await ask(bench, "SELECT sum(running) FROM pace") == [(0,)]
    assert await deadlocks(bench) == before


async def test_no_step_is_left_behind_by_a_head_that_ends_while_it_is_put(bench: PostgresBench) -> None:
    clients = [await bench.open(), await bench.again(), await bench.again(), await bench.again()]
    chains, length = ["a", "b", "c", "d"], 12
    lanes = ["x.example", "y.example", "z.example"]
    visited: dict[str, list[str]] = {name: [] for name in chains}
    before = await deadlocks(bench)

    async def add(client: Client, names: list[str]) -> None:
        for number in range(length):
            # In several lanes, and in another order than others.
            await client.put([step(number, name, lane=lanes[(number + ord(name)) % 3]) for name in names])

    async def work(client: Client, worker: str) -> None:
        while sum(map(len, visited.values())) < len(chains) * length:
            leases = await client.lease(worker, 3)
            for lease in leases:
                visited[lease.task.chain].append(lease.task.url)
            await client.settle(worker, [Settlement(lease, Done()) for lease in reversed(leases)])

    async with asyncio.timeout(60):
        await asyncio.gather(
            add(clients[0], chains[:2]), add(clients[1], chains[:1:-1]), work(clients[2], "v"), work(clients[3], "w")
        )

    for name in chains:
        expected = [url_of(number, name, lanes[(number + ord(name)) % 3]) for number in range(length)]
        assert visited[name] == expected
    assert await counts(clients[0]) == (0, 0, len(chains) * length, 0)
    assert await ask(bench, "SELECT count(*) FROM step") == [(0,)]
    assert await deadlocks(bench) == before


@pytest.mark.parametrize("end", ["settle", "leave"])
async def test_a_step_put_while_its_chain_fails_dies_with_it(bench: PostgresBench, end: str) -> None:
    frontier, other = await bench.open(), await bench.again()

    async def fail(lease: Lease) -> None:
        if end == "settle":
            await frontier.settle("w", [Settlement(lease, Bury("gone: 404"))])
        else:
            await frontier.leave("w", guilty=lease.token)

    for number in range(15):
        name = f"chain{number}"
        await frontier.put([step(0, name)])
        for _ in range(KILLS - 1 if end == "leave" else 0):
            [lease] = await frontier.lease("w", 1)
            await frontier.leave("w", guilty=lease.token)
        [lease] = await frontier.lease("w", 1)
        await asyncio.gather(fail(lease), other.put([step(1, name), step(2, name)]))

    assert await counts(frontier) == (0, 0, 0, 45)
    assert await ask(bench, "SELECT count(*) FROM chained_1") == [(0,)]
