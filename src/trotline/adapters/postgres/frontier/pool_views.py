"""Proxy pools as operators see them."""

from collections.abc import Sequence
from typing import Any

from trotline.adapters.postgres.frontier.load_pool_rings import decode_ring
from trotline.adapters.postgres.pool import Connection
from trotline.model.proxy_pool import DownMember, LanePoolView, MemberView, only_member
from trotline.model.time import Moment
from trotline.rules.member_choice import OUT
from trotline.rules.proxy_ring import BEST, PARKED

_LANES = f"""
SELECT p.name, r.state, c.* FROM ring r JOIN pace p ON p.id = r.pace
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE place = {OUT}),
        count(*) FILTER (WHERE place <> {OUT} AND (due > $2 + $3 OR banned)),
        count(*) FILTER (WHERE place <> {OUT} AND banned),
        min(due) FILTER (WHERE place <> {OUT}),
        count(*) FILTER (WHERE place <> {OUT} AND due <= $2)
    FROM (SELECT i.place, greatest(i.due, m.down_until) AS due, i.banned_at > 0 AND i.due > $2 AS banned
          FROM identity i JOIN pool_member m ON m.pool = r.pool AND m.member = i.member WHERE i.pace = r.pace) i) c
WHERE r.pool = $1 AND ($4::text[] IS NULL OR p.name = ANY($4::text[]))
"""
_MEMBERS = """
SELECT i.member, i.place, i.due, i.banned_at, i.quality, i.strikes FROM pace p
JOIN ring r ON r.pace = p.id AND r.pool = $1 JOIN identity i ON i.pace = p.id
JOIN pool_member m ON m.pool = r.pool AND m.member = i.member
WHERE p.name = $2 ORDER BY i.due DESC, i.member
"""


async def lanes(db: Connection, pool: str, only: Sequence[str], now: Moment) -> list[LanePoolView]:
    """Lanes that use the pool. `only`: these, also those without a visit so far."""
    seqs = {row[0]: row[1] for row in await db.fetch("SELECT member, seq FROM pool_member WHERE pool = $1", pool)}
    rows = await db.fetch(_LANES, pool, now, PARKED, list(only) or None)
    views = [_lane(row, seqs, now) for row in rows]
    known = {view.lane for view in views}
    return views + [
        LanePoolView(lane=lane, members=_dealable(seqs, lane)[0]) for lane in dict.fromkeys(only) if lane not in known
    ]


def _dealable(seqs: dict[int, int], lane: str) -> tuple[int, int]:
    """How many members a lane can have, and the number of the last one."""
    account = only_member(lane)
    if account:
        return int(account in seqs), seqs.get(account, 0)
    return len(seqs), max(seqs.values(), default=0)


def _lane(row: Sequence[Any], seqs: dict[int, int], now: Moment) -> LanePoolView:
    name, packed, out, resting, banned, first, free = row
    members, last = _dealable(seqs, name)
    ring = decode_ring(packed)
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


async def members(db: Connection, pool: str, lane: str, now: Moment) -> list[MemberView]:
    """Members with a history in the lane."""
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
        for member, place, due, banned_at, quality, strikes in await db.fetch(_MEMBERS, pool, lane)
    ]


async def down(db: Connection, pool: str, now: Moment) -> list[DownMember]:
    """Members that rest for all lanes."""
    rows = await db.fetch(
        "SELECT member, faults, down_until FROM pool_member WHERE pool = $1 AND down_until > $2 ORDER BY down_until",
        pool,
        now,
    )
    return [DownMember(member, faults, until - now) for member, faults, until in rows]
