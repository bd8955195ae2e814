"""A lane in one transaction: a job's tasks in it, and the pace that all jobs of the file share."""

import sqlite3
from collections.abc import Sequence

import msgspec

from trotline.adapters.sqlite.schema import FULL, IDLE, PAUSED, READY, RESTING
from trotline.model.job import LaneRules
from trotline.model.proxy_pool import only_member, pool_of
from trotline.model.time import Moment
from trotline.ports.frontier import HORIZON
from trotline.rules import lane_sharing, pace, route_queues
from trotline.rules.pace import Lane

encode_pace = msgspec.msgpack.Encoder().encode
decode_pace = msgspec.msgpack.Decoder(pace.Lane).decode

_COLUMNS = (
    "l.id, l.name, l.pool, l.best, l.turn, l.waiting, l.paused, l.state, l.wake, l.member, l.waits,"
    " p.id, p.running, p.lane"
)
SELECT = f"SELECT {_COLUMNS} FROM lane l JOIN pace p ON p.id = l.pace"

Columns = tuple[int, str, str, int | None, int, int, int, int, float, int, int, int, int, bytes]


class PaceRow:
    """A rate-limit bucket. Queues of one lane share it, so a transaction has it once."""

    __slots__ = ("id", "kept", "pace", "running")

    def __init__(self, pace_id: int, running: int, packed: bytes) -> None:
        self.id = pace_id
        self.running = running
        self.pace = decode_pace(packed)
        self.kept = (running, self.pace)
        """As stored: an unchanged one is not written, and costs no fsync."""

    def count_older(self) -> None:
        running, stored = self.kept
        self.pace = pace.with_older(self.pace, self.running, stored, running)

    def write(self, db: sqlite3.Connection) -> None:
        running, stored = self.kept
        if self.running != running or (self.pace is not stored and self.pace != stored):
            self.kept = (self.running, self.pace)
            db.execute(
                "UPDATE pace SET running = ?, lane = ? WHERE id = ?", (self.running, encode_pace(self.pace), self.id)
            )


class LaneRow:
    """A lane of the transaction's job; of a job with a queue per route, one of its queues."""

    __slots__ = (
        "_written",
        "best",
        "id",
        "member",
        "name",
        "pace_row",
        "paused",
        "pool",
        "queue_name",
        "retry_at",
        "turn",
        "waiting",
        "waits",
    )

    def __init__(self, row: Columns, queues: Sequence[str] = ()) -> None:
        self.id, self.queue_name, key, self.best, self.turn, self.waiting, self.paused = row[:7]
        state, wake, self.member, self.waits = row[7:11]
        self.name = route_queues.lane_of(queues, self.queue_name)
        self.pool = route_queues.lane_of(queues, key)
        self.pace_row = PaceRow(*row[11:])
        self.retry_at = 0.0
        """Not to be served before: only retries without credit are left, it is another job's turn, or no member of its
        proxy pool is free."""
        self._written: tuple[int | Moment | None, ...] = (state, wake, self.best, self.turn, self.waiting, self.waits)

    @property
    def pace_id(self) -> int:
        return self.pace_row.id

    @property
    def pace(self) -> Lane:
        return self.pace_row.pace

    @pace.setter
    def pace(self, changed: Lane) -> None:
        self.pace_row.pace = changed

    @property
    def running(self) -> int:
        """Visits in flight, of all jobs."""
        return self.pace_row.running

    @running.setter
    def running(self, changed: int) -> None:
        self.pace_row.running = changed

    def write(self, db: sqlite3.Connection, job: str, rules: LaneRules, now: Moment) -> None:
        self.pace_row.count_older()
        state = self._state(now, job, rules.robots)
        if self.running < self.pace_row.kept[0]:
            self._wake_others(db, job, rules, now)
        # Last: to wake the others ends every wait for a place, and this job may still have to wait.
        self._wait(state, job, rules)
        line = (*state, self.best, self.turn, self.waiting, self.waits)
        if line != self._written:
            self._written = line
            db.execute(
                "UPDATE lane SET state = ?, wake = ?, best = ?, turn = ?, waiting = ?, waits = ? WHERE id = ?",
                (*line, self.id),
            )
        self.pace_row.write(db)

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
        """Other jobs, or other queues, may wait for a member of the proxy pool, with or without a time."""
        if len(self.pace.claims) > 1 or self.name != self.queue_name:
            db.execute(
                f"UPDATE lane SET state = {READY} WHERE pace = ? AND id <> ? AND state IN ({RESTING}, {FULL})"
                f" AND paused <> {PAUSED} AND best IS NOT NULL",
                (self.pace_id, self.id),
            )

    def _wake_others(self, db: sqlite3.Connection, job: str, rules: LaneRules, now: Moment) -> None:
        """Lanes of other jobs that wait for a place, and the other queues of this one."""
        freed = lane_sharing.freed(self.pace, job, now)
        if freed is self.pace and not rules.queues:
            return
        self.pace = freed
        db.execute(
            f"UPDATE lane SET state = {READY}"
            f" WHERE pace = ? AND id <> ? AND state = {FULL} AND paused <> {PAUSED} AND best IS NOT NULL",
            (self.pace_id, self.id),
        )

    def _state(self, now: Moment, job: str, heeds: bool) -> tuple[int, Moment]:
        if self.paused == PAUSED:
            return FULL, 0.0
        if self.best is None:
            return IDLE, 0.0
        free_at = self.retry_at
        if not self.pace.claims or lane_sharing.claim_of(self.pace, job) is not None:
            free_at = max(free_at, pace.free_at(self.pace, now, self.running, HORIZON, heeds=heeds))
        # Else the other jobs may have ended: the lease that claims it looks, and learns when it may run.
        if free_at == pace.NEVER:
            return FULL, 0.0
        return (READY, 0.0) if free_at <= now else (RESTING, free_at)


def open_lane(
    db: sqlite3.Connection, job: int, queue: str, queues: Sequence[str], bounds: pace.Bounds, now: Moment
) -> Columns:
    """Create the job's lane, or one of its queues."""
    name = route_queues.lane_of(queues, queue)
    found = db.execute("SELECT id, running, lane FROM pace WHERE name = ?", (name,)).fetchone()
    if found is None:
        packed = encode_pace(pace.open_lane(bounds, now))
        cursor = db.execute("INSERT INTO pace (name, lane) VALUES (?, ?)", (name, packed))
        found = (cursor.lastrowid, 0, packed)
    key, member = pool_of(name) + queue[len(name) :], only_member(name)
    cursor = db.execute(
        "INSERT INTO lane (job, name, pace, pool, member) VALUES (?, ?, ?, ?, ?)", (job, queue, found[0], key, member)
    )
    assert cursor.lastrowid is not None  # noqa: S101 - an INSERT always has one
    return (cursor.lastrowid, queue, key, None, 0, 0, 0, IDLE, 0.0, member, 0, *found)
