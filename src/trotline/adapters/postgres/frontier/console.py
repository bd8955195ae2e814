"""The operator's view of one job in PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from trotline.adapters.postgres.frontier import finish_job, job_control, notes, progress, trace_task
from trotline.adapters.postgres.frontier.graveyard import Graveyard
from trotline.adapters.postgres.frontier.in_flight import in_flight
from trotline.adapters.postgres.frontier.job_store import JobStore
from trotline.adapters.postgres.frontier.lane_views import LaneViews
from trotline.adapters.postgres.frontier.revisit_rejects import revisit_rejects
from trotline.adapters.postgres.frontier.revive import revive
from trotline.adapters.postgres.pool import Connection
from trotline.errors import FrontierError
from trotline.model.job import Budget, Grave, InFlight, LanePace, LaneView, Progress, State, TaskStatus, WorkerView
from trotline.model.note import Note
from trotline.model.pace import Pace
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.rules import note_limits, revive_with_other_pool
from trotline.rules.broker_shelves import books_only
from trotline.rules.unreadable_jobs import way_out

T = TypeVar("T")


class PostgresConsole:
    """Look at a job and steer it. Implements the Console port."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._number = store.number
        self.job = store.job
        self._redact = store.job.rules.redact
        self._lanes = LaneViews(store.number, store.job.rules)
        self._graves = Graveyard(store.number, self._redact)

    async def progress(self) -> Progress:
        found = await self._progress()
        if found.sealed and found.finished_at is None and not found.waiting + found.leased:
            # No worker has asked since the last task ended: the operator does.
            await finish_job.close_if_finished(self._store)
            found = await self._progress()
        if self._store.shelves and found.finished_at is None:
            return msgspec.structs.replace(found, missing=books_only(self._store.database.place))
        return found

    async def _progress(self) -> Progress:
        return await self._look(lambda db, now: progress.progress(db, self._number, now, self._redact))

    async def lanes(self, limit: int = 20) -> list[LaneView]:
        return await self._look(lambda db, now: self._lanes.foremost(db, limit, now))

    async def all_lanes(self) -> AsyncIterator[Sequence[LaneView]]:
        leased = await self._look(lambda db, _: self._lanes.leased(db))
        last = ""
        while True:
            page, last = await self._look(partial(self._lanes.page, after=last, leased=leased))
            if page:
                yield page
            if not last:
                return
            # The pages of a large job must not block the event loop for long.
            await asyncio.sleep(0)

    async def lane_views(self, names: Sequence[str]) -> list[LaneView]:
        return await self._look(partial(self._lanes.named, names=names))

    async def waiting_routes(self) -> dict[str, int]:
        return await self._store.read(self._lanes.routes) if self._store.job.rules.queues else {}

    async def steer(self, state: State, lane: str | None = None) -> int:
        if lane is not None and state is State.CANCELLED:
            return await self._store.change(lambda tx: job_control.cancel_lane(tx, lane))
        wanted = job_control.STATES.index(state)
        await self._store.change(lambda tx: job_control.want(tx, lane, wanted))
        return 0

    async def set_budget(self, budget: Budget) -> None:
        await self._store.change(lambda tx: job_control.set_budget(tx, budget), shared=False)

    async def set_high_water(self, waiting: int) -> None:
        """Nothing to do: what waits is on disk."""

    async def set_pace(self, lane: str, pace: Pace | None) -> None:
        await self._store.change(lambda tx: job_control.set_pace(tx, lane, pace))

    async def lane_pace(self, lane: str) -> LanePace | None:
        return await self._look(lambda db, now: job_control.lane_pace(db, lane, now))

    async def workers(self) -> list[WorkerView]:
        return await self._look(lambda db, now: progress.workers(db, self._number, now))

    async def in_flight(self, limit: int = 100) -> list[InFlight]:
        return await self._look(lambda db, _: in_flight(db, self._number, limit, self._redact))

    async def chains(self) -> int:
        return await self._look(lambda db, _: progress.chains(db, self._number))

    async def whereabouts(self, task: Task) -> TaskStatus:
        return await self._look(lambda db, now: trace_task.whereabouts(db, self._number, task, now, self._redact))

    async def graves(self, why: str = "", limit: int = 100, after: str = "") -> list[Grave]:
        return await self._look(lambda db, _: self._graves.page(db, why, limit, after))

    async def reasons(self) -> dict[str, int]:
        return await self._look(lambda db, _: self._graves.reasons(db))

    async def revive(self, ids: Sequence[str] = (), why: str = "", pool: str | None = None) -> int:
        if pool is not None:
            revive_with_other_pool.check(pool)
        # In portions. What dies again meanwhile is not revived again.
        before, risen = await self._look(lambda _, now: _itself(now)), 0
        while count := await self._store.change(lambda tx: revive(tx, ids, why, pool, before)):
            risen += count
        while count := await self._store.change(lambda tx: revisit_rejects(tx, ids, why, before)):
            risen += count
        return risen

    async def read_notes(self, names: Sequence[str]) -> list[Note | None]:
        return await self._look(lambda db, _: notes.read(db, self._number, names))

    async def write_note(self, name: str, data: bytes, version: int) -> bool:
        note_limits.check(name, data)
        # Not durable: after a power failure an older note is read, which its next writer replaces.
        async with self._store.database.transaction(durable=False) as db:
            return await notes.write(db, self._number, name, data, version)

    async def _look(self, query: Callable[[Connection, Moment], Awaitable[T]]) -> T:
        """All statements of a look see one moment, and lock nothing."""

        async def look(db: Connection) -> T:
            try:
                return await query(db, await self._store.database.now(db))
            except (msgspec.MsgspecError, LookupError) as error:
                # Another program wrote something else.
                what, hint = way_out(self.job.id)
                raise FrontierError(what, hint=hint) from error

        return await self._store.read(look)


async def _itself(now: Moment) -> Moment:
    return now
