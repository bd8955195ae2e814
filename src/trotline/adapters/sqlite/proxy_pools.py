"""The proxy pools of a frontier file: which members there are, and how they stand in each lane."""

import sqlite3
from collections.abc import Callable, Sequence

import msgspec

from trotline.adapters.sqlite.database import Database
from trotline.adapters.sqlite.pool_ring import PoolRing, decode_ring, decode_rules
from trotline.adapters.sqlite.schema import FULL, PAUSED, READY, RESTING
from trotline.model.proxy_pool import (
    DownMember,
    LanePoolView,
    MemberView,
    Pool,
    PoolMember,
    RegisteredPool,
    only_member,
)
from trotline.model.time import Moment
from trotline.rules.member_choice import OUT, limited
from trotline.rules.proxy_ring import BEST, PARKED
from trotline.rules.route_queues import MARK

_ALL = 255
"""The weight of a member with all its turns."""
_encode_rules = msgspec.msgpack.Encoder().encode


class SqliteProxyPools:
    """Implements the ProxyPools port."""

    def __init__(self, database: Database, *, changed: Callable[[], None] | None = None) -> None:
        self._db = database
        self._changed = changed
        """Wakes the lease calls of this connection; those of others notice a write."""

    async def register(self, pool: Pool) -> bool:
        # Every worker registers at its start: nothing is written if nothing changed.
        known = await self._db.read(lambda db: _in_force(db, pool))
        if known is None:
            known = await self._db.write(lambda db: _register(db, pool))
            self._wake()
        return known

    async def pools(self) -> list[RegisteredPool]:
        return await self._db.read(_pools)

    async def lanes(self, pool: str, only: Sequence[str] = ()) -> list[LanePoolView]:
        views = await self._db.read(lambda db: _lanes(db, pool, only, self._db.now()))
        return sorted(views, key=lambda view: (-view.resting, view.lane))

    async def members(self, pool: str, lane: str) -> list[MemberView]:
        return await self._db.read(lambda db: _members(db, pool, lane, self._db.now()))

    async def down(self, pool: str) -> list[DownMember]:
        return await self._db.read(lambda db: _down(db, pool, self._db.now()))

    async def release(self, pool: str, lane: str, member: int | None = None) -> int:
        count = await self._db.write(lambda db: _release(db, pool, lane, member, self._db.now()))
        self._wake()
        return count

    async def close(self) -> None:
        await self._db.close()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed()


def _in_force(db: sqlite3.Connection, pool: Pool) -> bool | None:
    """False: a newer version is. True: exactly this one is. None: it has to be written."""
    row = db.execute("SELECT version, rules FROM pool WHERE name = ?", (pool.name,)).fetchone()
    if row is None or row[0] < pool.version:
        return None
    if row[0] > pool.version:
        return False
    same = row[1] == _encode_rules(pool.rules) and _weights(db, pool.name) == _wanted(pool)
    return True if same else None


def _register(db: sqlite3.Connection, pool: Pool) -> bool:
    known = _in_force(db, pool)
    if known is not None:
        return known
    db.execute(
        "INSERT OR REPLACE INTO pool (name, version, rules) VALUES (?, ?, ?)",
        (pool.name, pool.version, _encode_rules(pool.rules)),
    )
    there, wanted = _weights(db, pool.name), _wanted(pool)
    db.executemany(
        "DELETE FROM pool_member WHERE pool = ? AND member = ?",
        [(pool.name, gone) for gone in there if gone not in wanted],
    )
    db.executemany(
        "INSERT INTO pool_member (pool, member, weight) VALUES (?, ?, ?)"
        " ON CONFLICT (pool, member) DO UPDATE SET weight = excluded.weight",
        [(pool.name, member, weight) for member, weight in wanted.items() if there.get(member) != weight],
    )
    _count_running(db, pool)
    _make_ready(db, f"(pool = ?1 OR pool LIKE ?1 || '{MARK}%')", pool.name)
    return True


def _count_running(db: sqlite3.Connection, pool: Pool) -> None:
    """Visits in flight through each member: a version without limits counts none."""
    db.execute("UPDATE pool_member SET running = 0 WHERE pool = ? AND running > 0", (pool.name,))
    if not limited(pool.rules):
        return
    running = db.execute(
        f"SELECT count(*), member FROM identity WHERE place = {OUT} AND pace IN (SELECT pace FROM ring WHERE pool = ?)"
        " GROUP BY member",
        (pool.name,),
    ).fetchall()
    db.executemany(
        "UPDATE pool_member SET running = ? WHERE pool = ? AND member = ?",
        [(count, pool.name, member) for count, member in running],
    )


def _weights(db: sqlite3.Connection, pool: str) -> dict[int, int]:
    return dict(db.execute("SELECT member, weight FROM pool_member WHERE pool = ?", (pool,)))


def _wanted(pool: Pool) -> dict[int, int]:
    return {member.id: _weight(member) for member in pool.members}


def _weight(member: PoolMember) -> int:
    return round(_ALL * min(1.0, max(0.0, member.weight)))


