"""The members of a proxy pool in one lane, in one transaction: who goes out next, and who came back.

Members stand in order of the moment from which they are due, so those that rest need no place of their own: the rules
are those of `rules/proxy_ring.py`.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from trotline.adapters.sqlite import lane_member_row, member_limits
from trotline.model.proxy_pool import MemberResult, PoolRules, is_account_pool
from trotline.model.time import Moment, Seconds
from trotline.ports.frontier import HORIZON
from trotline.rules import proxy_ring
from trotline.rules.member_choice import (
    AT_HEAD,
    IN_RING,
    OUT,
    UNLIMITED,
    Candidate,
    Choice,
    Limits,
    Move,
    Standing,
    first_free,
)
from trotline.rules.proxy_ring import Identity, LaneRing, Lift, Place

LOOK_FURTHER = 16
"""Members that are read beyond those wanted: some lose their turn."""
ROUNDS = 4
"""How often more of them are read in one lease call."""
POLL: Seconds = 0.1
"""A lane whose due members are all at their limit over all lanes is tried again after this. Not with accounts: their
return wakes it."""
SOON: Seconds = 0.001

encode_ring = msgspec.msgpack.Encoder().encode
decode_ring = msgspec.msgpack.Decoder(LaneRing).decode
decode_rules = msgspec.msgpack.Decoder(PoolRules).decode


class Sent(NamedTuple):
    """A member that goes out."""

    member: int
    start: Moment


class PoolRing:
    """The ring of one lane."""

    def __init__(self, db: sqlite3.Connection, pace_id: int, pool: str, now: Moment, only: int = 0) -> None:
        self._db = db
        self._pace = pace_id
        self._pool = pool
        self._now = now
        self._only = only
        """The one member that visits this lane; 0: any."""
        found = db.execute("SELECT rules FROM pool WHERE name = ?", (pool,)).fetchone()
        self.rules = decode_rules(found[0]) if found else PoolRules()
        self._most = self.rules.member_concurrency or UNLIMITED
        kept = db.execute("SELECT state, position FROM ring WHERE pace = ?", (pace_id,)).fetchone()
        self.state: LaneRing = decode_ring(kept[0]) if kept else LaneRing()
        self._position: int = kept[1] if kept else 0
        self._kept = (self.state, self._position) if kept else None
        self.returned = False
        """A member came back: other jobs may wait for one."""
        self.freed: list[int] = []
        """Accounts that came back: other lanes may wait for them."""
        self.waits = False
        """Does the lane wait for an account that another lane has? Known after `free_at`."""

    def want_gap(self, gap: Seconds) -> None:
        """The interval per member that the job wants."""
        self.state = proxy_ring.wanted_gap(self.state, gap, self._now)

    # Out

    def send(self, starts: list[Moment], interval: Seconds, chance: Callable[[], float]) -> list[Sent]:
        """Members for these starts of the lane, at most one each, in the order of their starts. A start is later than
        reserved if its member is due later."""
        choice = Choice(starts, interval, self.rules, self.state, self._now, self._now + HORIZON)
        sent = [self._moved(choice.offer(each, chance)) for each in self._candidates(lambda: choice.missing)]
        sent += [self._moved(move) for move in choice.second_turns()]
        return [each for each in sent if each is not None]

    def _moved(self, move: Move) -> Sent | None:
        member, limits = move.identity.member, move.candidate.limits
        self._write(move.identity, move.place)
        if move.start is None:
            return None
        member_limits.count_out(self._db, self._pool, member, limits, move.start, self.rules)
        return Sent(member, move.start)

    def free_at(self) -> Moment:
        """When the next member can go out, after `send` found none; NEVER: when one comes back."""
        if self._unseen("1", 1).fetchone():
            return self._now + SOON
        first = min(self._due_at(IN_RING), self._due_at(AT_HEAD))
        return max(first, self._now + POLL) if first <= self._now else first

    def _due_at(self, place: int) -> Moment:
        """When the first of these members is due. Accounts that are due and busy are waited for, without a time."""
        rows = self._db.execute(
            "SELECT i.due, i.banned_at, coalesce(m.running, 0) >= ?, iif(m.last_pace = i.pace, m.yield_until, 0)"
            " FROM identity i LEFT JOIN pool_member m ON m.pool = ? AND m.member = i.member"
            " WHERE i.pace = ? AND i.place = ? ORDER BY i.due, i.position",
            (self._most, self._pool, self._pace, place),
        )
        standings = (Standing(*row) for row in rows)
        free_at, waits = first_free(standings, self._now, HORIZON, waits_without_time=is_account_pool(self._pool))
        self.waits = self.waits or waits
        return free_at

    def _candidates(self, missing: Callable[[], int]) -> Iterator[Candidate]:
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

    def _at_head(self, limit: int) -> Iterable[Candidate | None]:
        return self._due(AT_HEAD, limit)

    def _in_ring(self, limit: int) -> Iterable[Candidate | None]:
        return self._due(IN_RING, limit)

    def _due(self, place: int, limit: int) -> Iterable[Candidate | None]:
        rows = self._db.execute(
            f"SELECT {lane_member_row.COLUMNS}, {member_limits.COLUMNS} FROM identity i"
            " LEFT JOIN pool_member m ON m.pool = ? AND m.member = i.member"
            " WHERE i.pace = ? AND i.place = ? AND i.due <= ? AND (i.banned_at = 0 OR i.due <= ?)"
            " AND (m.running IS NULL OR (m.running < ? AND (m.last_pace <> i.pace OR m.yield_until <= ?)))"
            " ORDER BY i.due, i.position LIMIT ?",
            (self._pool, self._pace, place, self._now + HORIZON, self._now, self._most, self._now, limit),
        ).fetchall()
        for row in rows:
            if row[8] is None:
                # No longer in the pool.
                self._drop(row[0])
                yield None
            else:
                yield Candidate(lane_member_row.read(row[:8], row[8]), Limits(*row[8:]), True, place)

    def _fresh(self, limit: int) -> Iterable[Candidate | None]:
        """Members that have not been in this ring."""
        rows = self._unseen(f"m.seq, m.member, {member_limits.COLUMNS}", limit).fetchall()
        for seq, member, *columns in rows:
            self.state = msgspec.structs.replace(self.state, dealt=seq)
            known = self._db.execute(
                "SELECT 1 FROM identity WHERE pace = ? AND member = ?", (self._pace, member)
            ).fetchone()
            if known:
                # It was removed from the pool and added again: its history holds.
                yield None
            else:
                limits = Limits(*columns)
                identity = Identity(member=member, weight=limits.weight)
                yield Candidate(identity, limits, limits.running < self._most, IN_RING)

    def _unseen(self, columns: str, limit: int) -> sqlite3.Cursor:
        only = (" AND m.member = ?", (self._only,)) if self._only else ("", ())
        return self._db.execute(
            f"SELECT {columns} FROM pool_member m WHERE m.pool = ? AND m.seq > ?{only[0]} ORDER BY m.seq LIMIT ?",
            (self._pool, self.state.dealt, *only[1], limit),
        )

    # Back

    def give_back(self, member: int, result: MemberResult, *, retry_after: Seconds = 0.0, chance: float = 0.0) -> None:
        """The member's visit is over."""
        row = self._db.execute(
            f"SELECT {lane_member_row.COLUMNS}, m.weight, m.faults FROM identity i"
            " LEFT JOIN pool_member m ON m.pool = ? AND m.member = i.member"
            f" WHERE i.pace = ? AND i.member = ? AND i.place = {OUT}",
            (self._pool, self._pace, member),
        ).fetchone()
        if row is None:
            return
        self.returned = True
        old = self.state
        back = proxy_ring.returned(
            lane_member_row.read(row[:8], 0 if row[8] is None else row[8]),
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
        member_limits.count_back(self._db, self._pool, member, self.rules)
        member_limits.count_fault(self._db, self._pool, member, result, row[9] or 0, self._now, chance)
        if is_account_pool(self._pool):
            self.freed.append(member)
        if back.lift is Lift.ONE:
            self._test_a_ban(old)
        elif back.lift is Lift.ALL:
            self._lift("i.banned_at > 0 AND i.banned_at >= ?", (old.tested_since,), old.tested_blocked_at)

    def rest(self, member: int) -> None:
        """Its worker may still send."""
        if self.rules.rest_of_dead > 0:
            member_limits.rest(self._db, self._pool, member, self._now + self.rules.rest_of_dead)

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
            f"SELECT {lane_member_row.COLUMNS} FROM identity i WHERE i.pace = ? AND i.place = {IN_RING} AND {condition}"
            " ORDER BY i.due, i.position",
            (self._pace, *values),
        ).fetchall()
        wanted = proxy_ring.wanted_interval(self.rules, self.state)
        for row in rows:
            self._write(proxy_ring.lifted(lane_member_row.read(row, 255), self._now, wanted, blocked_at), IN_RING)
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
        lane_member_row.write(self._db, self._pace, identity, place, self._position)

    def _drop(self, member: int) -> None:
        self._db.execute("DELETE FROM identity WHERE pace = ? AND member = ?", (self._pace, member))
