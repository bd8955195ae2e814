"""A lane in one transaction: a job's tasks in it, and the pace that all jobs of the frontier share.

The row of the pace is the lock of all its lanes and of their rows in `turn`: read after it was locked, it is current.
"""

from typing import NamedTuple

import msgspec

from trotline.adapters.postgres.frontier.schema import PAUSED
from trotline.model.job import LaneRules
from trotline.model.time import Moment
from trotline.ports.frontier import HORIZON
from trotline.rules import lane_sharing, pace

encode_pace = msgspec.msgpack.Encoder().encode
decode_pace = msgspec.msgpack.Decoder(pace.Lane).decode

COLUMNS = "l.id, l.name, l.pool, l.member, l.paused, l.waits, p.id, p.running, p.lane"
LOCK = f"""
SELECT {COLUMNS} FROM lane l JOIN pace p ON p.id = l.pace WHERE l.id = ANY($1::bigint[])
ORDER BY p.id FOR NO KEY UPDATE OF p
"""
"""Locks the paces of these lanes, in one order for all transactions. The columns of `lane` may be older than the lock:
of those only `paused` and `waits` change, and a lease reads them again."""

LOCK_FREE = f"{LOCK} SKIP LOCKED"
"""Never waits: lanes that other transactions have locked are left out."""

Columns = tuple[int, str, str, int, int, int, int, int, bytes]


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


class LaneRow:
    """A lane of the transaction's job."""

    __slots__ = (
        "_kept",
        "best",
        "best_id",
        "exact",
        "freed",
        "id",
        "member",
        "name",
        "pace",
        "pace_id",
        "paused",
        "pool",
        "retry_at",
        "running",
        "served",
        "touched",
        "waiting",
        "waits",
    )

    def __init__(self, row: Columns) -> None:
        self.id, self.name, self.pool, self.member, self.paused, self.waits, self.pace_id, self.running, packed = row
        self.pace = decode_pace(packed)
        self.waiting = 0
        """The change in this transaction, not the number."""
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
        """Other jobs may wait for the place that it released: their lanes are to be tried again."""
        self._kept = (self.running, self.pace, self.waits)

    def settle_state(self, job: str, rules: LaneRules, now: Moment) -> TurnWrite:
        """Decide when it may run next; call once, before the columns are written."""
        ready_at = self._ready_at(now, rules.robots)
        self._wait(ready_at, job, rules, now)
        if self.running < self._kept[0]:
            freed = lane_sharing.freed(self.pace, job, now)
            self.freed = self.freed or freed is not self.pace
            self.pace = freed
        return TurnWrite(
            lane=self.id,
            pool=self.pool,
            pace=self.pace_id,
            level=self.best,
            position=None if self.best_id is None else self.best_id - 1,
            exact=self.exact,
            ready_at=max(ready_at, now),
            served=self.served,
        )

    @property
    def pace_changed(self) -> bool:
        """An unchanged pace is not written."""
        kept = self._kept
        return self.running != kept[0] or (self.pace is not kept[1] and self.pace != kept[1])

    @property
    def lane_changed(self) -> bool:
        return self.waiting != 0 or self.waits != self._kept[2]

    def written(self) -> None:
        """Its changes were written: a later flush of the transaction adds only what comes after."""
        self.waiting = 0
        self.best, self.best_id, self.exact, self.served = None, None, False, None
        self._kept = (self.running, self.pace, self.waits)

    def _wait(self, ready_at: Moment, job: str, rules: LaneRules, now: Moment) -> None:
        """If the job cannot start now, register it for a turn and for free places."""
        if self.paused == PAUSED or ready_at <= now or (ready_at != pace.NEVER and len(self.pace.claims) <= 1):
            return
        bounds = pace.bounds_of(rules.pace(self.name), self.pool)
        self.pace = lane_sharing.waits(self.pace, job, bounds, ready_at)

    def _ready_at(self, now: Moment, heeds: bool) -> Moment:
        if self.paused == PAUSED:
            return pace.NEVER
        return max(self.retry_at, pace.free_at(self.pace, now, self.running, HORIZON, heeds=heeds))
