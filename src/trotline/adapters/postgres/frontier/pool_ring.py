"""The members of a proxy pool in one lane, in one transaction: who goes out next, and who came back.

`load_pool_rings.py` reads what is needed for all lanes of a transaction, and writes it back; the decisions between are
made here, in memory. They follow `rules/proxy_ring.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from trotline.adapters.postgres.frontier import lane_member_rows
from trotline.adapters.postgres.frontier.combined_statement import composed
from trotline.adapters.postgres.frontier.lane_member_rows import Placed
from trotline.adapters.postgres.frontier.member_limits import Member, Members
from trotline.adapters.postgres.pool import Connection
from trotline.model.proxy_pool import MemberResult, PoolRules, is_account_pool
from trotline.model.time import Moment, Seconds
from trotline.ports.frontier import HORIZON
from trotline.rules import proxy_ring
from trotline.rules.member_choice import AT_HEAD, IN_RING, UNLIMITED, Candidate, Choice, Move, limited
from trotline.rules.proxy_ring import Identity, LaneRing, Lift, Place

ENOUGH = 16
"""Members beyond those wanted, of which each may lose its turn: others need not be asked."""
_BANNED = f"""
SELECT {lane_member_rows.COLUMNS} FROM identity i WHERE i.pace = $1 AND i.place = {IN_RING} AND i.banned_at > 0
"""
_SINCE = f"{_BANNED} AND i.banned_at >= $2 ORDER BY i.due, i.position"
_FIRST = f"{_BANNED} AND i.banned_at >= $2 ORDER BY i.banned_at, i.position LIMIT 1"
_CHOSEN = f"{_BANNED} AND i.member = ANY($2::bigint[]) ORDER BY i.due, i.position"
_RESTING = f"{_BANNED} AND i.due > $2 AND ($3::bigint IS NULL OR i.member = $3) ORDER BY i.due, i.position"


class Sent(NamedTuple):
    """A member that goes out."""

    member: int
    start: Moment


class Waiting(NamedTuple):
    """A member of the ring that may be a candidate. `member`: None: it is no longer in the pool."""

    identity: Identity
    member: Member | None
    place: int
    dealt: int
    """Its number in the pool, if it has not been in this ring; else 0."""
    known: bool
    """It was removed from the pool and added again: its history holds."""


class PoolRing:
    """The ring of one lane."""

    def __init__(self, db: Connection, members: Members, pace_id: int, pool: str, now: Moment) -> None:
        self._db = db
        self._members = members
        self.pace_id = pace_id
        self.pool = pool
        self._now = now
        self.rules = PoolRules()
        self.state = LaneRing()
        self.position = 0
        self.kept: tuple[LaneRing, int] | None = None
        """As stored; None: not yet."""
        self.waiting: list[Waiting] = []
        """In the order of choice, as far as they were read."""
        self.out: dict[int, Identity] = {}
        """Members in flight, as far as they were read."""
        self.changed: dict[int, Placed] = {}
        """To be written."""
        self.dropped: set[int] = set()
        self.skipped = False
        """Another transaction has some of its members just now."""
        self.returned = False
        """A member came back: other jobs may wait for one."""
        self.freed: list[int] = []
        """Accounts that came back: other lanes may wait for them."""

    @property
    def most(self) -> int:
        """Visits at a time through one member, over all lanes."""
        return self.rules.member_concurrency or UNLIMITED

    def want_gap(self, gap: Seconds) -> None:
        """The interval per member that the job wants."""
        self.state = proxy_ring.wanted_gap(self.state, gap, self._now)

    # Out

    def supplies(self, count: int) -> bool:
        """Are there enough members to choose from? So many that lose no turn, or some more that may."""
        latest, certain, usable = self._now + HORIZON, 0, 0
        for identity, member, _, _, known in self.waiting:
            if member is None or known or not member.open_to(self.pace_id, self.most, self._now):
                continue
            if member.limits.free_at(self.rules) <= latest:
                usable += 1
                certain += proxy_ring.share_of_turns(identity) >= 1.0
        return certain >= count or usable >= count + ENOUGH

    def send(self, starts: Sequence[Moment], interval: Seconds, chance: Callable[[], float]) -> list[Sent]:
        """Members for these starts of the lane, at most one each, in the order of their starts. A start is later than
        reserved if its member is due later. After `PoolRings.for_lease`."""
        choice = Choice(starts, interval, self.rules, self.state, self._now, self._now + HORIZON)
        sent: list[Sent] = []
        asked = 0
        for each in self.waiting:
            if not choice.missing:
                break
            asked += 1
            candidate = self._candidate(each)
            if candidate is not None:
                self._move(choice.offer(candidate, chance), sent)
        for move in choice.second_turns():
            self._move(move, sent)
        del self.waiting[:asked]
        return sent

    def _candidate(self, each: Waiting) -> Candidate | None:
        if each.dealt:
            self.state = msgspec.structs.replace(self.state, dealt=each.dealt)
        if each.member is None:
            self.dropped.add(each.identity.member)
            return None
        if each.known:
            return None
        places = each.member.open_to(self.pace_id, self.most, self._now)
        if not places and not each.dealt:
            # Another lane of this call has it now: it stays where it is.
            return None
        return Candidate(each.identity, each.member.limits, places, each.place)

    def _move(self, move: Move, sent: list[Sent]) -> None:
        self._write(move.identity, move.place)
        if move.start is not None:
            member = move.identity.member
            self.out[member] = move.identity
            self._members.count_out((self.pool, member), move.start, self.rules)
            sent.append(Sent(member, move.start))

    # Back

    async def give_back(
        self, member: int, result: MemberResult, *, retry_after: Seconds = 0.0, chance: float = 0.0
    ) -> None:
        """The member's visit is over. After `PoolRings.for_return`."""
        identity = self.out.pop(member, None)
        if identity is None:
            return
        self.returned = True
        old = self.state
        back = proxy_ring.returned(
            identity, old, result, self._now, self.rules, retry_after=retry_after, chance=chance
        )  # fmt: skip
        self.state = back.ring
        # Also if it is no longer in the pool: it may be in the next version again, and a ban holds.
        self._write(back.identity, AT_HEAD if back.place is Place.HEAD else IN_RING)
        self._members.count_back((self.pool, member), self.rules, result, chance)
        if is_account_pool(self.pool):
            self.freed.append(member)
        if back.lift is Lift.ONE:
            await self._test_a_ban(old)
        elif back.lift is Lift.ALL:
            await self._lift(_SINCE, old.tested_since, blocked_at=old.tested_blocked_at)

    def rest(self, member: int) -> None:
        """Its worker may still send."""
        if self.rules.rest_of_dead > 0:
            self._members.rest((self.pool, member), self._now + self.rules.rest_of_dead)

    async def lift(self, members: Iterable[int]) -> None:
        """End these quarantines: the bans were the fault of a page."""
        await self._lift(_CHOSEN, list(members))

    async def release(self, member: int | None) -> int:
        """End the quarantine of one member, or of all; returns their number."""
        return await self._lift(_RESTING, self._now, member)

    async def _test_a_ban(self, old: LaneRing) -> None:
        """The first member that was banned in the block by the site goes out: are these bans over?"""
        await self.write_members()
        first = await self._db.fetchrow(_FIRST, self.pace_id, old.suspected_at)
        if first is not None:
            await self._lift(_CHOSEN, [first[0]], blocked_at=old.blocked_at)
            self.state = msgspec.structs.replace(self.state, tested=first[0])

    async def _lift(self, query: str, *values: object, blocked_at: Moment = 0.0) -> int:
        await self.write_members()
        rows = await self._db.fetch(query, self.pace_id, *values)
        wanted = proxy_ring.wanted_interval(self.rules, self.state)
        for row in rows:
            identity = lane_member_rows.read(row, proxy_ring.MOST_WEIGHT)
            self._write(proxy_ring.lifted(identity, self._now, wanted, blocked_at), IN_RING)
        self.returned = True
        return len(rows)

    # Rows

    @property
    def limited(self) -> bool:
        return limited(self.rules)

    async def write_members(self) -> None:
        """Write the members now: a query follows that must see them."""
        changed, self.changed = self.changed, {}
        if parts := lane_member_rows.written(changed.values()):
            await self._db.execute(*composed(parts))

    def _write(self, identity: Identity, place: int) -> None:
        self.position += 1
        self.changed[identity.member] = Placed(self.pace_id, identity, place, self.position)
