"""The rings of all lanes of a transaction: read together, and written together.

A lease call costs one query for the members of all its lanes, a second one where a pool limits its members over all
lanes (their rows are locked), and one statement to write them. All of it happens behind the locks of the lanes' paces,
which guard `ring` and `identity`.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from trotline.adapters.postgres.frontier import identity_row, member_limits
from trotline.adapters.postgres.frontier.member_limits import Members
from trotline.adapters.postgres.frontier.pool_ring import PoolRing, Waiting
from trotline.adapters.postgres.pool import Connection
from trotline.model.proxy_pool import PoolRules, is_account_pool
from trotline.model.time import Moment, Seconds
from trotline.ports.frontier import HORIZON
from trotline.rules.member_choice import AT_HEAD, IN_RING, OUT, UNLIMITED, Standing, first_free
from trotline.rules.proxy_ring import Identity, LaneRing

LOOK_FURTHER = (4, 16, 80, 400)
"""Members that are read beyond those wanted, from one round to the next: some lose their turn, or rest for all
lanes."""
POLL: Seconds = 0.1
"""A lane whose due members are all at their limit over all lanes is tried again after this."""
AGAIN: Seconds = 0.01
"""A lane whose members are locked by another transaction is tried again after this."""
ACCOUNT_POLL: Seconds = 1.0
"""The return of an account wakes the lanes that wait for it, except one that is being served at this moment: it is
tried again after this."""
SOON: Seconds = 0.001

encode_ring = msgspec.msgpack.Encoder().encode
decode_ring = msgspec.msgpack.Decoder(LaneRing).decode
encode_rules = msgspec.msgpack.Encoder().encode
decode_rules = msgspec.msgpack.Decoder(PoolRules).decode

_LANES = "unnest($1::bigint[], $2::text[], $3::bigint[], $4::integer[]) AS w(pace, pool, only_member, n)"
_RING = "r.state, r.position, q.rules"
_WITH_RING = "LEFT JOIN ring r ON r.pace = w.pace LEFT JOIN pool q ON q.name = w.pool"


def _due(place: int) -> str:
    return f"""(
    SELECT {place} AS place, 0::bigint AS dealt, false AS known, {identity_row.COLUMNS}, {member_limits.COLUMNS}
    FROM identity i LEFT JOIN pool_member m ON m.pool = w.pool AND m.member = i.member
    WHERE i.pace = w.pace AND i.place = {place} AND i.due <= $6 AND (i.banned_at = 0 OR i.due <= $5)
        AND (m.running IS NULL OR (m.running < coalesce(q.most, {UNLIMITED})
            AND (m.last_pace <> i.pace OR m.yield_until <= $5)))
    ORDER BY i.due, i.position LIMIT w.n)"""


_FRESH = f"""(
    SELECT {IN_RING}, m.seq, i.member IS NOT NULL, m.member, 0, 0, 0, 0, 0, 0, 0, {member_limits.COLUMNS}
    FROM pool_member m LEFT JOIN identity i ON i.pace = w.pace AND i.member = m.member
    WHERE m.pool = w.pool AND m.seq > coalesce(r.dealt, 0) AND (w.only_member = 0 OR m.member = w.only_member)
    ORDER BY m.seq LIMIT w.n)"""

_FOR_LEASE = f"""
SELECT w.pace, {_RING}, c.* FROM {_LANES} {_WITH_RING}
LEFT JOIN LATERAL ({_due(AT_HEAD)} UNION ALL {_FRESH} UNION ALL {_due(IN_RING)} LIMIT w.n) c ON true
"""
"""In the order of choice."""

_FOR_RETURN = f"""
SELECT w.pace, {_RING}, {identity_row.COLUMNS}, {member_limits.COLUMNS}
FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS w(pace, pool, member) {_WITH_RING}
LEFT JOIN identity i ON i.pace = w.pace AND i.member = w.member AND i.place = {OUT}
LEFT JOIN pool_member m ON m.pool = w.pool AND m.member = w.member
"""


def _first(place: int, condition: str) -> str:
    return f"""(
    SELECT {place} AS place, i.due, i.banned_at, coalesce(m.running, 0) >= w.most AS busy,
        CASE WHEN m.last_pace = i.pace THEN m.yield_until ELSE 0 END AS yield_until
    FROM identity i LEFT JOIN pool_member m ON m.pool = w.pool AND m.member = i.member
    WHERE i.pace = w.pace AND i.place = {place} AND {condition}
        (w.account AND coalesce(m.running, 0) >= w.most
         AND i.due - CASE WHEN i.banned_at > 0 THEN 0 ELSE $8 END <= $7)
    ORDER BY i.due, i.position LIMIT 1)"""


_FREE_AT = f"""
SELECT w.pace, c.* FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[])
    AS w(pace, pool, only_member, dealt, most, account)
