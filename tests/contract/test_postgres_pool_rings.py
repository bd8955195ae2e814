"""The rings of proxy pools in PostgreSQL decide like those in a file, in random histories of the same calls."""

import random
import sqlite3
from collections.abc import AsyncIterator

import pytest
from tests.contract.postgres_servers import fresh

from trotline.adapters.postgres.frontier import frontier_url, load_pool_rings
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.load_pool_rings import Back, PoolRings, Wanted
from trotline.adapters.postgres.frontier.proxy_pools import PostgresProxyPools
from trotline.adapters.sqlite import proxy_pools as in_file
from trotline.adapters.sqlite import schema
from trotline.adapters.sqlite.pool_ring import PoolRing
from trotline.model.proxy_pool import MemberResult, Pool, PoolMember, PoolRules
from trotline.rules.member_choice import limited
from trotline.testing.postgres_server import DEBIAN

NOW = 1_750_000_000.0
LANES = 4
RULES = {
    "plain": PoolRules(rest=20.0, interval=1.0),
    "hold": PoolRules(rest=20.0, hold=3),
    "kept": PoolRules(rest=20.0, hold=0, interval=0.5),
    "limited": PoolRules(rest=20.0, member_interval=1.5, member_concurrency=2),
    "uses": PoolRules(rest=20.0, member_uses=3, uses_window=30.0),
    "@accounts": PoolRules(rest=20.0, member_concurrency=1, rest_of_dead=5.0),
}


class Both:
    """The same lanes in a file and on a server."""

    def __init__(self, database: Database, pool: str) -> None:
        self.pool = pool
        self.now = NOW
        self.file = sqlite3.connect(":memory:", isolation_level=None)
        for statement in (schema.TABLES, *schema.ADDED_TABLES.values()):
            self.file.executescript(statement)
        for table, columns in schema.ADDED_COLUMNS.items():
            for name, kind in columns.items():
                self.file.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")
        self.server = database
        self.out: list[list[int]] = [[] for _ in range(LANES)]

    async def register(self, pool: Pool) -> None:
        in_file._register(self.file, pool)
        async with self.server.transaction() as db:
            # Visits in flight are counted anew.
            await db.execute("DELETE FROM held")
            await db.execute("DELETE FROM lane")
            await db.execute(
                "INSERT INTO lane (id, job, name, pace, pool) OVERRIDING SYSTEM VALUE"
                " SELECT n, 1, n::text, n, $2 FROM unnest($1::bigint[]) n",
                list(range(LANES)),
                pool.name,
            )
            out = [(lane, member) for lane in range(LANES) for member in self.out[lane]]
            await db.execute(
                "INSERT INTO held (token, job, worker, task, lane, level, attempt, deaths, kills, member, chain, fp,"
                " leased_at, starts_at, body) SELECT lane * 100 + member, 1, 'w', 0, lane, 0, 0, 0, 0, member, '', 0,"
                " 0, 0, '' FROM unnest($1::bigint[], $2::bigint[]) u (lane, member)",
                [lane for lane, _ in out],
                [member for _, member in out],
            )
        assert await PostgresProxyPools(self.server).register(pool)

    async def lease(self, wanted: dict[int, int], seed: int) -> None:
        starts = {lane: [self.now + 0.1 * number for number in range(count)] for lane, count in wanted.items()}
        expected = {}
        chance = random.Random(seed)
        for lane in wanted:
            ring = PoolRing(self.file, lane, self.pool, self.now)
            sent = ring.send(starts[lane], 0.1, chance.random)
            free = (0.0, False) if sent else (ring.free_at(), ring.waits)
            ring.flush()
            expected[lane] = ([tuple(each) for each in sent], free)
        chance = random.Random(seed)
        async with self.server.transaction(plans=True) as db:
            rings = PoolRings(db, self.now)
            await rings.for_lease([Wanted(lane, self.pool, 0, count) for lane, count in wanted.items()])
            came = {lane: rings.ring(lane).send(starts[lane], 0.1, chance.random) for lane in wanted}
            none = [lane for lane in wanted if not came[lane]]
            free_at = await rings.free_at(none) if none else {}
            await rings.flush()
        for lane, (sent, (moment, waits)) in expected.items():
            assert [tuple(each) for each in came[lane]] == sent, f"lane {lane}"
            if lane in free_at:
                assert free_at[lane].waits == waits
                # It is tried again now and then although the return of an account wakes it.
                assert free_at[lane].at == (min(moment, self.now + 1.0) if waits else moment)
            self.out[lane] += [member for member, _ in sent]

    async def settle(self, back: list[tuple[int, int, MemberResult]], chance: float, *, dead: bool = False) -> None:
        for lane, member, result in back:
            ring = PoolRing(self.file, lane, self.pool, self.now)
            ring.give_back(member, result, retry_after=0.5, chance=chance)
            if dead:
                ring.rest(member)
            ring.flush()
        async with self.server.transaction(plans=True) as db:
            rings = PoolRings(db, self.now)
            await rings.for_return([Back(lane, self.pool, member) for lane, member, _ in back])
            for lane, member, result in back:
                again = rings.ring(lane)
                await again.give_back(member, result, retry_after=0.5, chance=chance)
                if dead:
                    again.rest(member)
            await rings.flush()
        for lane, member, _ in back:
            self.out[lane].remove(member)

    async def assert_equal(self) -> None:
        for query in (
            "SELECT pace, member, place, due, banned_at, quality, uses, good, strikes, slow FROM identity"
            " ORDER BY pace, member",
            "SELECT pace, state FROM ring ORDER BY pace",
            "SELECT member, weight, faults, down_until, next_start, running, uses, window_began FROM pool_member"
            " ORDER BY member",
        ):
            async with self.server.transaction(view=True) as db:
                there = [tuple(row) for row in await db.fetch(query)]
            assert there == self.file.execute(query).fetchall()


