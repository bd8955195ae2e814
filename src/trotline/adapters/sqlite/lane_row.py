"""A lane in one transaction: a job's tasks in it, and the pace that all jobs of the file share."""

import sqlite3

import msgspec

from trotline.adapters.sqlite.schema import FULL, IDLE, PAUSED, READY, RESTING
from trotline.model.job import LaneRules
from trotline.model.proxy_pool import only_member, pool_of
from trotline.model.time import Moment
from trotline.ports.frontier import HORIZON
from trotline.rules import lane_sharing, pace

encode_pace = msgspec.msgpack.Encoder().encode
decode_pace = msgspec.msgpack.Decoder(pace.Lane).decode

_COLUMNS = (
    "l.id, l.name, l.pool, l.best, l.turn, l.waiting, l.paused, l.state, l.wake, l.member, l.waits,"
    " p.id, p.running, p.lane"
)
SELECT = f"SELECT {_COLUMNS} FROM lane l JOIN pace p ON p.id = l.pace"

Columns = tuple[int, str, str, int | None, int, int, int, int, float, int, int, int, int, bytes]


class LaneRow:
    """A lane of the transaction's job."""

    __slots__ = (
        "_kept",
        "_written",
        "best",
        "id",
        "member",
        "name",
        "pace",
        "pace_id",
        "paused",
        "pool",
        "retry_at",
        "running",
        "turn",
        "waiting",
        "waits",
    )

    def __init__(self, row: Columns) -> None:
        self.id, self.name, self.pool, self.best, self.turn, self.waiting, self.paused = row[:7]
        state, wake, self.member, self.waits, self.pace_id, self.running, packed = row[7:]
        self.pace = decode_pace(packed)
        self.retry_at = 0.0
        """Not to be served before: only retries without credit are left, it is another job's turn, or no member of its
        proxy pool is free."""
        self._written: tuple[int | Moment | None, ...] = (state, wake, self.best, self.turn, self.waiting, self.waits)
        self._kept = (self.running, self.pace)
        """As stored: an unchanged lane is not written, and costs no fsync."""

    def write(self, db: sqlite3.Connection, job: str, rules: LaneRules, now: Moment) -> None:
        state = self._state(now, rules.robots)
        self._wait(state, job, rules)
        if self.running < self._kept[0]:
            self._wake_others(db, job, now)
        line = (*state, self.best, self.turn, self.waiting, self.waits)
        if line != self._written:
            self._written = line
            db.execute(
                "UPDATE lane SET state = ?, wake = ?, best = ?, turn = ?, waiting = ?, waits = ? WHERE id = ?",
                (*line, self.id),
            )
        if self.running != self._kept[0] or (self.pace is not self._kept[1] and self.pace != self._kept[1]):
            self._kept = (self.running, self.pace)
            db.execute(
                "UPDATE pace SET running = ?, lane = ? WHERE id = ?",
                (self.running, encode_pace(self.pace), self.pace_id),
            )

    def changed_elsewhere(self) -> None:
        """Its row was written by another statement of the transaction: the next `write` writes it in any case."""
        self._written = ()

    def _wait(self, state: tuple[int, Moment], job: str, rules: LaneRules) -> None:
        """If the job cannot start now, register it for a turn and for free places."""
        if state[0] == RESTING and len(self.pace.claims) > 1:
            free_at = state[1]
        elif state[0] == FULL and self.paused != PAUSED:
            free_at = pace.NEVER
        else:
            return
        self.pace = lane_sharing.waits(self.pace, job, pace.bounds_of(rules.pace(self.name), self.pool), free_at)

    def member_is_back(self, db: sqlite3.Connection) -> None:
        """Other jobs may wait for a member of the proxy pool, with or without a time."""
        if len(self.pace.claims) > 1:
            db.execute(
                f"UPDATE lane SET state = {READY} WHERE pace = ? AND id <> ? AND state IN ({RESTING}, {FULL})"
                f" AND paused <> {PAUSED} AND best IS NOT NULL",
                (self.pace_id, self.id),
            )

    def _wake_others(self, db: sqlite3.Connection, job: str, now: Moment) -> None:
        freed = lane_sharing.freed(self.pace, job, now)
        if freed is self.pace:
            return
        self.pace = freed
        db.execute(
            f"UPDATE lane SET state = {READY}"
            f" WHERE pace = ? AND id <> ? AND state = {FULL} AND paused <> {PAUSED} AND best IS NOT NULL",
            (self.pace_id, self.id),
        )

    def _state(self, now: Moment, heeds: bool) -> tuple[int, Moment]:
        if self.paused == PAUSED:
            return FULL, 0.0
        if self.best is None:
            return IDLE, 0.0
        free_at = max(self.retry_at, pace.free_at(self.pace, now, self.running, HORIZON, heeds=heeds))
        if free_at == pace.NEVER:
            return FULL, 0.0
        return (READY, 0.0) if free_at <= now else (RESTING, free_at)


def open_lane(db: sqlite3.Connection, job: int, name: str, bounds: pace.Bounds, now: Moment) -> Columns:
    """Create the job's lane."""
    found = db.execute("SELECT id, running, lane FROM pace WHERE name = ?", (name,)).fetchone()
    if found is None:
        packed = encode_pace(pace.open_lane(bounds, now))
        cursor = db.execute("INSERT INTO pace (name, lane) VALUES (?, ?)", (name, packed))
        found = (cursor.lastrowid, 0, packed)
    pool, member = pool_of(name), only_member(name)
    cursor = db.execute(
        "INSERT INTO lane (job, name, pace, pool, member) VALUES (?, ?, ?, ?, ?)", (job, name, found[0], pool, member)
    )
    assert cursor.lastrowid is not None  # noqa: S101 - an INSERT always has one
    return (cursor.lastrowid, name, pool, None, 0, 0, 0, IDLE, 0.0, member, 0, *found)
