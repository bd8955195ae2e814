"""The proxy pools of a frontier in PostgreSQL: which members there are, and how they stand in each lane."""

from collections.abc import Sequence

from trotline.adapters.postgres.frontier import pool_views
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.load_pool_rings import PoolRings, decode_rules, encode_rules
from trotline.adapters.postgres.frontier.schema import PAUSED
from trotline.adapters.postgres.pool import Connection
from trotline.model.proxy_pool import DownMember, LanePoolView, MemberView, Pool, PoolMember, RegisteredPool
from trotline.model.time import Moment
from trotline.rules.member_choice import limited

_ALL = 255
"""The weight of a member with all its turns."""
_LOCK_LANES = """
SELECT id FROM pace WHERE id IN (SELECT pace FROM lane WHERE pool = $1) ORDER BY id FOR NO KEY UPDATE
"""
_COUNT_RUNNING = """
WITH running AS MATERIALIZED (
    SELECT h.member, count(*) AS visits FROM held h JOIN lane l ON l.id = h.lane
    WHERE $2 AND l.pool = $1 AND h.member IS NOT NULL GROUP BY h.member
)
UPDATE pool_member m SET running = coalesce((SELECT visits FROM running WHERE running.member = m.member), 0)
WHERE m.pool = $1 AND (m.running > 0 OR $2)
"""
"""Visits in flight through each member: a version without limits counts none."""
_READY = f"""
UPDATE turn SET ready_at = $2
WHERE ready_at > $2 AND lane IN (SELECT id FROM lane WHERE {{condition}} AND paused <> {PAUSED})
"""


class PostgresProxyPools:
    """Implements the ProxyPools port."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def register(self, pool: Pool) -> bool:
        # Every worker registers at its start: nothing is written or locked if nothing changed.
        async with self._db.transaction(view=True) as db:
            known = await _in_force(db, pool)
        if known is None:
            known = await self._db.run(lambda db: self._register(db, pool))
        return known

    async def pools(self) -> list[RegisteredPool]:
        if not await self._db.exists():
            return []
        async with self._db.transaction(view=True) as db:
            rows = await db.fetch(
                "SELECT p.name, p.version, p.rules, count(m.member) FROM pool p"
                " LEFT JOIN pool_member m ON m.pool = p.name GROUP BY p.name"
            )
        found = [
            RegisteredPool(name=name, version=version, members=members, rules=decode_rules(packed))
            for name, version, packed, members in rows
        ]
        return sorted(found, key=lambda pool: pool.name)

    async def lanes(self, pool: str, only: Sequence[str] = ()) -> list[LanePoolView]:
        async with self._db.transaction(view=True) as db:
            views = await pool_views.lanes(db, pool, only, await self._db.now(db))
        return sorted(views, key=lambda view: (-view.resting, view.lane))

    async def members(self, pool: str, lane: str) -> list[MemberView]:
        async with self._db.transaction(view=True) as db:
            return await pool_views.members(db, pool, lane, await self._db.now(db))

    async def down(self, pool: str) -> list[DownMember]:
        async with self._db.transaction(view=True) as db:
            return await pool_views.down(db, pool, await self._db.now(db))

    async def release(self, pool: str, lane: str, member: int | None = None) -> int:
        return await self._db.run(lambda db: self._release(db, pool, lane, member))

    async def close(self) -> None:
        await self._db.close()

    async def _register(self, db: Connection, pool: Pool) -> bool:
        await db.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' pool ' || $1, 0))", pool.name
        )
        # Lanes before their members, as workers lock them: a lease that is under way has read the old version.
        await db.execute(_LOCK_LANES, pool.name)
        known = await _in_force(db, pool)
        if known is not None:
            return known
        await _write(db, pool)
        await db.execute(_COUNT_RUNNING, pool.name, limited(pool.rules))
        await db.execute(_READY.format(condition="pool = $1"), pool.name, await self._db.now(db))
        return True

    async def _release(self, db: Connection, pool: str, lane: str, member: int | None) -> int:
        pace_id = await db.fetchval(
            "SELECT p.id FROM ring r JOIN pace p ON p.id = r.pace WHERE r.pool = $1 AND p.name = $2"
            " FOR NO KEY UPDATE OF p",
            pool,
            lane,
        )
        if pace_id is None:
            return 0
        now: Moment = await self._db.now(db)
        rings = PoolRings(db, now)
        ring = await rings.opened(pace_id, pool)
        count = await ring.release(member)
        await rings.flush()
        await db.execute(_READY.format(condition="pace = $1"), pace_id, now)
        return count


async def _in_force(db: Connection, pool: Pool) -> bool | None:
    """False: a newer version is. True: exactly this one is. None: it has to be written."""
    row = await db.fetchrow("SELECT version, rules FROM pool WHERE name = $1", pool.name)
    if row is None or row[0] < pool.version:
        return None
    if row[0] > pool.version:
        return False
    same = row[1] == encode_rules(pool.rules) and await _weights(db, pool.name) == _wanted(pool)
    return True if same else None


async def _write(db: Connection, pool: Pool) -> None:
    await db.execute(
        "INSERT INTO pool (name, version, rules, most) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO UPDATE SET"
        " version = excluded.version, rules = excluded.rules, most = excluded.most",
        pool.name,
        pool.version,
        encode_rules(pool.rules),
        pool.rules.member_concurrency or None,
    )
    there, wanted = await _weights(db, pool.name), _wanted(pool)
    gone = [member for member in there if member not in wanted]
    await db.execute("DELETE FROM pool_member WHERE pool = $1 AND member = ANY($2::bigint[])", pool.name, gone)
    changed = [(member, weight) for member, weight in wanted.items() if there.get(member) != weight]
    # One by one in this order: it is the order of their numbers, and so of their first turns.
    await db.execute(
        "INSERT INTO pool_member (pool, member, weight)"
        " SELECT $1, m.member, m.weight FROM unnest($2::bigint[], $3::integer[]) WITH ORDINALITY"
        " AS m(member, weight, place) ORDER BY m.place"
        " ON CONFLICT (pool, member) DO UPDATE SET weight = excluded.weight",
        pool.name,
        [member for member, _ in changed],
        [weight for _, weight in changed],
    )


async def _weights(db: Connection, pool: str) -> dict[int, int]:
    return {row[0]: row[1] for row in await db.fetch("SELECT member, weight FROM pool_member WHERE pool = $1", pool)}


def _wanted(pool: Pool) -> dict[int, int]:
    return {member.id: _weight(member) for member in pool.members}


def _weight(member: PoolMember) -> int:
    return round(_ALL * min(1.0, max(0.0, member.weight)))
