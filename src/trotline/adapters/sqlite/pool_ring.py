"""The members of a proxy pool in one lane, in one transaction: who goes out next, and who came back.

Members stand in order of the moment from which they are due, so those that rest need no place of their own: the rules
are those of `rules/proxy_ring.py`.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from trotline.adapters.sqlite.schema import AT_HEAD, IN_RING, OUT
from trotline.model.proxy_pool import MemberResult, PoolRules
from trotline.model.time import Moment, Seconds
from trotline.ports.frontier import HORIZON
from trotline.rules import pace, proxy_ring
from trotline.rules.proxy_ring import Identity, LaneRing, Lift, Place

LOOK_FURTHER = 16
"""Members that are read beyond those wanted: some lose their turn."""
ROUNDS = 4
"""How often more of them are read in one lease call."""
POLL: Seconds = 0.1
"""A lane whose due members are all at their limit over all lanes is tried again after this."""
SOON: Seconds = 0.001
UNLIMITED = 1 << 60

encode_ring = msgspec.msgpack.Encoder().encode
decode_ring = msgspec.msgpack.Decoder(LaneRing).decode
decode_rules = msgspec.msgpack.Decoder(PoolRules).decode

_IDENTITY = "i.member, i.due, i.banned_at, i.quality, i.uses, i.good, i.strikes, i.slow"
_LIMITS = "m.weight, m.down_until, m.next_start, m.running"
_Row = tuple[int, Moment, Moment, int, int, int, int, int]


class Sent(NamedTuple):
    """A member that goes out."""

    member: int
    start: Moment


class _Candidate(NamedTuple):
    identity: Identity
    free_at: Moment
    """Over all lanes."""
    places: bool
    """Is it below its concurrency over all lanes?"""
    place: int


class PoolRing:
    """The ring of one lane."""

    def __init__(self, db: sqlite3.Connection, pace_id: int, pool: str, now: Moment) -> None:
        self._db = db
        self._pace = pace_id
        self._pool = pool
        self._now = now
        found = db.execute("SELECT rules FROM pool WHERE name = ?", (pool,)).fetchone()
        self.rules = decode_rules(found[0]) if found else PoolRules()
        kept = db.execute("SELECT state, position FROM ring WHERE pace = ?", (pace_id,)).fetchone()
        self.state: LaneRing = decode_ring(kept[0]) if kept else LaneRing()
        self._position: int = kept[1] if kept else 0
        self._kept = (self.state, self._position) if kept else None
        self.returned = False
        """A member came back: other jobs may wait for one."""

    def want_gap(self, gap: Seconds) -> None:
        """The interval per member that the job wants."""
        self.state = proxy_ring.wanted_gap(self.state, gap, self._now)

    # Out

    def send(self, starts: list[Moment], interval: Seconds, chance: Callable[[], float]) -> list[Sent]:
        """Members for these starts of the lane, at most one each, in the order of their starts. A start is later than
        reserved if its member is due later."""
        sent: list[Sent] = []
        wanted = proxy_ring.wanted_interval(self.rules, self.state)
        latest = self._now + HORIZON
        for candidate in self._candidates(lambda: len(starts) - len(sent)):
            identity = candidate.identity
            begin = max(starts[len(sent)], sent[-1].start + interval if sent else 0.0, identity.due, candidate.free_at)
            if not candidate.places:
                self._write(identity, candidate.place)
            elif candidate.free_at > latest:
                self._write(proxy_ring.postponed(identity, candidate.free_at), IN_RING)
            elif proxy_ring.loses_turn(identity, chance()):
                self._write(proxy_ring.passed_over(identity, self._now, wanted), IN_RING)
            elif begin > latest:
                self._write(identity, candidate.place)
                break
            else:
                self._write(proxy_ring.taken(proxy_ring.back(identity), begin, wanted), OUT)
                self._count_out(identity.member, begin)
                sent.append(Sent(identity.member, begin))
        return sent

    def free_at(self) -> Moment:
        """When the next member can go out, after `send` found none; NEVER: when one comes back."""
        fresh = self._db.execute(
            "SELECT 1 FROM pool_member WHERE pool = ? AND seq > ? LIMIT 1", (self._pool, self.state.dealt)
        ).fetchone()
        if fresh:
            return self._now + SOON
        first = pace.NEVER
        for place in (IN_RING, AT_HEAD):
            row = self._db.execute(
                "SELECT due, banned_at FROM identity WHERE pace = ? AND place = ? ORDER BY due, position LIMIT 1",
                (self._pace, place),
            ).fetchone()
            if row is not None:
                first = min(first, row[0] if row[1] else row[0] - HORIZON)
        return max(first, self._now + POLL) if first <= self._now else first

    def _candidates(self, missing: Callable[[], int]) -> Iterator[_Candidate]:
        """Members that are due, in the order of choice; each must be written before the next one is asked for."""
        for source in (self._at_head, self._fresh, self._in_ring):
            for _ in range(ROUNDS):
                if missing() <= 0:
                    return
                limit = missing() + LOOK_FURTHER
                read = 0
                for candidate in source(limit):
                    read += 1
                    if candidate is not None:
                        yield candidate
                    if missing() <= 0:
                        return
                if read < limit:
                    break

    def _at_head(self, limit: int) -> Iterable[_Candidate | None]:
        return self._due(AT_HEAD, limit)

    def _in_ring(self, limit: int) -> Iterable[_Candidate | None]:
        return self._due(IN_RING, limit)

    def _due(self, place: int, limit: int) -> Iterable[_Candidate | None]:
        most = self.rules.member_concurrency or UNLIMITED
        rows = self._db.execute(
            f"SELECT {_IDENTITY}, {_LIMITS} FROM identity i"
            " LEFT JOIN pool_member m ON m.pool = ? AND m.member = i.member"
            " WHERE i.pace = ? AND i.place = ? AND i.due <= ? AND (i.banned_at = 0 OR i.due <= ?)"
            " AND (m.running IS NULL OR m.running < ?) ORDER BY i.due, i.position LIMIT ?",
            (self._pool, self._pace, place, self._now + HORIZON, self._now, most, limit),
        ).fetchall()
        for row in rows:
            weight, down_until, next_start, _ = row[8:]
            if weight is None:
                # No longer in the pool.
                self._drop(row[0])
                yield None
            else:
                yield _Candidate(_identity(row[:8], weight), max(down_until, next_start), True, place)

    def _fresh(self, limit: int) -> Iterable[_Candidate | None]:
        """Members that have not been in this ring."""
        most = self.rules.member_concurrency or UNLIMITED
        rows = self._db.execute(
            f"SELECT m.seq, m.member, {_LIMITS} FROM pool_member m WHERE m.pool = ? AND m.seq > ?"
            " ORDER BY m.seq LIMIT ?",
            (self._pool, self.state.dealt, limit),
        ).fetchall()
        for seq, member, weight, down_until, next_start, running in rows:
            self.state = msgspec.structs.replace(self.state, dealt=seq)
            known = self._db.execute(
                "SELECT 1 FROM identity WHERE pace = ? AND member = ?", (self._pace, member)
            ).fetchone()
            if known:
                # It was removed from the pool and added again: its history holds.
                yield None
            else:
                identity = Identity(member=member, weight=weight)
                yield _Candidate(identity, max(down_until, next_start), running < most, IN_RING)

    # Back

    def give_back(self, member: int, result: MemberResult, *, retry_after: Seconds = 0.0, chance: float = 0.0) -> None:
        """The member's visit is over."""
        row = self._db.execute(
            f"SELECT {_IDENTITY}, m.weight, m.faults FROM identity i"
            " LEFT JOIN pool_member m ON m.pool = ? AND m.member = i.member"
            f" WHERE i.pace = ? AND i.member = ? AND i.place = {OUT}",
            (self._pool, self._pace, member),
        ).fetchone()
        if row is None:
            return
        self.returned = True
        old = self.state
        back = proxy_ring.returned(
            _identity(row[:8], 0 if row[8] is None else row[8]),
            old,
            result,
            self._now,
            self.rules,
            retry_after=retry_after,
            chance=chance,
        )
        self.state = back.ring
        # Also if it is no longer in the pool: it may be in the next version again, and a ban holds.
        self._write(back.identity, AT_HEAD if back.place is Place.HEAD else IN_RING)
        self._count_back(member, result, row[9] or 0, chance)
        if back.lift is Lift.ONE:
            self._test_a_ban(old)
        elif back.lift is Lift.ALL:
            self._lift("i.banned_at > 0 AND i.banned_at >= ?", (old.tested_since,), old.tested_blocked_at)

    def lift(self, members: Iterable[int]) -> None:
        """End these quarantines: the bans were the fault of a page."""
        for member in members:
            self._lift("i.banned_at > 0 AND i.member = ?", (member,), 0.0)

    def _test_a_ban(self, old: LaneRing) -> None:
        """The first member that was banned in the block by the site goes out: are these bans over?"""
        first = self._db.execute(
            f"SELECT member FROM identity WHERE pace = ? AND place = {IN_RING} AND banned_at > 0 AND banned_at >= ?"
            " ORDER BY banned_at, position LIMIT 1",
            (self._pace, old.suspected_at),
        ).fetchone()
        if first is not None:
            self._lift("i.member = ?", first, old.blocked_at)
            self.state = msgspec.structs.replace(self.state, tested=first[0])

    def release(self, member: int | None) -> int:
        """End the quarantine of one member, or of all; returns their number."""
        only: tuple[str, tuple[Moment, ...]] = ("", ()) if member is None else (" AND i.member = ?", (member,))
        return self._lift(f"i.banned_at > 0 AND i.due > ?{only[0]}", (self._now, *only[1]), 0.0)

    def _lift(self, condition: str, values: tuple[Moment, ...], blocked_at: Moment) -> int:
        rows = self._db.execute(
            f"SELECT {_IDENTITY} FROM identity i WHERE i.pace = ? AND i.place = {IN_RING} AND {condition}"
            " ORDER BY i.due, i.position",
            (self._pace, *values),
        ).fetchall()
        wanted = proxy_ring.wanted_interval(self.rules, self.state)
        for row in rows:
            self._write(proxy_ring.lifted(_identity(row, 255), self._now, wanted, blocked_at), IN_RING)
        self.returned = True
        return len(rows)

    # Rows

    def flush(self) -> None:
        if self._kept != (self.state, self._position):
            self._kept = (self.state, self._position)
            self._db.execute(
                "INSERT INTO ring (pace, pool, state, position) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET state = excluded.state, position = excluded.position",
                (self._pace, self._pool, encode_ring(self.state), self._position),
            )

    def _write(self, identity: Identity, place: int) -> None:
        self._position += 1
        write_identity(self._db, self._pace, identity, place, self._position)

    def _drop(self, member: int) -> None:
        self._db.execute("DELETE FROM identity WHERE pace = ? AND member = ?", (self._pace, member))

    def _count_out(self, member: int, start: Moment) -> None:
        """Only where the pool has limits over all lanes: most have none, and a visit costs two writes less."""
        if limited(self.rules):
            self._db.execute(
                "UPDATE pool_member SET running = running + 1, next_start = ? WHERE pool = ? AND member = ?",
                (start + self.rules.member_interval, self._pool, member),
            )

    def _count_back(self, member: int, result: MemberResult, faults: int, chance: float) -> None:
        where = (self._pool, member)
        if limited(self.rules):
            self._db.execute(
                "UPDATE pool_member SET running = max(0, running - 1) WHERE pool = ? AND member = ?", where
            )
        if result is MemberResult.FAULT:
            down = proxy_ring.down_for(faults + 1, chance)
            until = self._now + down if down else 0.0
        elif result is MemberResult.GOOD and faults:
            faults, until = -1, 0.0
        else:
            return
        self._db.execute(
            "UPDATE pool_member SET faults = ?, down_until = ? WHERE pool = ? AND member = ?",
            (faults + 1, until, *where),
        )


def limited(rules: PoolRules) -> bool:
    """Has a member limits over all lanes?"""
    return rules.member_interval > 0 or rules.member_concurrency > 0


def write_identity(db: sqlite3.Connection, pace_id: int, identity: Identity, place: int, position: int) -> None:
    db.execute(
        "INSERT OR REPLACE INTO identity"
        " (pace, member, place, due, position, banned_at, quality, uses, good, strikes, slow)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            pace_id,
            identity.member,
            place,
            identity.due,
            position,
            identity.banned_at,
            identity.quality,
            identity.uses,
            identity.good,
            identity.strikes,
            identity.slow,
        ),
    )


def _identity(row: _Row, weight: int) -> Identity:
    member, due, banned_at, quality, uses, good, strikes, slow = row
    return Identity(
        member=member,
        due=due,
        banned_at=banned_at,
        quality=quality,
        uses=uses,
        good=good,
        strikes=strikes,
        slow=slow,
        weight=weight,
    )