@pytest.fixture
async def database(postgres_servers: object) -> AsyncIterator[Database]:
    database = Database(frontier_url.parse(fresh(postgres_servers.url(DEBIAN))))  # type: ignore[attr-defined]
    yield database
    await database.close()


@pytest.mark.parametrize("pool", RULES)
@pytest.mark.parametrize("seed", range(3))
async def test_a_ring_on_a_server_decides_like_one_in_a_file(
    database: Database, pool: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if limited(RULES[pool]):
        # Lanes of one call share members: the file reads more of them when it meets one that another lane has taken.
        monkeypatch.setattr(load_pool_rings, "LOOK_FURTHER", (16,))
    both, chance = Both(database, pool), random.Random(seed)
    members = [PoolMember(number, chance.choice([1.0, 1.0, 0.5])) for number in range(1, 8)]
    await both.register(Pool(name=pool, version=1.0, rules=RULES[pool], members=tuple(members)))
    for step in range(60):
        both.now += chance.choice([0.0, 0.1, 0.7, 3.0])
        turn = chance.random()
        if turn < 0.5:
            lanes = chance.sample(range(LANES), chance.randint(1, LANES))
            await both.lease({lane: chance.randint(1, 4) for lane in lanes}, step)
        elif turn < 0.95:
            held = [(lane, member) for lane in range(LANES) for member in both.out[lane]]
            some = chance.sample(held, min(len(held), 5))
            results = list(MemberResult) if chance.random() < 0.5 else [MemberResult.BLOCKED, MemberResult.GOOD]
            back = [(lane, member, chance.choice(results)) for lane, member in some]
            await both.settle(back, chance.random(), dead=chance.random() < 0.1)
        else:
            kept = tuple(each for each in members if chance.random() < 0.8)
            await both.register(Pool(name=pool, version=2.0 + step, rules=RULES[pool], members=kept))
        await both.assert_equal()