def _make_ready(db: sqlite3.Connection, condition: str, value: str) -> None:
    """Lanes that wait for a member are tried again."""
    db.execute(
        f"UPDATE lane SET state = {READY} WHERE {condition} AND state IN ({RESTING}, {FULL})"
        f" AND paused <> {PAUSED} AND best IS NOT NULL",
        (value,),
    )


def _pools(db: sqlite3.Connection) -> list[RegisteredPool]:
    rows = db.execute(
        "SELECT p.name, p.version, p.rules, count(m.member) FROM pool p LEFT JOIN pool_member m ON m.pool = p.name"
        " GROUP BY p.name ORDER BY p.name"
    )
    return [
        RegisteredPool(name=name, version=version, members=members, rules=decode_rules(packed))
        for name, version, packed, members in rows
    ]


def _lanes(db: sqlite3.Connection, pool: str, only: Sequence[str], now: Moment) -> list[LanePoolView]:
    some = f" AND p.name IN ({', '.join('?' * len(only))})" if only else ""
    rings = db.execute(
        f"SELECT p.id, p.name, r.state FROM ring r JOIN pace p ON p.id = r.pace WHERE r.pool = ?{some}", (pool, *only)
    ).fetchall()
    all_members = _dealable(db, pool, 0)
    views = [_lane(db, pool, now, ring, all_members) for ring in rings]
    known = {view.lane for view in views}
    return views + [
        LanePoolView(lane=lane, members=_dealable(db, pool, only_member(lane))[0]) for lane in only if lane not in known
    ]


def _dealable(db: sqlite3.Connection, pool: str, only: int) -> tuple[int, int]:
    """How many members a lane can have, and the number of the last one. `only`: the lane's one account."""
    chosen: tuple[str, tuple[int, ...]] = (" AND member = ?", (only,)) if only else ("", ())
    [members, last] = db.execute(
        f"SELECT count(*), coalesce(max(seq), 0) FROM pool_member WHERE pool = ?{chosen[0]}", (pool, *chosen[1])
    ).fetchone()
    return members, last


def _lane(
    db: sqlite3.Connection, pool: str, now: Moment, row: tuple[int, str, bytes], all_members: tuple[int, int]
) -> LanePoolView:
    pace_id, name, packed = row
    account = only_member(name)
    members, last = _dealable(db, pool, account) if account else all_members
    ring = decode_ring(packed)
    out, resting, banned, first, free = db.execute(
        f"SELECT count(*) FILTER (WHERE place = {OUT}), count(*) FILTER (WHERE place <> {OUT} AND (due > ? OR banned)),"
        f" count(*) FILTER (WHERE place <> {OUT} AND banned), min(due) FILTER (WHERE place <> {OUT}),"
        f" count(*) FILTER (WHERE place <> {OUT} AND due <= ?)"
        " FROM (SELECT place, i.member, max(due, down_until) AS due, banned_at > 0 AND due > ? AS banned"
        " FROM identity i JOIN pool_member m ON m.pool = ? AND m.member = i.member WHERE pace = ?)",
        (now + PARKED, now, now, pool, pace_id),
    ).fetchone()
    waits = free == 0 and last <= ring.dealt and first is not None
    return LanePoolView(
        lane=name,
        members=members,
        in_flight=out,
        resting=resting,
        banned=banned,
        first_back=max(0.0, first - now) if waits else 0.0,
        site_blocked=ring.site_blocked,
    )


def _members(db: sqlite3.Connection, pool: str, lane: str, now: Moment) -> list[MemberView]:
    rows = db.execute(
        "SELECT i.member, i.place, i.due, i.banned_at, i.quality, i.strikes FROM identity i"
        " JOIN ring r ON r.pace = i.pace AND r.pool = ? JOIN pace p ON p.id = i.pace AND p.name = ?"
        " JOIN pool_member m ON m.pool = r.pool AND m.member = i.member ORDER BY i.due DESC, i.member",
        (pool, lane),
    )
    return [
        MemberView(
            member=member,
            lane=lane,
            quality=quality / BEST,
            strikes=strikes,
            in_flight=place == OUT,
            rests_for=0.0 if place == OUT else max(0.0, due - now),
            banned=place != OUT and banned_at > 0 and due > now,
        )
        for member, place, due, banned_at, quality, strikes in rows
    ]


def _down(db: sqlite3.Connection, pool: str, now: Moment) -> list[DownMember]:
    rows = db.execute(
        "SELECT member, faults, down_until FROM pool_member WHERE pool = ? AND down_until > ? ORDER BY down_until",
        (pool, now),
    )
    return [DownMember(member, faults, until - now) for member, faults, until in rows]


def _release(db: sqlite3.Connection, pool: str, lane: str, member: int | None, now: Moment) -> int:
    found = db.execute(
        "SELECT r.pace FROM ring r JOIN pace p ON p.id = r.pace WHERE r.pool = ? AND p.name = ?", (pool, lane)
    ).fetchone()
    if found is None:
        return 0
    ring = PoolRing(db, found[0], pool, now)
    count = ring.release(member)
    ring.flush()
    _make_ready(db, "pace = (SELECT id FROM pace WHERE name = ?)", lane)
    return count
