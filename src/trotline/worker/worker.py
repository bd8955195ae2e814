"""A worker: leases tasks, visits pages in concurrent slots, and commits the results."""

import asyncio
import contextlib
import logging
import traceback
from collections.abc import Sequence
from typing import Any

from trotline.errors import FrontierError, FrontierFileFails, FrontierGone, FrontierUnreachable
from trotline.frontier.outage_log import OutageLog
from trotline.model.lease import Lease
from trotline.model.time import Seconds
from trotline.model.verdict import Kind
from trotline.model.work_stats import WorkStats
from trotline.ports.frontier import DIRECT
from trotline.rules import redaction, storage_patience
from trotline.spider import hook_calls
from trotline.spider.hooks import WorkerHandle
from trotline.spider.spider import Spider
from trotline.worker.commit import Committer
from trotline.worker.dependencies import WorkerParts
from trotline.worker.finished_visit import (
    MISSED_START,
    RATE_LIMITED,
    STOPPING,
    FinishedVisit,
    buried_for_defect,
    returned,
)
from trotline.worker.retry_status import RetryStatus
from trotline.worker.start_queue import StartQueue
from trotline.worker.visit import Visitor
from trotline.worker.worker_settings import WorkerPolicy

log = logging.getLogger("trotline.worker")

LEASE_WAIT: Seconds = 1.0
"""How long one `lease` call may wait for work (long polling);"""
IDLE_WAIT: Seconds = 15.0
"""of a worker that has nothing to do: twice as long each time, up to this."""
GATHER: Seconds = 0.005
"""A free slot waits this long for others, so that one call leases for all of them."""
ASK_AGAIN = 6
"""Of so many calls that waited in vain, two are followed by the question whether the job is finished."""
HOLDS_EVERY: Seconds = 10.0
"""Interval at which the frontier gets the list of our leases;"""
HOLDS_NONE_EVERY: Seconds = 120.0
"""and the news that there are none."""
AHEAD: Seconds = 0.1
"""Prefetch: leases are requested this long before slots become free."""

LEAST_TO_STORE: Seconds = 3.0
"""After a stop, for results of visits that took the whole grace time;"""
LEAVE_WITHIN: Seconds = 1.5
"""then for the return of leases. Together less than the 5 s after which the supervisor kills the process."""


