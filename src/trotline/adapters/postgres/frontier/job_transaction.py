"""The state of one transaction on a job: rows read, and changes to write at its end."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from trotline.adapters.postgres.frontier import accounts, chains, shelve_tasks
from trotline.adapters.postgres.frontier.combined_statement import Part
from trotline.adapters.postgres.frontier.errors import gone
from trotline.adapters.postgres.frontier.lane_row import LOCK, LOCK_FREE, Columns, LaneRow, PaceRow
from trotline.adapters.postgres.frontier.load_pool_rings import Back, PoolRings
from trotline.adapters.postgres.frontier.pool_ring import PoolRing
from trotline.adapters.postgres.frontier.schema import CANCELLED, PAUSED
from trotline.adapters.postgres.frontier.storable_text import stored_text
from trotline.adapters.postgres.frontier.task_rows import TASK, Grave, Held, Late, TaskRow
from trotline.adapters.postgres.frontier.write_transaction import write
from trotline.adapters.postgres.pool import Connection
from trotline.model.job import LaneRules
from trotline.model.proxy_pool import MemberResult
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.ports.broker_books import Parcel
from trotline.rules import pace, route_queues

if TYPE_CHECKING:
    from trotline.adapters.postgres.frontier.job_store import JobStore


class JobTransaction:
    """Collects the changes of one transaction; `flush` writes them in one statement.

    Order of locks: leased rows, seen fingerprints, chains, lanes by their pace, proxy pools, workers, tallies, counter.
    """

    def __init__(self, db: Connection, store: "JobStore", now: Moment = 0.0) -> None:
        self.db = db
        self.store = store
        self.job = store.number
        self.name = store.job.id
        self.rules: LaneRules = store.job.rules
        self.now = now
        """The server's time; some calls set it with their first statement."""
        given = store.database.given_now
        self.given_now = None if given is None else given()
        """A clock instead of the server's, for tests."""
        self.waiting = self.leased = self.done = self.dead = self.leases = 0
        self.tallies: Counter[str] = Counter()
        self.worker_ends: dict[str, tuple[int, int]] = {}
        """Worker -> leases that ended well, and those that failed."""
        self.new: list[TaskRow] = []
        self.late: list[Late] = []
        self.chained: list[Late] = []
        self.graves: list[Grave] = []
        self.taken: list[tuple[int, int]] = []
        """Places (ctid) of waiting tasks to delete."""
        self.handed: list[tuple[object, ...]] = []
        """Rows to add to `held`, for `worker`."""
        self.worker = ""
        self.chain_locks: set[int] = set()
        self.more: list[Part] = []
        """Further changes, which are written with these."""
        self.noted: set[str] = set()
        """Names of tallies whose example was written."""
        self.shelved: list[tuple[TaskRow, Task]] = []
        """New tasks that are to wait at a broker."""
        self.made: list[Parcel] = []
        """Their parcels; known after `flush`."""
        self.reopened = False
        self.woke = False
        """Is there work for waiting workers?"""
        self.idle = False
        """Are there such workers? Known after `flush`, if `woke`."""
        self._lanes: dict[int, LaneRow] = {}
        self._names: dict[str, LaneRow] = {}
        self._paces: dict[int, PaceRow] = {}
        self._created: set[int] = set()
        """Lanes that this transaction added."""
        self._rings: PoolRings | None = None

    # Lanes

    async def lock_lanes(self, ids: Iterable[int]) -> None:
        """Lock these lanes (waits for other transactions), for `lane`. All in one call if possible: a later call may
        meet a deadlock, and the transaction is repeated."""
        missing = [lane_id for lane_id in set(ids) if lane_id not in self._lanes]
        if missing:
            for row in await self.store.known.lock(self.db, missing) or await self._lock_unknown(missing):
                self.keep(row)

    async def _lock_unknown(self, ids: Sequence[int]) -> list[Columns]:
        rows = await self.db.fetch(LOCK, ids)
        if len(rows) < len(ids):
            raise gone()
        self.store.known.add(row for row in rows if row[0] not in self._created)
        return [tuple(row) for row in rows]

    async def lock_free(self, ids: Iterable[int]) -> list[int]:
        """Lock those of these lanes that no other transaction has locked; returns them. Never waits."""
        missing = [lane_id for lane_id in set(ids) if lane_id not in self._lanes]
        rows = await self.db.fetch(LOCK_FREE, missing)
        return [self.keep(tuple(row)).id for row in rows]

    async def lock_for(self, tasks: Iterable[Task], ids: Iterable[int] = ()) -> None:
        """The same for the lanes of these tasks, for `lane_of`; creates those that are missing.
        `ids`: lock these, too."""
        await self._lock_named({self._queue_of(task) for task in tasks}, ids)

    async def lock_named(self, lane: str) -> list[LaneRow]:
        """Lock a lane, or all its queues."""
        names = route_queues.queue_names(self.rules.queues, lane)
        await self._lock_named(names)
        return [self._names[stored_text(name)] for name in names]

    def _queue_of(self, task: Task) -> str:
        return route_queues.queue_name(self.rules.queues, task.lane, task.route)

    async def _lock_named(self, names: Iterable[str], ids: Iterable[int] = ()) -> None:
        missing = [name for name in {stored_text(name) for name in names} if name not in self._names]
        numbers, created = await self.store.lane_ids(self.db, missing, self.now)
        self._created.update(created)
        await self.lock_lanes([*ids, *numbers, *created])

    def lane(self, lane_id: int) -> LaneRow:
        """A locked lane."""
        return self._lanes[lane_id]

    def lane_of(self, task: Task) -> LaneRow:
        """The locked lane of a task."""
        return self._names[stored_text(self._queue_of(task))]

    def keep(self, columns: Columns) -> LaneRow:
        row = LaneRow(columns, self.rules.queues)
        row.pace_row = self._paces.setdefault(row.pace_id, row.pace_row)
        self._lanes[row.id] = row
        self._names[row.queue_name] = row
        return row

    @property
    def paces(self) -> Collection[PaceRow]:
        """The paces of all locked lanes."""
        return self._paces.values()

    @property
    def lanes(self) -> Collection[LaneRow]:
        """All locked lanes."""
        return self._lanes.values()

    @property
    def rings(self) -> PoolRings:
        """The proxy pools of the lanes; not before the transaction's time is known."""
        if self._rings is None:
            self._rings = PoolRings(self.db, self.now)
        return self._rings

    def bounds(self, name: str) -> pace.Bounds:
        """The job's own pace for a lane."""
        return self.store.bounds(name)

    async def return_members(self, rows: Iterable[Held]) -> None:
        """Read the members of these leases, whose lanes are locked, in one query, for `ring`."""
        lanes = self._lanes
        await self.rings.for_return(
            Back(lanes[row.lane].pace_id, lanes[row.lane].pool, row.member) for row in rows if row.member is not None
        )

    async def ring(self, lane: LaneRow, member: int) -> PoolRing:
        """The ring of a lane with a proxy pool, of which this member comes back."""
        await self.rings.for_return([Back(lane.pace_id, lane.pool, member)])
        return self.rings.ring(lane.pace_id)

    def _note_new(self) -> None:
        """The best level and the first task of each lane, with the tasks that are added."""
        first: dict[int, tuple[int, int]] = {}
        for row in self.new:
            found = first.get(row.lane)
            if found is None or (row.level, row.id) < found:
                first[row.lane] = (row.level, row.id)
        for lane_id, (level, number) in first.items():
            lane = self._lanes[lane_id]
            if lane.best is None or lane.best_id is None or (level, number) < (lane.best, lane.best_id):
                lane.best, lane.best_id = level, number

    # Tasks

    def queue(self, row: TaskRow, due: Moment = 0.0) -> None:
        """The task waits, or is delayed until it is due. Its lane is locked."""
        lane = self._lanes[row.lane]
        self.waiting += 1
        if due > self.now:
            lane.later += 1
            self.late.append(Late(row, due))
            return
        self.enqueue(row)

    def queue_chained(self, row: TaskRow, due: Moment = 0.0) -> None:
        """The task waits for an earlier step of its chain."""
        self._lanes[row.lane].later += 1
        self.waiting += 1
        self.chained.append(Late(row, due))

    def shelve(self, row: TaskRow, task: Task) -> None:
        """The task waits at a broker (shelve_tasks.py). Its lane is locked."""
        self._lanes[row.lane].later += 1
        self.waiting += 1
        self.shelved.append((row, task))

    def enqueue(self, row: TaskRow) -> None:
        """Add the task to the queue of its lane, which is locked. The caller counts it."""
        lane = self._lanes[row.lane]
        self.new.append(row)
        lane.queued += 1
        lane.retry_at = 0.0
        self.woke = True

    def bury(self, row: TaskRow, why: str, detail: str = "") -> None:
        """The task is dead. The caller counts what it was before."""
        self.graves.append(Grave(row, why, detail, self.now))
        self.dead += 1

    def reopen(self) -> None:
        """There is work again: the job is no longer finished."""
        self.reopened = True

    async def give_back(self, rows: Sequence[Held], *, attempts: int, may_send: bool = False) -> int:
        """Return leased tasks, whose rows in `held` are deleted, to their queues, and their members to their rings.
        `may_send`: see `member_unused`."""
        await self.lock_lanes(row.lane for row in rows)
        await self.return_members(rows)
        for row in rows:
            await self.member_unused(row.lane, row.member, may_send=may_send)
            self._lanes[row.lane].running -= 1
            self.queue(row.row(attempts=attempts, deaths=attempts))
        self.leased -= len(rows)
        return len(rows)

    async def member_unused(self, lane_id: int, member: int | None, *, may_send: bool = False) -> None:
        """The visit through this member, if the lane has a proxy pool, has no result: its due time stays. `may_send`:
        the worker that had it may still use it, so it rests (A3)."""
        if member is not None:
            ring = await self.ring(self._lanes[lane_id], member)
            await ring.give_back(member, MemberResult.UNUSED)
            if may_send:
                ring.rest(member)

    async def bury_leased(self, held: Held, why: str, detail: str = "", *, kills: int = 0) -> None:
        """Move a leased task, whose row in `held` is deleted, to the graveyard."""
        await self.lock_lanes([held.lane])
        self._lanes[held.lane].running -= 1
        self.leased -= 1
        self.bury(held.row(kills=kills), why, detail)
        self.tallies[f"dead: {why}"] += 1
        if held.chain:
            await chains.bury_followers(self, held.task, held.chain, held.body, why)

    async def bury_waiting(self, lane: LaneRow, why: str) -> int:
        """Bury a locked lane's waiting tasks, and the steps that wait for them; returns the number of the former."""
        found = [
            await self.db.fetch(f"DELETE FROM {table}_{self.job} WHERE lane = $1 RETURNING {TASK}", lane.id)
            for table in ("waiting", "late")
        ]
        rows = [TaskRow(*row) for some in found for row in some]
        for row in rows:
            self.bury(row, why)
        lane.queued -= len(found[0])
        lane.later -= len(found[1])
        lane.best, lane.best_id, lane.exact = None, None, True
        self.waiting -= len(rows)
        if rows:
            self.tallies[f"dead: {why}"] += len(rows)
        for row in rows:
            if row.chain:
                await chains.bury_followers(self, row.id, row.chain, row.body, why)
        return len(rows)

    def try_again(self, lanes: Sequence[LaneRow], *, full_only: bool = False) -> None:
        """The lanes of other jobs with the same paces, which wait for a place, a member or a time, are tried again."""
        if not lanes:
            return
        full = " AND ready_at = 'infinity'" if full_only else ""
        # Those of this transaction are written by it: two changes of a row in one statement lose one.
        own = {lane.id for lane in (*lanes, *self._lanes.values()) if lane in lanes or lane.touched}
        self.more.append(
            (
                # An array, and not IN: the lanes are found first, by their paces. Else a plan may begin with all turns
                # of all jobs.
                "UPDATE turn SET ready_at = %s::float8 WHERE lane = ANY(ARRAY"
                "(SELECT id FROM lane WHERE pace = ANY(%s::bigint[])"
                f" AND id <> ALL(%s::bigint[]) AND paused <> {PAUSED})) AND ready_at > %s::float8{full}",
                [self.now, [lane.pace_id for lane in lanes], sorted(own), self.now],
            )
        )
        self.woke = True

    # The end

    async def flush(self) -> None:
        """Write lanes, tasks, counters and tallies. May be called again after more changes."""
        if self._rings is not None:
            await accounts.write_rings(self)
        if self.shelved:
            await shelve_tasks.place(self)
        self._note_new()
        writes = [lane.settle_state(self.name, self.rules, self.now) for lane in self._lanes.values() if lane.touched]
        freed = [lane for lane in self._lanes.values() if lane.freed]
        self.try_again(freed, full_only=True)
        for lane in freed:
            lane.freed = False
        await write(self, writes)

    async def release_lanes(self) -> None:
        """The job ended, and its pace no longer applies: lanes of other jobs that wait for it become ready."""
        others = await self.db.fetchval(
            "SELECT EXISTS (SELECT 1 FROM job WHERE id <> $1 AND finished_at IS NULL)", self.job
        )
        if not others:
            return
        await self.db.execute(
            "UPDATE turn SET ready_at = $2 WHERE ready_at > $2 AND ready_at < 'infinity' AND lane IN"
            " (SELECT id FROM lane WHERE job <> $1 AND pace IN (SELECT pace FROM lane WHERE job = $1))",
            self.job,
            self.now,
        )


async def living(db: Connection, names: Iterable[str]) -> frozenset[str]:
    """Those of these jobs that are neither ended nor paused."""
    rows = await db.fetch(
        f"SELECT name FROM job WHERE name = ANY($1::text[]) AND finished_at IS NULL"
        f" AND paused NOT IN ({CANCELLED}, {PAUSED})",
        list(names),
    )
    return frozenset(row[0] for row in rows)
