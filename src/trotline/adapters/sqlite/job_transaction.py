"""The state of one transaction on a job: rows read, and changes to write at its end."""

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable

from trotline.adapters.sqlite import accounts, chains
from trotline.adapters.sqlite.lane_row import SELECT, Columns, LaneRow, PaceRow, open_lane
from trotline.adapters.sqlite.pool_ring import PoolRing
from trotline.adapters.sqlite.schema import CANCELLED, DEAD, DELAYED, LEASED, PAUSED, READY, RESTING, WAITING
from trotline.errors import FrontierGone
from trotline.model.job import LaneRules
from trotline.model.proxy_pool import MemberResult, pool_of
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.rules import pace, route_queues
from trotline.rules.counter_limits import MOST_NAMES, folded

LONGEST_TALLY = 100
Held = tuple[int, int, int, int, int | None]
"""A leased task: id, lane, priority, attempt, member of a proxy pool."""


def gone() -> FrontierGone:
    return FrontierGone("this job was forgotten", hint="See which there are: trotline jobs")


class JobTransaction:
    """Collects the changes of one transaction, and writes counters, lanes and tallies once, at its end."""

    def __init__(self, db: sqlite3.Connection, job: int, name: str, rules: LaneRules, now: Moment) -> None:
        self.db = db
        self.job = job
        self.name = name
        self.rules = rules
        self.now = now
        self.waiting = self.leased = self.done = self.dead = 0
        self.tallies: Counter[str] = Counter()
        self._lanes: dict[int, LaneRow] = {}
        self._names: dict[str, LaneRow] = {}
        self._paces: dict[int, PaceRow] = {}
        self._rings: dict[int, tuple[PoolRing, LaneRow]] = {}
        self._bounds: pace.Bounds | None = None
        """The job's default."""
        self._reopened = False

    # Lanes

    def lane(self, lane_id: int) -> LaneRow:
        row = self._lanes.get(lane_id)
        if row is None:
            row = self._keep(self.db.execute(f"{SELECT} WHERE l.id = ?", (lane_id,)).fetchone())
        return row

    def lane_of(self, task: Task) -> LaneRow:
        """The lane of a task, or its queue in it."""
        return self._queue(route_queues.queue_name(self.rules.queues, task.lane, task.route))

    def lanes_named(self, name: str) -> list[LaneRow]:
        """A lane, or all its queues."""
        return [self._queue(queue) for queue in route_queues.queue_names(self.rules.queues, name)]

    def _queue(self, name: str) -> LaneRow:
        row = self._names.get(name)
        if row is None:
            queues = self.rules.queues
            found = self.db.execute(f"{SELECT} WHERE l.job = ? AND l.name = ?", (self.job, name)).fetchone()
            bounds = self.bounds(route_queues.lane_of(queues, name))
            row = self._keep(found or open_lane(self.db, self.job, name, queues, bounds, self.now))
        return row

    def ready_lanes(self, limit: int, pools: Collection[str]) -> list[LaneRow]:
        """The ready lanes of these pools (and routes), by best priority and then by the time since their last turn."""
        found = []
        for pool in pools:
            found += self.db.execute(
                f"{SELECT} WHERE l.job = ? AND l.pool = ? AND l.state = {READY} ORDER BY l.best, l.turn LIMIT ?",
                (self.job, pool, limit),
            ).fetchall()
        lanes = [self._lanes.get(row[0]) or self._keep(row) for row in found]
        if len(pools) > 1:
            lanes = sorted(lanes, key=lambda lane: (lane.best or 0, lane.turn))[:limit]
        return lanes

    def bounds(self, name: str) -> pace.Bounds:
        """The job's own pace for a lane."""
        if self.rules.lanes or self.rules.default.per_proxy:
            return pace.bounds_of(self.rules.pace(name), pool_of(name))
        if self._bounds is None:
            self._bounds = pace.bounds_of(self.rules.default)
        return self._bounds

    def ring(self, lane: LaneRow) -> PoolRing:
        """The members of the lane's proxy pool."""
        known = self._rings.get(lane.pace_id)
        if known is None:
            ring = PoolRing(self.db, lane.pace_id, lane.pool, self.now, lane.member)
            known = self._rings[lane.pace_id] = (ring, lane)
        return known[0]

    def _keep(self, columns: Columns) -> LaneRow:
        row = LaneRow(columns, self.rules.queues)
        row.pace_row = self._paces.setdefault(row.pace_id, row.pace_row)
        self._lanes[row.id] = row
        self._names[row.queue_name] = row
        return row

    def look_for_best(self, lane: LaneRow) -> None:
        """Update the lane's best priority after tasks were removed."""
        found = self.db.execute(
            f"SELECT priority FROM task WHERE lane = ? AND state = {WAITING} ORDER BY priority, id LIMIT 1", (lane.id,)
        ).fetchone()
        lane.best = found[0] if found else None

    def write_lane(self, lane: LaneRow) -> None:
        """Write the lane now; `flush` writes all that were used."""
        lane.write(self.db, self.name, self.rules, self.now)

    # Tasks

    def has_waiting(self, lane: LaneRow, priority: int) -> None:
        if lane.best is None or priority < lane.best:
            lane.best = priority
        lane.retry_at = 0.0

    def reopen(self) -> None:
        """There is work again: the job is no longer finished."""
        self._reopened = True

    def give_back(self, rows: Iterable[Held], *, attempts: int, may_send: bool = False) -> int:
        """Return leased tasks to their queues, and their members to their rings. `may_send`: see `member_unused`."""
        updates = []
        for task_id, lane_id, priority, attempt, member in rows:
            lane = self.lane(lane_id)
            self.member_unused(lane_id, member, may_send=may_send)
            lane.running -= 1
            lane.waiting += 1
            self.has_waiting(lane, priority)
            updates.append((attempt + attempts, attempts, task_id))
        self.db.executemany(
            f"UPDATE task SET state = {WAITING}, worker = NULL, token = NULL, member = NULL, attempt = ?,"
            " deaths = deaths + ? WHERE id = ?",
            updates,
        )
        self.leased -= len(updates)
        self.waiting += len(updates)
        return len(updates)

    def member_unused(self, lane_id: int, member: int | None, *, may_send: bool = False) -> None:
        """The visit through this member, if the lane has a proxy pool, has no result: its due time stays. `may_send`:
        the worker that had it may still use it, so it rests (A3)."""
        if member is not None:
            ring = self.ring(self.lane(lane_id))
            ring.give_back(member, MemberResult.UNUSED)
            if may_send:
                ring.rest(member)

    def wake_waiting(self) -> None:
        """Lanes that wait for a member that came back are tried again."""
        for ring, lane in self._rings.values():
            if ring.returned:
                ring.returned = False
                lane.member_is_back(self.db)
            for member in ring.freed:
                if accounts.wake(self.db, lane.pool, member, lane.pace_id, self.now):
                    for each in self._lanes.values():
                        each.changed_elsewhere()
            ring.freed.clear()

    def bury_leased(self, task_id: int, lane_id: int, why: str, detail: str = "") -> None:
        """Move a leased task to the graveyard."""
        self.lane(lane_id).running -= 1
        self.leased -= 1
        self.dead += 1
        self.db.execute(
            f"UPDATE task SET state = {DEAD}, why = ?, detail = ?, died_at = ?, worker = NULL, token = NULL,"
            " member = NULL WHERE id = ?",
            (why, detail, self.now, task_id),
        )
        self.tallies[f"dead: {why}"] += 1
        chains.bury_followers(self, task_id, why)

    def bury_waiting(self, lane: LaneRow, why: str) -> int:
        """Bury a lane's waiting tasks, and the steps that wait for them; returns the number of the former."""
        heads = chains.heads_in(self, lane.id)
        cursor = self.db.execute(
            f"UPDATE task SET state = {DEAD}, why = ?, died_at = ? WHERE lane = ? AND state IN ({WAITING}, {DELAYED})",
            (why, self.now, lane.id),
        )
        lane.waiting -= cursor.rowcount
        lane.best = None
        self.waiting -= cursor.rowcount
        self.dead += cursor.rowcount
        if cursor.rowcount:
            self.tallies[f"dead: {why}"] += cursor.rowcount
        for task_id in heads:
            chains.bury_followers(self, task_id, why)
        return cursor.rowcount

    def promote(self, pools: Collection[str]) -> None:
        """Delayed tasks that are due become waiting; rested lanes of these pools become ready."""
        due = self.db.execute(
            f"SELECT id, lane, priority FROM task WHERE job = ? AND state = {DELAYED} AND due <= ? LIMIT 1000",
            (self.job, self.now),
        ).fetchall()
        if due:
            self.db.executemany(f"UPDATE task SET state = {WAITING} WHERE id = ?", [(row[0],) for row in due])
            for _, lane_id, priority in due:
                self.has_waiting(self.lane(lane_id), priority)
            for lane_id in {row[1] for row in due}:
                self.write_lane(self._lanes[lane_id])
        for pool in pools:
            for (lane_id,) in self.db.execute(
                f"SELECT id FROM lane WHERE job = ? AND pool = ? AND state = {RESTING} AND wake <= ? LIMIT 1000",
                (self.job, pool, self.now),
            ).fetchall():
                self.write_lane(self.lane(lane_id))

    def next_wake(self, pools: Collection[str]) -> Moment:
        """When the next task of these pools may be leased."""
        wakes = [
            self.db.execute(
                f"SELECT min(wake) FROM lane WHERE job = ? AND pool = ? AND state = {RESTING}", (self.job, pool)
            ).fetchone()[0]
            for pool in pools
        ]
        [due] = self.db.execute(
            f"SELECT min(due) FROM task WHERE job = ? AND state = {DELAYED}", (self.job,)
        ).fetchone()
        return min(due or pace.NEVER, *(wake or pace.NEVER for wake in wakes), pace.NEVER)

    def leased_by(self, worker: str) -> list[Held]:
        return self.db.execute(
            f"SELECT id, lane, priority, attempt, member FROM task WHERE state = {LEASED} AND worker = ? AND job = ?",
            (worker, self.job),
        ).fetchall()

    def seal(self) -> None:
        self.db.execute("UPDATE job SET sealed = 1 WHERE id = ?", (self.job,))

    # The end

    def flush(self) -> None:
        """Write lanes, counters and tallies."""
        for lane in self._lanes.values():
            self.write_lane(lane)
        for ring, _ in self._rings.values():
            ring.flush()
        self.wake_waiting()
        for name, count in self.tallies.items():
            self._count(name[:LONGEST_TALLY], count)
        if self._reopened:
            self.db.execute("UPDATE job SET announced = 0, finished_at = NULL WHERE id = ?", (self.job,))
        if self.waiting or self.leased or self.done or self.dead:
            written = self.db.execute(
                "UPDATE job SET waiting = waiting + ?, leased = leased + ?, done = done + ?, dead = dead + ?"
                " WHERE id = ?",
                (self.waiting, self.leased, self.done, self.dead, self.job),
            )
            if not written.rowcount:
                raise gone()
        self.close_if_finished()

    def _count(self, name: str, count: int) -> None:
        added = self.db.execute("UPDATE tally SET n = n + ? WHERE job = ? AND name = ?", (count, self.job, name))
        if added.rowcount:
            return
        [[names]] = self.db.execute("SELECT count(*) FROM tally WHERE job = ?", (self.job,))
        self.db.execute(
            "INSERT INTO tally (job, name, n) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
            (self.job, name if names < MOST_NAMES else folded(name), count),
        )

    def close_if_finished(self) -> None:
        closed = self.db.execute(
            "UPDATE job SET finished_at = ? WHERE id = ? AND finished_at IS NULL AND sealed AND waiting + leased = 0",
            (self.now, self.job),
        )
        if closed.rowcount:
            self.release_lanes()

    def release_lanes(self) -> None:
        """The job ended, and its pace no longer applies: lanes of other jobs that wait for it become ready."""
        [alone] = self.db.execute(
            "SELECT NOT EXISTS (SELECT 1 FROM job WHERE id <> ? AND finished_at IS NULL)", (self.job,)
        ).fetchone()
        if not alone:
            self.db.execute(
                f"UPDATE lane SET state = {READY} WHERE state = {RESTING} AND job <> ?"
                " AND pace IN (SELECT pace FROM lane WHERE job = ?)",
                (self.job, self.job),
            )


def living(db: sqlite3.Connection, names: Iterable[str]) -> frozenset[str]:
    """Those of these jobs that are neither ended nor paused."""
    found = db.execute(
        "SELECT name FROM job WHERE name IN (SELECT value FROM json_each(?))"
        f" AND finished_at IS NULL AND paused NOT IN ({CANCELLED}, {PAUSED})",
        (json.dumps(list(names)),),
    )
    return frozenset(name for (name,) in found)
