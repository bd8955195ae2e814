"""The operator's view of one job in a frontier file."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Sequence

from trotline.adapters.sqlite import budgets, chains, job_control, notes, trace_task, workers
from trotline.adapters.sqlite.in_flight import in_flight
from trotline.adapters.sqlite.job_file import JobFile
from trotline.adapters.sqlite.job_transaction import gone
from trotline.adapters.sqlite.lane_views import LaneViews
from trotline.adapters.sqlite.revive import fingerprint_of, prefix_pattern, revive
from trotline.adapters.sqlite.schema import DEAD, DELAYED
from trotline.model.job import Budget, Grave, InFlight, LanePace, LaneView, Progress, State, TaskStatus, WorkerView
from trotline.model.note import Note
from trotline.model.pace import Pace
from trotline.model.task import Task
from trotline.rules import grave_redaction, note_limits, redaction, revive_with_other_pool
from trotline.rules.chain_failures import shown_counts
from trotline.rules.counter_limits import NOT_KEPT, bad_record, bounded


class SqliteConsole:
    """Look at a job and steer it. Implements the Console port."""

    def __init__(self, file: JobFile) -> None:
        self._file = file
        self._number = file.number
        self.job = file.job
        self._lanes = LaneViews(file.number, file.job.rules)

    async def progress(self) -> Progress:
        return await self._file.read(self._progress)

    async def lanes(self, limit: int = 20) -> list[LaneView]:
        return await self._file.read(lambda db: self._lanes.foremost(db, limit, self._file.now()))

    async def all_lanes(self) -> AsyncIterator[Sequence[LaneView]]:
        leased = await self._file.read(self._lanes.leased)
        page, last = await self._lane_page("", leased)
        while page or last:
            yield page
            if not last:
                return
            # The pages of a large job must not block the event loop for long.
            await asyncio.sleep(0)
            page, last = await self._lane_page(last, leased)

    async def _lane_page(self, after: str, leased: dict[int, int]) -> tuple[list[LaneView], str]:
        return await self._file.read(lambda db: self._lanes.page(db, after, leased, self._file.now()))

    async def lane_views(self, names: Sequence[str]) -> list[LaneView]:
        return await self._file.read(lambda db: self._lanes.named(db, names, self._file.now()))

    async def waiting_routes(self) -> dict[str, int]:
        return await self._file.read(self._lanes.routes) if self.job.rules.queues else {}

    async def steer(self, state: State, lane: str | None = None) -> int:
        if lane is not None and state is State.CANCELLED:
            return await self._file.change(lambda tx: job_control.cancel_lane(tx, lane))
        await self._file.change(lambda tx: job_control.want(tx, lane, job_control.STATES.index(state)))
        return 0

    async def set_budget(self, budget: Budget) -> None:
        await self._file.change(lambda tx: budgets.write(tx, budget))

    async def set_high_water(self, waiting: int) -> None:
        """Nothing to do: what waits is on disk."""

    async def set_pace(self, lane: str, pace: Pace | None) -> None:
        await self._file.change(lambda tx: job_control.set_pace(tx, lane, pace))

    async def lane_pace(self, lane: str) -> LanePace | None:
        return await self._file.read(lambda db: job_control.lane_pace(db, lane, self._file.now()))

    async def workers(self) -> list[WorkerView]:
        return await self._file.read(lambda db: workers.views(db, self._number, self._file.now()))

    async def in_flight(self, limit: int = 100) -> list[InFlight]:
        return await self._file.read(lambda db: in_flight(db, self._number, limit, self.job.rules.redact))

    async def chains(self) -> int:
        return await self._file.read(lambda db: chains.count(db, self._number))

    async def whereabouts(self, task: Task) -> TaskStatus:
        return await self._file.read(
            lambda db: trace_task.whereabouts(db, self._number, task, self._file.now(), self.job.rules.redact)
        )

    async def graves(self, why: str = "", limit: int = 100, after: str = "") -> list[Grave]:
        return await self._file.read(lambda db: self._graves(db, why, limit, after))

    async def reasons(self) -> dict[str, int]:
        return await self._file.read(self._reasons)

    async def revive(self, ids: Sequence[str] = (), why: str = "", pool: str | None = None) -> int:
        if pool is not None:
            revive_with_other_pool.check(pool)
        return await self._file.change(lambda tx: revive(tx, ids, why, pool))

    async def read_notes(self, names: Sequence[str]) -> list[Note | None]:
        return await self._file.read(lambda db: notes.read(db, self._number, names))

    async def write_note(self, name: str, data: bytes, version: int) -> bool:
        note_limits.check(name, data)
        # Not durable: after a power failure an older note is read, which its next writer replaces.
        return await self._file.db.write(lambda db: notes.write(db, self._number, name, data, version), durable=False)

    def _progress(self, db: sqlite3.Connection) -> Progress:
        row = db.execute(
            "SELECT waiting, leased, done, dead, started_at, sealed, finished_at, paused FROM job WHERE id = ?",
            (self._number,),
        ).fetchone()
        if row is None:
            raise gone()
        waiting, leased, done, dead, started_at, sealed, finished_at, wanted = row
        now = self._file.now()
        delayed, last_due = db.execute(
            f"SELECT count(*), max(due) FROM task WHERE job = ? AND state = {DELAYED} AND due > ?", (self._number, now)
        ).fetchone()
        tallies = dict(db.execute("SELECT name, n FROM tally WHERE job = ?", (self._number,)))
        examples = dict(db.execute("SELECT name, url FROM example WHERE job = ?", (self._number,)))
        return Progress(
            waiting=waiting,
            leased=leased,
            done=done,
            dead=dead,
            delayed=delayed,
            due_in=last_due - now if delayed else 0.0,
            tallies=tallies,
            examples={name: redaction.url(url, self.job.rules.redact) for name, url in examples.items()},
            started_at=started_at,
            now=now,
            sealed=bool(sealed),
            finished_at=finished_at,
            state=job_control.STATES[wanted],
            budget=budgets.read(db, self._number),
        )

    def _graves(self, db: sqlite3.Connection, why: str, limit: int, after: str) -> list[Grave]:
        tasks = self._task_graves(db, why, limit, after) if not after.startswith("r") else []
        if len(tasks) >= limit:
            return tasks
        return tasks + self._record_graves(db, why, limit - len(tasks), after)

    def _task_graves(self, db: sqlite3.Connection, why: str, limit: int, after: str) -> list[Grave]:
        since: tuple[float, int] = (0.0, 0)
        if after:
            found = db.execute(
                f"SELECT died_at, id FROM task WHERE job = ? AND state = {DEAD} AND fingerprint = ?",
                (self._number, fingerprint_of(after)),
            ).fetchone()
            since = found or since
        rows = db.execute(
            "SELECT fingerprint, body, why, detail, attempt, died_at FROM task"
            f" WHERE job = ? AND state = {DEAD} AND why LIKE ? ESCAPE '\\' AND (died_at, id) > (?, ?)"
            " ORDER BY died_at, id LIMIT ?",
            (self._number, prefix_pattern(why), *since, limit),
        ).fetchall()
        return [self._shown(grave_redaction.task_grave(*row)) for row in rows]

    def _record_graves(self, db: sqlite3.Connection, why: str, limit: int, after: str) -> list[Grave]:
        since = int(after[1:]) if after.startswith("r") and after[1:].isdecimal() else 0
        rows = db.execute(
            "SELECT id, url, route, why, kind, data, seen_at FROM reject"
            " WHERE job = ? AND id > ? AND 'bad record: ' || why LIKE ? ESCAPE '\\' ORDER BY id LIMIT ?",
            (self._number, since, prefix_pattern(why), limit),
        ).fetchall()
        found = (
            Grave(id=f"r{number}", url=url, route=route, why=f"bad record: {why}", detail=kind, died_at=at, record=data)
            for number, url, route, why, kind, data, at in rows
        )
        return list(map(self._shown, found))

    def _shown(self, grave: Grave) -> Grave:
        return grave_redaction.shown(grave, self.job.rules.redact)

    def _reasons(self, db: sqlite3.Connection) -> dict[str, int]:
        reasons = dict(
            db.execute(
                f"SELECT why, count(*) FROM task WHERE job = ? AND state = {DEAD} GROUP BY why ORDER BY 2 DESC",
                (self._number,),
            )
        )
        rejects = Counter(
            {
                bad_record(why): count
                for why, count in db.execute(
                    "SELECT why, count(*) FROM reject WHERE job = ? GROUP BY why", (self._number,)
                )
            }
        )
        for (count,) in db.execute("SELECT n FROM tally WHERE job = ? AND name = ?", (self._number, NOT_KEPT)):
            rejects[bad_record("others")] += count
        return {**shown_counts(bounded(reasons), self.job.rules.redact), **bounded(rejects)}
