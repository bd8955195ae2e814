"""The frontier in PostgreSQL."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Sequence

import asyncpg

from trotline.adapters.postgres.frontier import (
    accounts,
    finish_job,
    lease_tasks,
    put_tasks,
    settle_leases,
    workers,
)
from trotline.adapters.postgres.frontier.job_store import JobStore
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.frontier.pick_lanes import Nothing
from trotline.adapters.postgres.frontier.promote_delayed import promote
from trotline.adapters.postgres.frontier.vacuum import Vacuum
from trotline.errors import FrontierError, FrontierUnreachable
from trotline.model.job import WorkerInfo
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds
from trotline.ports.frontier import DIRECT
from trotline.rules import route_queues

HOUSEKEEPING: Seconds = 1.0
"""How often a worker checks for dead ones, and records its own heartbeat;"""
IDLE_HOUSEKEEPING: Seconds = 60.0
"""while there is nothing to do. Those that hold leases are known to a call that finds nothing."""
IDLE_ROW: Seconds = 300.0
"""How long others notify us of new work after a call that waited."""
_AT_ONCE = 1_000
"""Tasks or settlements of one transaction."""
_SUPPLY: Seconds = 1.0
"""How often a lease that waits asks the broker."""
_SHORT: Seconds = 0.1
"""A shorter wait is only a sleep, without a notification."""
_LOCKED: Seconds = 0.01
"""Lanes that others had locked are tried again after about this time,"""
_STILL_LOCKED: Seconds = 0.2
"""later after this, and"""
_LOCKED_FOR: Seconds = 2.0
"""for so long, also by calls that do not wait: what is locked is not empty."""


class PostgresFrontier:
    """Keeps F1 to F21, and C1 to C7, with one transaction per call."""

    def __init__(self, store: JobStore) -> None:
        self.store = store
        self._database = store.database
        self._chance = store.chance
        self._housekept_at = -HOUSEKEEPING
        self._heartbeats: dict[str, Moment] = {}
        self._vacuum = Vacuum(store.database)
        self._quiet = False
        """At the last look no task waited."""
        self._announced: dict[str, Seconds] = {}
        """Worker -> until when others know that it waits, by the clock of this process."""

        self._supply: Callable[[int], Awaitable[bool]] | None = None

    def set_supply(self, supply: Callable[[int], Awaitable[bool]]) -> None:
        """See `ports.books.OpenBooks`."""
        self._supply = supply

    @property
    def generation(self) -> int:
        return self._database.generation

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        for task in tasks:
            if task.fingerprint == 0:
                raise FrontierError(f"{task.url} did not come through the gate: it has no identity")
        answers: list[Admission] = []
        for first in range(0, len(tasks), _AT_ONCE):
            some = tasks[first : first + _AT_ONCE]
            answers += await self.store.change(lambda tx, some=some: put_tasks.admit(tx, some), timed=False)  # type: ignore[misc]
        return answers

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        await self.store.open()
        clock = asyncio.get_running_loop().time
        until = clock() + wait
        pools = route_queues.keys_of(self.store.job.rules.queues, pools, routes)
        wakeups, waiting = self.store.wakeups, self._announced.get(worker, 0.0) > clock() + wait
        while True:
            wakeups.forget()
            await self._housekeep(worker)
            busy = self._supply is not None and await self._supply(limit)
            request = lease_tasks.Request(worker, limit, pools, self._chance.random)
            leases, why = await self._lease(request)
            if leases or why is None:
                wakeups.found()
                self._quiet = False
                await self._stop_waiting(worker)
                return leases
            self._quiet = why.empty
            self._check_supply()
            left = until - clock()
            if (left <= 0 and not busy) or (why.may_be_over and await self.finished()):
                return leases
            if busy:
                continue
            pause = max(0.001, why.wake - why.now)
            if self._supply is not None:
                # What waits at a broker is not announced.
                pause = min(pause, _SUPPLY)
            if why.skipped:
                # They were locked for some time already: a client may have stopped.
                pause = _STILL_LOCKED * (0.5 + self._chance.random())
            if not waiting and min(pause, left) > _SHORT:
                # Then ask again: work may have come before others knew that we wait.
                waiting = True
                await self._wait_for_news(worker, left)
            elif not await wakeups.wait(min(left, pause)) and clock() >= until:
                # The next call looks.
                return []

    def _check_supply(self) -> None:
        """A worker that does not know of the broker would wait for ever."""
        if self.store.shelves and self._supply is None:
            raise FrontierError(
                f"the tasks of job {self.store.job.id} wait at a broker; {self._database.place} keeps only its books",
                hint="Name the frontier that it was started with: --frontier 'amqp://...?books=postgresql://...'",
            )

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        answers: list[Settled] = []
        for first in range(0, len(settlements), _AT_ONCE):
            some = settlements[first : first + _AT_ONCE]
            answers += await self.store.change(
                lambda tx, some=some: settle_leases.settle(tx, worker, some, self._chance),  # type: ignore[misc]
                timed=False,
            )
        return answers

    async def beat(self, worker: str, about: WorkerInfo | None = None) -> None:
        await self.store.open()
        async with self._database.transaction(durable=False) as db:
            await workers.heartbeat(db, self.store.number, worker, await self._database.now(db), about)

    async def leave(self, worker: str, guilty: int | None = None, why: str = "", detail: str = "") -> int:
        count = await self.store.change(lambda tx: workers.leave(tx, worker, guilty, why, detail))
        self._heartbeats.pop(worker, None)
        return count

    async def holds(self, worker: str, tokens: Collection[int]) -> int:
        return await self.store.change(lambda tx: workers.holds(tx, worker, tokens))

    async def session_home(self, session: str, home: str = "") -> str:
        await self.store.open()
        async with self._database.transaction() as db:
            if home:
                await db.execute(
                    "INSERT INTO session (job, name, home) VALUES ($1, $2, $3)"
                    " ON CONFLICT (job, name) DO UPDATE SET home = excluded.home",
                    self.store.number,
                    session,
                    home,
                )
                return home
            found = await db.fetchval(
                "SELECT home FROM session WHERE job = $1 AND name = $2", self.store.number, session
            )
        return str(found or "")

    async def read_session(self, worker: str, lease: Lease) -> bytes | None:
        await self.store.open()
        async with self._database.transaction(durable=False) as db:
            return await accounts.read_session(db, self.store.number, worker, lease)

    async def save_session(self, worker: str, lease: Lease, state: bytes) -> bool:
        await self.store.open()
        # Not durable: the settle that follows is.
        async with self._database.transaction(durable=False) as db:
            return await accounts.save_session(db, self.store.number, worker, lease, state)

    async def seal(self) -> None:
        await finish_job.seal(self.store)

    async def finished(self) -> bool:
        return await finish_job.finished(self.store)

    async def announce_finish(self) -> bool:
        return await finish_job.announce(self.store)

    async def close(self) -> None:
        await self.store.wakeups.close()
        await self._vacuum.close()
        await self._database.close()

    async def _lease(self, request: lease_tasks.Request) -> tuple[list[Lease], Nothing | None]:
        """One batch. Delayed tasks that are due go first, then leases of dead workers; lanes that others have locked
        are tried some times."""
        promoted, rescued, clock, pause = False, False, asyncio.get_running_loop().time, _LOCKED
        until = clock() + _LOCKED_FOR
        while True:
            leases, why = await self._serve(request, ignore_due=promoted)
            if leases or why is None:
                self._vacuum.count(self.store.number, len({lease.task.lane for lease in leases}), len(leases))
                return leases, why
            if why.due and not promoted:
                await self.store.change(promote, wake=False)
                promoted = True
            elif why.death <= why.now and not rescued:
                await self._rescue()
                rescued = True
            elif why.skipped and clock() < until:
                await asyncio.sleep(pause * (0.5 + self._chance.random()))
                pause = min(2 * pause, _STILL_LOCKED)
            else:
                return leases, why

    async def _serve(self, request: lease_tasks.Request, *, ignore_due: bool) -> tuple[list[Lease], Nothing | None]:
        async def step(tx: JobTransaction) -> tuple[list[Lease], Nothing | None]:
            return await lease_tasks.serve(tx, request, ignore_due=ignore_due)

        # Not durable: after a crash the task just waits again. Not shared: what is leased is not ended.
        return await self.store.change(step, durable=False, shared=False, wake=False, timed=False)

    async def _housekeep(self, worker: str) -> None:
        """Leasing counts as a heartbeat; recorded at most once a second."""
        now, every = self._elapsed(), IDLE_HOUSEKEEPING if self._quiet else HOUSEKEEPING
        if now - self._heartbeats.get(worker, -every) >= every:
            await self.beat(worker)
            self._heartbeats[worker] = now
        if now - self._housekept_at >= every:
            self._housekept_at = now
            await self._rescue()

    async def _rescue(self) -> None:
        try:
            await workers.rescue(self.store)
        except FrontierUnreachable as error:
            # A client that stopped may have a lane locked, for some seconds: others can be leased meanwhile.
            if not isinstance(error.__cause__, asyncpg.LockNotAvailableError):
                raise

    def _elapsed(self) -> Moment:
        given = self._database.given_now
        return asyncio.get_running_loop().time() if given is None else given()

    async def _wait_for_news(self, worker: str, left: Seconds) -> None:
        """From now on others notify us of new work."""
        await self.store.wakeups.listen(self.store.number, _SHORT)
        async with self._database.transaction(durable=False) as db:
            await db.execute(
                "INSERT INTO idle (job, worker, until) VALUES ($1, $2, $3)"
                " ON CONFLICT (job, worker) DO UPDATE SET until = excluded.until",
                self.store.number,
                worker,
                await self._database.now(db) + left + IDLE_ROW,
            )
        self._announced[worker] = asyncio.get_running_loop().time() + left + IDLE_ROW

    async def _stop_waiting(self, worker: str) -> None:
        if self._announced.pop(worker, None) is None:
            return
        # If it fails the row stays until its time is over: that costs some notifications, an error would cost leases.
        with contextlib.suppress(FrontierError):
            async with self._database.transaction(durable=False) as db:
                await db.execute("DELETE FROM idle WHERE job = $1 AND worker = $2", self.store.number, worker)