CROSS JOIN LATERAL (
    (SELECT NULL::integer AS place, 0::float8 AS due, 0::float8 AS banned_at, false AS busy, 0::float8 AS yield_until
     FROM pool_member m WHERE m.pool = w.pool AND m.seq > w.dealt
        AND (w.only_member = 0 OR m.member = w.only_member) LIMIT 1)
    UNION ALL {_first(AT_HEAD, "")} UNION ALL {_first(AT_HEAD, "NOT")}
    UNION ALL {_first(IN_RING, "")} UNION ALL {_first(IN_RING, "NOT")}) c
ORDER BY c.due
"""
"""Place NULL: a member that has not been in this ring. Accounts that are due and busy are waited for without a time:
the first of them, and the first other member."""

_WRITE = """
INSERT INTO ring (pace, pool, state, position, dealt)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bigint[], $5::bigint[])
ON CONFLICT (pace) DO UPDATE SET state = excluded.state, position = excluded.position, dealt = excluded.dealt
"""


class Wanted(NamedTuple):
    """A lane that needs members. `only`: the one account that visits it; 0: any."""

    pace_id: int
    pool: str
    only: int
    starts: int


class Back(NamedTuple):
    """A member whose visit is over."""

    pace_id: int
    pool: str
    member: int


class Free(NamedTuple):
    """When the next member of a lane can go out; NEVER: when one comes back."""

    at: Moment
    waits: bool
    """Does the lane wait for an account that another lane has?"""


class PoolRings:
    def __init__(self, db: Connection, now: Moment) -> None:
        self._db = db
        self._now = now
        self._members = Members(db, now)
        self._rings: dict[int, PoolRing] = {}
        self._only: dict[int, int] = {}

    def ring(self, pace_id: int) -> PoolRing:
        """Of a lane that was read."""
        return self._rings[pace_id]

    def all(self) -> Collection[PoolRing]:
        return self._rings.values()

    def yields(self, pool: str, member: int, pace_id: int, until: Moment) -> None:
        """The lane that returned an account lets others have it until then."""
        self._members.yields((pool, member), pace_id, until)

    # Reading

    async def for_lease(self, lanes: Sequence[Wanted]) -> None:
        """Read the members of these lanes that may go out now."""
        await self.flush()
        for lane in lanes:
            self._only[lane.pace_id] = lane.only
        left = list(lanes)
        for further in LOOK_FURTHER:
            full = await self._read(left, further)
            left = [lane for lane in left if lane.pace_id in full and not self.ring(lane.pace_id).supplies(lane.starts)]
            if not left:
                break
        await self._take([self.ring(lane.pace_id) for lane in lanes])

    async def _read(self, lanes: Sequence[Wanted], further: int) -> set[int]:
        """Returns the lanes of which there may be more."""
        wanted = [(lane.pace_id, lane.pool, lane.only, lane.starts + further) for lane in lanes]
        found = {lane.pace_id: self._opened(lane.pace_id, lane.pool) for lane in lanes}
        for ring in found.values():
            ring.waiting.clear()
            ring.skipped = False
        rows = await self._db.fetch(_FOR_LEASE, *map(list, zip(*wanted, strict=True)), self._now, self._now + HORIZON)
        for row in rows:
            ring = found[row[0]]
            _fill(ring, row[1:4])
            if row[4] is not None:
                ring.waiting.append(self._waiting(ring.pool, row[4:]))
        return {pace_id for pace_id, _, _, limit in wanted if len(found[pace_id].waiting) == limit}

    def _waiting(self, pool: str, row: Sequence[Any]) -> Waiting:
        place, dealt, known = row[:3]
        about = row[3 : 3 + identity_row.WIDTH]
        columns = row[3 + identity_row.WIDTH :]
        member = None if columns[0] is None else self._members.seen((pool, about[0]), columns)
        weight = 0 if member is None else member.limits.weight
        if dealt:
            return Waiting(Identity(member=about[0], weight=weight), member, place, dealt, known)
        return Waiting(identity_row.read(about, weight), member, place, dealt, known)

    async def _take(self, rings: Iterable[PoolRing]) -> None:
        """Lock the members with limits over all lanes; those that another transaction has are passed over."""
        rings = [ring for ring in rings if ring.limited]
        keys = [(ring.pool, each.identity.member) for ring in rings for each in ring.waiting if each.member]
        if not keys:
            return
        ours = await self._members.take(keys)
        for ring in rings:
            there, ring.waiting = ring.waiting, []
            passed_fresh = False
            for each in there:
                key = (ring.pool, each.identity.member)
                free = each.member is None or key in ours
                passed_fresh = passed_fresh or (each.dealt > 0 and not free)
                # Members are dealt to the ring in their order: none behind one that was passed over.
                if free and not (each.dealt and passed_fresh):
                    ring.waiting.append(each._replace(member=each.member and self._members.known(key)))
            ring.skipped = len(ring.waiting) < len(there)

    async def for_return(self, members: Iterable[Back]) -> None:
        """Read these members, which are in flight."""
        missing = sorted({each for each in members if not self._is_out(each)})
        if not missing:
            return
        for row in await self._db.fetch(_FOR_RETURN, *map(list, zip(*missing, strict=True))):
            ring = self._opened(row[0], next(each.pool for each in missing if each.pace_id == row[0]))
            _fill(ring, row[1:4])
            about, columns = row[4 : 4 + identity_row.WIDTH], row[4 + identity_row.WIDTH :]
            if about[0] is not None:
                known = columns[0] is not None
                weight = self._members.seen((ring.pool, about[0]), columns).limits.weight if known else 0
                ring.out.setdefault(about[0], identity_row.read(about, weight))

    async def opened(self, pace_id: int, pool: str) -> PoolRing:
        """The ring of a lane, for operators."""
        await self.for_return([Back(pace_id, pool, 0)])
        return self.ring(pace_id)

    def _is_out(self, back: Back) -> bool:
        ring = self._rings.get(back.pace_id)
        return ring is not None and back.member in ring.out

    def _opened(self, pace_id: int, pool: str) -> PoolRing:
        ring = self._rings.get(pace_id)
        if ring is None:
            ring = self._rings[pace_id] = PoolRing(self._db, self._members, pace_id, pool, self._now)
        return ring

    async def free_at(self, paces: Sequence[int]) -> dict[int, Free]:
        """After `send` found none for these lanes: when one can go out."""
        await self.flush()
        rings = [self.ring(pace_id) for pace_id in paces]
        wanted = [
            (ring.pace_id, ring.pool, self._only.get(ring.pace_id, 0), ring.state.dealt, ring.most,
             is_account_pool(ring.pool))
            for ring in rings
        ]  # fmt: skip
        found: dict[int, list[Any]] = {ring.pace_id: [] for ring in rings}
        if wanted:
            rows = await self._db.fetch(_FREE_AT, *map(list, zip(*wanted, strict=True)), self._now, HORIZON)
            for row in rows:
                found[row[0]].append(row[1:])
        return {ring.pace_id: self._free(ring, found[ring.pace_id]) for ring in rings}

    def _free(self, ring: PoolRing, rows: Sequence[Sequence[Any]]) -> Free:
        if any(row[0] is None for row in rows):
            return Free(self._now + SOON, False)
        account = is_account_pool(ring.pool)
        moments, waits = [], False
        for place in (IN_RING, AT_HEAD):
            standings = [Standing(*row[1:]) for row in rows if row[0] == place]
            first, waited = first_free(standings, self._now, HORIZON, waits_without_time=account)
            moments.append(first)
            waits = waits or waited
        first = min(moments)
        if ring.skipped:
            first = min(first, self._now + AGAIN)
        if first <= self._now:
            first = self._now + POLL
        return Free(min(first, self._now + ACCOUNT_POLL) if waits else first, waits)

    # Writing

    async def flush(self) -> None:
        """Write members and rings."""
        rings = self._rings.values()
        placed = [each for ring in rings for each in ring.changed.values()]
        dropped = [(ring.pace_id, member) for ring in rings for member in ring.dropped]
        await identity_row.write(self._db, placed)
        await identity_row.delete(self._db, dropped)
        rows = []
        for ring in rings:
            ring.changed.clear()
            ring.dropped.clear()
            if ring.kept != (ring.state, ring.position):
                ring.kept = (ring.state, ring.position)
                rows.append((ring.pace_id, ring.pool, encode_ring(ring.state), ring.position, ring.state.dealt))
        if rows:
            await self._db.execute(_WRITE, *map(list, zip(*rows, strict=True)))
        await self._members.flush()


def _fill(ring: PoolRing, row: Sequence[Any]) -> None:
    """The ring as stored, unless the transaction has changed it."""
    state, position, rules = row
    if ring.kept is None and position is not None:
        ring.state, ring.position = decode_ring(state), position
        ring.kept = (ring.state, position)
    if rules is not None:
        ring.rules = decode_rules(rules)
