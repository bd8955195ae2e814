"""The rings of all lanes of a transaction: read together, and written together.

A lease call costs one query for the members of all its lanes, a second one where a pool limits its members over all
lanes (their rows are locked), and one statement to write them. All of it happens behind the locks of the lanes' paces,
which guard `ring` and `identity`.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from trotline.adapters.postgres.frontier import lane_member_rows
from trotline.adapters.postgres.frontier.combined_statement import Part, columns, composed
from trotline.adapters.postgres.frontier.member_limits import Members
from trotline.adapters.postgres.frontier.pool_queries import FOR_LEASE, FOR_RETURN, FREE_AT, WRITE_RINGS
from trotline.adapters.postgres.frontier.pool_ring import ENOUGH, PoolRing, Waiting
from trotline.adapters.postgres.pool import Connection
from trotline.model.proxy_pool import PoolRules, is_account_pool
from trotline.model.time import Moment, Seconds
from trotline.ports.frontier import HORIZON
from trotline.rules.member_choice import AT_HEAD, IN_RING, Standing, first_free
from trotline.rules.proxy_ring import Identity, LaneRing

LOOK_FURTHER = (2, ENOUGH, 80, 400)
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
        rows = await self._db.fetch(FOR_LEASE, *columns(wanted), self._now, self._now + HORIZON)
        for row in rows:
            ring = found[row[0]]
            _fill(ring, row[1:4])
            if row[4] is not None:
                ring.waiting.append(self._waiting(ring.pool, row[4:]))
        return {pace_id for pace_id, _, _, limit in wanted if len(found[pace_id].waiting) == limit}

    def _waiting(self, pool: str, row: Sequence[Any]) -> Waiting:
        place, dealt, known = row[:3]
        about = row[3 : 3 + lane_member_rows.WIDTH]
        limits = row[3 + lane_member_rows.WIDTH :]
        member = None if limits[0] is None else self._members.seen((pool, about[0]), limits)
        weight = 0 if member is None else member.limits.weight
        if dealt:
            return Waiting(Identity(member=about[0], weight=weight), member, place, dealt, known)
        return Waiting(lane_member_rows.read(about, weight), member, place, dealt, known)

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
        for row in await self._db.fetch(FOR_RETURN, *columns(missing)):
            ring = self._opened(row[0], next(each.pool for each in missing if each.pace_id == row[0]))
            _fill(ring, row[1:4])
            about, limits = row[4 : 4 + lane_member_rows.WIDTH], row[4 + lane_member_rows.WIDTH :]
            if about[0] is not None:
                known = limits[0] is not None
                weight = self._members.seen((ring.pool, about[0]), limits).limits.weight if known else 0
                ring.out.setdefault(about[0], lane_member_rows.read(about, weight))

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
            rows = await self._db.fetch(FREE_AT, *columns(wanted), self._now, HORIZON)
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
        """Write members and rings now."""
        if parts := await self.changes():
            await self._db.execute(*composed(parts))

    async def changes(self) -> list[Part]:
        """Members and rings are written with these."""
        rings = self._rings.values()
        placed = [each for ring in rings for each in ring.changed.values()]
        dropped = [(ring.pace_id, member) for ring in rings for member in ring.dropped]
        parts = [*lane_member_rows.written(placed), *lane_member_rows.deleted(dropped)]
        rows = []
        for ring in rings:
            ring.changed.clear()
            ring.dropped.clear()
            if ring.kept != (ring.state, ring.position):
                ring.kept = (ring.state, ring.position)
                rows.append((ring.pace_id, ring.pool, encode_ring(ring.state), ring.position, ring.state.dealt))
        if rows:
            parts.append((WRITE_RINGS, columns(rows)))
        return parts + await self._members.changes()


def _fill(ring: PoolRing, row: Sequence[Any]) -> None:
    """The ring as stored, unless the transaction has changed it."""
    state, position, rules = row
    if ring.kept is None and position is not None:
        ring.state, ring.position = decode_ring(state), position
        ring.kept = (ring.state, position)
    if rules is not None:
        ring.rules = decode_rules(rules)