class Worker:
    """Visits pages of one job until it is finished, `stop` is called, or `max_pages` is reached."""

    def __init__(self, name: str, spider: Spider, parts: WorkerParts, policy: WorkerPolicy) -> None:
        self.name = name
        self._hooks = spider.hooks
        self._parts = parts
        self._policy = policy
        self._visitor = Visitor(spider, parts, name)
        self._routes_that_bury = frozenset(one.name for one in spider.routes.values() if one.buries_dropped)
        self._held: set[int] = set()
        """Tokens of unsettled leases."""
        self._generation = 0
        self._held_reported_at = float("-inf")
        self._reported_held = True
        """Were there any in the last list?"""
        self._committer = Committer(name, parts, policy, self._held)
        self._stopping = asyncio.Event()
        self._stopped_at: Seconds = 0.0
        self._slot_free = asyncio.Event()
        self._busy = 0
        self._leased = 0
        self._finished_visits = 0
        self._rate = 0.0
        self._wait = LEASE_WAIT
        """Of the next `lease` call that waits; longer than LEASE_WAIT: there was nothing to do."""
        self._in_vain = 0
        """Calls in a row that waited as long as they may. A frontier ends the wait when the job is finished, or is
        asked now and then."""
        self._asking = False
        """A `lease` call without a wait is under way, or about to be."""
        self._unreachable = ""
        self._outage = OutageLog(log)
        self._deadline = storage_patience.RetryDeadline(policy.storage_patience)
        self._retry_status = RetryStatus()

    @property
    def pools(self) -> tuple[str, ...]:
        """The proxy pools whose tasks it takes, now: their file may change. "" are direct tasks."""
        return self._parts.ways.pools if self._parts.ways is not None else DIRECT

    @property
    def held_back(self) -> str:
        return self._committer.held_back or self._unreachable or self._waits_for()

    def _waits_for(self) -> str:
        """The next retry: of any task if the worker is idle, of a seed in any case."""
        if not self._retry_status:
            return ""
        idle = not self._busy and not len(self._start_queue)
        return self._retry_status.text(asyncio.get_running_loop().time(), idle=idle)

    @property
    def stats(self) -> WorkStats:
        return self._parts.meter.stats()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Graceful shutdown: stop leasing, finish visits in flight within the grace time, return the other leases."""
        if not self.stopping:
            self._stopped_at = asyncio.get_running_loop().time()
        self._stopping.set()

    async def run(self) -> None:
        """Also runs the hooks of the spider: `on_start` before the first page, `on_finish` after the last is stored."""
        if not (self._hooks.on_start or self._hooks.on_finish):
            return await self._run()
        await hook_calls.on_start(self._hooks.on_start, WorkerHandle(self._parts.job, self.name))
        ended = "failed"
        try:
            await self._run()
            ended = "finished" if await self._has_finished_job() else "stopped"
        finally:
            await hook_calls.on_finish(self._hooks.on_finish, WorkerHandle(self._parts.job, self.name, ended))

    async def _has_finished_job(self) -> bool:
        """A frontier also ends its workers at a limit, and when the job is cancelled: pages are left then."""
        if self.stopping or self._parts.console is None:
            return not self.stopping and await self._finished()
        try:
            return (await self._parts.console.progress()).finished_at is not None
        except FrontierError:
            return False

    async def _run(self) -> None:
        self._start_queue = StartQueue()
        self._parts.meter.begin()
        committing = asyncio.create_task(self._committer.run())
        feeding = asyncio.create_task(self._feed())
        helpers = [asyncio.create_task(self._slot()) for _ in range(self._policy.slots)]
        helpers += [feeding, asyncio.create_task(self._measure()), asyncio.create_task(self._stop_feeding(feeding))]
        try:
            # A committer that ends before it was closed has failed: nothing can be stored any more.
            await asyncio.wait([feeding, committing], return_when=asyncio.FIRST_COMPLETED)
            if committing.done():
                committing.result()
            if not feeding.cancelled():
                feeding.result()
            await self._finish()
            await _end(helpers)
            self._committer.close()
            await self._store_the_rest(committing)
        finally:
            await _end([*helpers, committing])
        # If the server is unreachable, it returns our leases when our heartbeat stops.
        with contextlib.suppress(FrontierUnreachable, TimeoutError):
            async with asyncio.timeout(LEAVE_WITHIN if self.stopping else None):
                await self._parts.frontier.leave(self.name)

    async def _store_the_rest(self, committing: "asyncio.Task[None]") -> None:
        """After a stop not longer than the grace time: a sink or a frontier that is unreachable may stay so for hours.
        What is not settled then is visited again."""
        waiting = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([committing, waiting], return_when=asyncio.FIRST_COMPLETED)
        await _end([waiting])
        if not committing.done():
            left = self._stopped_at + self._policy.grace - asyncio.get_running_loop().time()
            await asyncio.wait([committing], timeout=max(LEAST_TO_STORE, left))
        if committing.done():
            committing.result()
        else:
            log.warning("stopped.unstored %s", self._committer.error, extra={"event": "stopped.unstored"})

    async def _stop_feeding(self, feeding: "asyncio.Task[None]") -> None:
        await self._stopping.wait()
        feeding.cancel()

    async def _finish(self) -> None:
        """Wait for the visits in flight; after a stop for at most the grace time."""
        idle = asyncio.create_task(self._idle())
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([idle, stopping], return_when=asyncio.FIRST_COMPLETED)
        if self._stopping.is_set():
            for lease in self._start_queue.clear():
                # At once, and not at the end: visits in flight may take the whole grace time.
                self._committer.add(returned(lease, STOPPING))
            self._slot_free.set()
            await asyncio.wait([idle], timeout=self._policy.grace)
        await _end([idle, stopping])

    async def _idle(self) -> None:
        while self._busy or len(self._start_queue):
            self._slot_free.clear()
            await self._slot_free.wait()

    # Leasing

    async def _feed(self) -> None:
        while not self.stopping and ((budget := self._budget()) > 0 or self._busy or len(self._start_queue)):
            await self._committer.room.wait()
            room = min(budget, self._room())
            if room <= 0:
                # Also at `max_pages`: a lease that misses its start time does not count, and is replaced.
                self._slot_free.clear()
                await self._slot_free.wait()
                continue
            self._asking = True
            if room < self._policy.slots // 4:
                await asyncio.sleep(GATHER)
                room = min(budget, self._room())
            await self._report_held()
            leases = await self._lease_or_starve(min(room, self._policy.batch))
            if not leases and self._in_vain % ASK_AGAIN < 2 and await self._finished():
                return
            self._leased += len(leases)
            self._held.update(lease.token for lease in leases)
            self._start_queue.add(leases)

    async def _lease_or_starve(self, limit: int) -> list[Lease]:
        leases = await self._lease(limit, 0.0) if self._wait == LEASE_WAIT else []
        self._asking = False
        if leases:
            self._in_vain = 0
            return leases
        clock = asyncio.get_running_loop().time
        self._committer.starve(True)
        try:
            since = clock()
            leases = await self._lease(limit, self._wait)
            idle = not leases and not self._busy and not len(self._start_queue) and not self._held
            self._in_vain = self._in_vain + 1 if idle and clock() - since >= self._wait else 0
            self._wait = min(IDLE_WAIT, 2 * self._wait) if self._in_vain else LEASE_WAIT
            return leases
        finally:
            self._committer.starve(False)

    async def _lease(self, limit: int, wait: Seconds) -> list[Lease]:
        try:
            leases = await self._parts.frontier.lease(self.name, limit, wait, self.pools, self._policy.routes or None)
        except FrontierGone:
            raise
        except FrontierError as error:
            self._outage.report(error.what)
            self._unreachable = f"frontier is unreachable: {error.what}{self._ends_in(error)}"
            await asyncio.sleep(1.0 + self._parts.chance.random())
            return []
        self._unreachable = ""
        self._outage.report("")
        self._deadline.renew()
        if self._generation != self._parts.frontier.generation:
            # The server may have lost tasks: pages that link to them must not be filtered by the old cache.
            self._generation = self._parts.frontier.generation
            self._parts.gate.forget()
            # It may also list leases as ours that we have settled: until we say so, their pages are in no queue.
            self._held_reported_at = float("-inf")
        return leases

    def _ends_in(self, error: FrontierError) -> str:
        """The time until the run ends for this error, for the progress line; raises it when the time is up."""
        if not isinstance(error, FrontierFileFails):
            return ""
        left = self._deadline.left(asyncio.get_running_loop().time())
        if not left:
            raise FrontierFileFails(
                storage_patience.expired(error.what, self._deadline.longest), hint=error.hint
            ) from error
        return f"; {storage_patience.countdown(left)}"

    async def _report_held(self) -> None:
        """After a failover the server may have lost our last settles, and still list those leases as ours."""
        now = asyncio.get_running_loop().time()
        if now - self._held_reported_at < (HOLDS_EVERY if self._held or self._reported_held else HOLDS_NONE_EVERY):
            return
        self._held_reported_at, self._reported_held = now, bool(self._held)
        # The `lease` call that follows reports the error.
        with contextlib.suppress(FrontierUnreachable):
            await self._parts.frontier.holds(self.name, self._held)

    async def _finished(self) -> bool:
        try:
            return await self._parts.frontier.finished()
        except FrontierError:
            return False

    def _budget(self) -> int:
        if self._policy.max_pages is None:
            return self._policy.batch
        return self._policy.max_pages - self._leased

    def _room(self) -> int:
        """Free slots, and slots that will be free when the leases arrive."""
        ahead = self._policy.prefetch
        if ahead is None:
            ahead = min(self._policy.slots // 2, int(self._rate * AHEAD))
        return self._policy.slots + ahead - self._busy - len(self._start_queue)

    async def _measure(self) -> None:
        """Visits per second, for the prefetch; the lag of the event loop, and what idle slots wait for."""
        meter = self._parts.meter
        while True:
            before, pause = self._finished_visits, meter.next_sample()
            await asyncio.sleep(pause)
            self._rate = (self._finished_visits - before) / pause
            meter.sample(
                pause,
                slots=self._policy.slots,
                ready=len(self._start_queue),
                cause=self._idle_cause(),
            )

    def _idle_cause(self) -> str:
        if not self._committer.room.is_set():
            return "sink"
        return "frontier" if self._asking or self._unreachable else "no_lease"

    # Visiting

    async def _slot(self) -> None:
        clock, meter = asyncio.get_running_loop().time, self._parts.meter
        while True:
            lease, latest = await self._start_queue.next()
            self._busy += 1
            meter.visit_begins()
            try:
                if clock() > latest:
                    self._leased -= 1
                    visit = returned(lease, MISSED_START)
                else:
                    visit = await self._visit(lease)
                if lease.task.route in self._routes_that_bury:
                    visit = visit.dead_if_dropped()
                self._retry_status.note(visit, clock())
                self._committer.add(visit)
                if visit.feedback is not None and visit.feedback.kind is Kind.THROTTLED:
                    self._let_rest(lease.task.lane)
            finally:
                meter.visit_ends()
                self._busy -= 1
                self._finished_visits += 1
                self._slot_free.set()

    def _let_rest(self, lane: str) -> None:
        """Rate limited (429): return the lane's leases that did not start."""
        for lease in self._start_queue.take(lane):
            self._leased -= 1
            self._committer.add(returned(lease, RATE_LIMITED))

    async def _visit(self, lease: Lease) -> FinishedVisit:
        try:
            return await self._visitor.visit(lease)
        except Exception as error:
            # A bug in Trotline: the slot goes on, and the page is buried.
            log.error(
                "visit.failed %s\n%s",
                redaction.url(lease.task.url),
                redaction.text(traceback.format_exc(), about=lease.task),
            )
            return buried_for_defect(lease, error)


async def _end(tasks: "Sequence[asyncio.Task[Any]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
