"""A lane in one transaction: a job's tasks in it, and the pace that all jobs of the frontier share.

The row of the pace is the lock of all its lanes and of their rows in `turn`: read after it was locked, it is current.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from trotline.adapters.postgres.frontier.schema import PAUSED
from trotline.model.job import LaneRules
from trotline.model.time import Moment
from trotline.ports.frontier import HORIZON
from trotline.rules import lane_sharing, pace, route_queues
from trotline.rules.pace import Lane

encode_pace = msgspec.msgpack.Encoder().encode
decode_pace = msgspec.msgpack.Decoder(pace.Lane).decode

COLUMNS = "l.id, l.name, l.pool, l.member, l.paused, l.waits, p.id, p.running, p.lane, p.ctid"
LOCK = f"""
SELECT {COLUMNS} FROM lane l JOIN pace p ON p.id = l.pace WHERE l.id = ANY($1::bigint[])
ORDER BY p.id FOR NO KEY UPDATE OF p
"""
"""Locks the paces of these lanes, in one order for all transactions. The columns of `lane` may be older than the lock:
of those only `paused` and `waits` change, and a lease reads them again."""

LOCK_FREE = f"{LOCK} SKIP LOCKED"
"""Never waits: lanes that other transactions have locked are left out."""

Place = tuple[int, int]
"""A row's ctid, which it keeps while it is locked, until it is written."""
Columns = tuple[int, str, str, int, int, int, int, int, bytes, Place]


class TurnWrite(NamedTuple):
    """What to write to the lane's row in `turn`."""

    lane: int
    pool: str
    pace: int
    level: int | None
    """The best level of the tasks that were added; if `exact`, of all."""
    position: int | None
    """The tasks of this level that were added have larger ids; if `exact`, all of them."""
    exact: bool
    ready_at: Moment
    served: int | None
    queued: int
    """The change of the number of tasks in the lane's queue."""


class PaceRow:
    """A rate-limit bucket. Queues of one lane share it, so a transaction has it once."""

    __slots__ = ("id", "kept", "pace", "place", "running")

    def __init__(self, pace_id: int, running: int, packed: bytes, place: Place) -> None:
        self.id = pace_id
        self.place: Place | None = place
        """None: it was written, and is found by its id."""
        self.running = running
        self.pace = decode_pace(packed)
        self.kept = (running, self.pace)

    @property
    def changed(self) -> bool:
        """An unchanged one is not written."""
        running, stored = self.kept
        return self.running != running or (self.pace is not stored and self.pace != stored)

    def count_older(self) -> None:
        running, stored = self.kept
        self.pace = pace.with_older(self.pace, self.running, stored, running)

    def written(self) -> None:
        if self.changed:
            self.place = None
        self.kept = (self.running, self.pace)


class LaneRow:
    """A lane of the transaction's job; of a job with a queue per route, one of its queues."""

    __slots__ = (
        "_kept",
        "best",
        "best_id",
        "exact",
        "freed",
        "id",
        "later",
        "member",
        "name",
        "pace_row",
        "paused",
        "pool",
        "queue_name",
        "queued",
        "retry_at",
        "served",
        "touched",
        "waits",
    )

    def __init__(self, row: Columns, queues: Sequence[str] = ()) -> None:
        self.id, self.queue_name, self.pool, self.member, self.paused, self.waits = row[:6]
        self.name = route_queues.lane_of(queues, self.queue_name)
        self.pace_row = PaceRow(*row[6:])
        self.queued = 0
        """The change of the number of tasks in its queue, in this transaction."""
        self.later = 0
        """The same, of those that are delayed or wait for another step."""
        self.best: int | None = None
        """The best level of tasks added in this transaction; with `exact`, of all that wait. None: there are none."""
        self.best_id: int | None = None
        """The first of these tasks; known at the end of the transaction."""
        self.exact = False
        self.served: int | None = None
        """The token of its last lease in this transaction."""
        self.retry_at = 0.0
        """Not to be served before: only retries without credit are left, it is another job's turn, or no member of its
        proxy pool is free."""
        self.touched = True
        """False: nothing about it changed that `turn` depends on."""
        self.freed = False
        """Other jobs, or other queues, may wait for the place that it released: these lanes are to be tried again."""
        self._kept = self.waits

    @property
    def key(self) -> str:
        """What it is looked for by: its pool, and its route if it is a queue."""
        return self.pool + self.queue_name[len(self.name) :]

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

    def settle_state(self, job: str, rules: LaneRules, now: Moment) -> TurnWrite:
        """Decide when it may run next; call once, before the columns are written."""
        self.pace_row.count_older()
        ready_at = self._ready_at(now, job, rules.robots)
        if self.running < self.pace_row.kept[0]:
            freed = lane_sharing.freed(self.pace, job, now)
            self.freed = self.freed or freed is not self.pace or bool(rules.queues)
            self.pace = freed
        # Last: to wake the others ends every wait for a place, and this job may still have to wait.
        self._wait(ready_at, job, rules, now)
        return TurnWrite(
            lane=self.id,
            pool=self.key,
            pace=self.pace_id,
            level=self.best,
            position=None if self.best_id is None else self.best_id - 1,
            exact=self.exact,
            ready_at=max(ready_at, now),
            served=self.served,
            queued=self.queued,
        )

    @property
    def lane_changed(self) -> bool:
        return self.later != 0 or self.waits != self._kept

    def written(self) -> None:
        """Its changes were written: a later flush of the transaction adds only what comes after."""
        self.queued = self.later = 0
        self.best, self.best_id, self.exact, self.served = None, None, False, None
        self._kept = self.waits
        self.pace_row.written()

    def _wait(self, ready_at: Moment, job: str, rules: LaneRules, now: Moment) -> None:
        """If the job cannot start now, register it for a turn and for free places."""
        if self.paused == PAUSED or ready_at <= now or (ready_at != pace.NEVER and len(self.pace.claims) <= 1):
            return
        bounds = pace.bounds_of(rules.pace(self.name), self.pool)
        self.pace = lane_sharing.waits(self.pace, job, bounds, ready_at)

    def _ready_at(self, now: Moment, job: str, heeds: bool) -> Moment:
        if self.paused == PAUSED:
            return pace.NEVER
        if self.pace.claims and lane_sharing.claim_of(self.pace, job) is None:
            # The other jobs may have ended: the lease that claims it looks, and learns when it may run.
            return self.retry_at
        return max(self.retry_at, pace.free_at(self.pace, now, self.running, HORIZON, heeds=heeds))
