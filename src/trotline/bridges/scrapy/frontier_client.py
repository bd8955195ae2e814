"""The frontier as a Scrapy process uses it: leases ahead of their start, settlements in batches, the heartbeat.

All of it runs in the event loop of a thread of its own (`client_thread`): calls wait, and neither a busy callback nor
a slow server may stop the other.
"""

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from socket import gethostname

import msgspec

from trotline.bridges.scrapy.held_account import LOST
from trotline.bridges.scrapy.imported_filter import ImportedFilter
from trotline.bridges.scrapy.imported_filter import read as read_filter
from trotline.bridges.scrapy.pools import Pools
from trotline.bridges.scrapy.result_writer import BATCH, GATHER, LOOK_EVERY, ResultWriter
from trotline.bridges.scrapy.start_urls import StartUrls
from trotline.commands.queue_job import JobFinder, JobPlan
from trotline.errors import FrontierError, FrontierGone, FrontierUnreachable, SettingsError
from trotline.frontier.outage_log import OutageLog
from trotline.frontier.reconnect import until_reachable
from trotline.model.job import Job, Progress, State, WorkerInfo
from trotline.model.lease import Lease, Settlement
from trotline.model.outcome import Snooze
from trotline.model.proxy_pool import is_account_pool
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.frontier import BEAT, DIRECT
from trotline.processes.supervised_child import worker_name
from trotline.rules import scrapy_redis
from trotline.worker.start_queue import StartQueue

log = logging.getLogger("trotline.scrapy")

LEASE_WAIT: Seconds = 1.0
"""How long one `lease` call may wait for work (long polling)."""
HOLDS_EVERY: Seconds = 10.0
"""Interval at which the frontier gets the list of our leases."""
AHEAD: Seconds = 0.1
"""Leases are fetched for the requests of this time in advance."""
BUSY: Seconds = 0.01
"""A process whose thread hears of things later than this is short of CPU, and not of requests."""
GATHER_BUSY: Seconds = 0.3
"""How long its results wait for more of them."""
ANSWERED_WITHIN: Seconds = 0.02
"""The usual time of a call to a frontier that has requests."""
_PAUSE: Seconds = 1.0
"""Between two tries while the frontier is unreachable."""
_MEASURED: Seconds = 0.5
"""Interval of the measurements."""
MISSED = "missed its start time"
NEVER: Seconds = float("inf")


class Ready(msgspec.Struct, frozen=True):
    """A lease whose start time has come."""

    lease: Lease
    latest: Seconds
    """It may start until then."""
    session: bytes | None = None
    """Of its account, as it is stored; None: it has none."""
    asked_at: Seconds = 0.0


class FrontierClient:
    """Made and used in the thread's loop; `ready`, `ended`, `unsent` and the `add_*` calls also by the reactor."""

    def __init__(
        self,
        plan: JobPlan,
        slots: int,
        busy: Callable[[], int | None],
        notify: Callable[[], None],
        *,
        once: bool = False,
        pools: Pools | None = None,
    ) -> None:
        """`busy`: downloads under way, None while no more may be taken; `notify`: something has changed; `once`: if the
        last job of this name has ended, no other is begun; `pools`: of proxies, None without them."""
        self.worker = worker_name(0)
        self.ready: deque[Ready] = deque()
        """Leases whose start time has come."""
        self.ended = False
        """The job is finished, over all processes; what is added later reopens it."""
        self.why_ended = ""
        """An operator ended it: "cancelled", or the limit that it has reached."""
        self.results = ResultWriter(self.worker)
        self.failure: FrontierError | None = None
        """The frontier cannot be used any more."""
        self.notify_at: Seconds = NEVER
        """The reactor wants to be notified at this time, by the monotonic clock."""
        self.lag: Seconds = 0.0
        """How long Scrapy's thread takes to hear of something; measured by it."""
        self.popped = 0
        """Leases that the reactor took."""
        self.start_urls: StartUrls | None = None
        self.over = False
        """There is no job to take part in."""
        self._once = once
        self._pools = pools
        self._place = plan.frontier
        self._slots = slots
        self._busy = busy
        self._notify = notify
        self._finder = JobFinder(plan)
        self._opened: OpenJob | None = None
        self._epoch = 0
        self._ending = threading.Lock()
        """Nothing is added between the last look at the job and `ended`."""
        self._settled = 0
        self._peak = self._usual = 0
        """The most requests that were under way at once: so far, and in the last interval."""
        self._outage = OutageLog(log)
        self._reported_at = float("-inf")
        self._rate = 0.0
        self._fed_at = float("-inf")
        self._asked_at = float("-inf")
        self._ahead: Seconds = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._reading: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = False

    # The reactor's side. Deques are shared without a lock: each has one writer and one reader.

    @property
    def unsent(self) -> int:
        return self.results.unsent

    def add_tasks(self, tasks: Sequence[Task]) -> None:
        """Requests without a page: those of `start()`, of extensions, and children of a page that takes long."""
        with self._ending:
            self._epoch += 1
            self.ended = False
            self.results.pending.update(task.fingerprint for task in tasks)
            self.results.puts.extend(tasks)
        self.wake()

    def add_settlement(self, settlement: Settlement, session: bytes | None = None) -> None:
        """`session`: of the lease's account, to be saved before."""
        with self._ending:
            self._epoch += 1
            if session is None:
                self.results.settlements.append(settlement)
            else:
                self.results.sessions.append((settlement, session))
        self._settled += 1
        self.wake()

    def give_back(self, lease: Lease, why: str = MISSED) -> None:
        self.add_settlement(Settlement(lease, Snooze(0.0, why)))

    def seal(self) -> None:
        """This process adds no more start requests."""
        self.results.seal_wanted = True
        self.wake()

    def wake(self) -> None:
        """One signal for all that happens until the loop runs."""
        if not self._woken and not self.results.gathering and self._loop is not None:
            self._woken = True
            self._loop.call_soon_threadsafe(self._wake)

    def now(self) -> Moment:
        """The frontier's time."""
        return time.time() + self._ahead

    # The thread's side

    async def open(self) -> Job | None:
        """None: the job has ended before, and there is only one."""
        self._loop = asyncio.get_running_loop()
        if self._once:
            await self._finder.look()
            self.over = self.ended = self._finder.ended
            if self.over:
                return None
        found = await self._finder.find_or_start()
        self._opened, self._ahead = found.opened, found.ahead
        self._starts = StartQueue()
        self._event = asyncio.Event()
        self._to_write = asyncio.Event()
        self._writer = asyncio.create_task(self._write())
        others = [self._feed(), self._hand_out(), self._keep(), self._measure()]
        if self._pools is not None:
            await self._pools.open(self._place)
            others.append(self._pools.keep())
        self._tasks = [self._writer, *(asyncio.create_task(one) for one in others)]
        if self.start_urls is not None:
            self._tasks.append(asyncio.create_task(self._read_inbox(self.start_urls)))
        return found.opened.job

    async def close(self, patience: Seconds) -> bool:
        """Send what is left, give back what did not start. True: the job is finished, and this process says so."""
        until = time.monotonic() + patience
        while self.unsent and self._opened is not None and not self._writer.done() and time.monotonic() < until:
            self._to_write.set()
            await asyncio.sleep(LOOK_EVERY)
        if self.unsent:
            log.error("scrapy.unsent %d results could not be sent: their pages will be visited again", self.unsent)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._opened is None:
            return False
        announced = False
        # If the server is unreachable, our leases return when our heartbeat stops.
        with contextlib.suppress(FrontierUnreachable, FrontierGone):
            await self._opened.frontier.leave(self.worker)
            announced = await self._opened.frontier.announce_finish()
        return announced

    async def disconnect(self) -> None:
        if self._pools is not None:
            await self._pools.close()
        if self._opened is not None:
            await self._finder.close()

    @property
    def opened(self) -> OpenJob:
        assert self._opened is not None, "the client is not open"  # noqa: S101
        return self._opened

    async def imported_filter(self, server: str) -> ImportedFilter | None:
        """What scrapy-redis has seen, if the job was imported; `server` is its Redis."""
        (note,) = await self.opened.console.read_notes([scrapy_redis.NOTE])
        if note is None:
            return None
        if not server:
            raise SettingsError(
                f"{self.opened.job.id} was imported from scrapy-redis, and no setting names the server of its filter",
                hint='REDIS_URL = "redis://HOST:PORT/0"',
            )
        return await read_filter(server, note.data.decode())

    async def progress(self) -> Progress:
        return await self.opened.console.progress()

    def _wake(self) -> None:
        self._woken = False
        self._event.set()
        if self.results.waiting:
            self._to_write.set()

    # Leasing

    async def _feed(self) -> None:
        try:
            while True:
                if not self._wants_more():
                    await self._something(GATHER / 2 if self._under_way() else LEASE_WAIT)
                    continue
                # Before it: their hosts are free again, and their requests can be leased.
                await self._send()
                self._asked_at = time.monotonic()
                await self._lease(min(max(1, self._room()), BATCH))
                self._fed_at = time.monotonic()
        except FrontierError as error:
            self._fail(error)

    def _wants_more(self) -> bool:
        """Seldom and many at a time, as long as this process has enough to do: a call costs the server far more than a
        task of it."""
        room = self._room()
        if room <= 0 or self._starves():
            return room > 0
        return not self._is_busy() and room >= self._slots // 2 and time.monotonic() >= self._fed_at + GATHER

    def _has_to_send(self) -> bool:
        """Not while the answer to the last call for leases is on its way: what finishes meanwhile is few."""
        return self._starves() and time.monotonic() >= self._asked_at + ANSWERED_WITHIN

    def _gather_for(self) -> Seconds:
        return GATHER_BUSY if self._is_busy() else GATHER

    def _is_busy(self) -> bool:
        """Scrapy's thread has more to do than it can: what waits here keeps no slot of it idle."""
        return self.lag > BUSY

    async def _something(self, within: Seconds) -> None:
        self._event.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), within)

    def _under_way(self) -> int:
        """Leases that the reactor has taken and not settled."""
        found = self.popped - self._settled
        self._peak = max(self._peak, found)
        return found

    def _starves(self) -> bool:
        """Fewer requests are under way than there could be."""
        here = self._under_way() + len(self.ready) + len(self._starts)
        return here <= self._usual // (4 if self._is_busy() else 2)

    def _room(self) -> int:
        busy = self._busy()
        if busy is None:
            return 0
        ahead = min(self._slots // 2, int(self._rate * AHEAD))
        return self._slots + ahead - busy - len(self.ready) - len(self._starts)

    async def _lease(self, limit: int) -> None:
        frontier, epoch = self.opened.frontier, self._epoch
        try:
            await self._report_held()
            leases = await frontier.lease(self.worker, limit, LEASE_WAIT, self._served)
            if not leases and not self.unsent and await frontier.finished():
                await self._end(epoch)
                return
        except FrontierUnreachable as error:
            self._outage.report(error.what)
            await asyncio.sleep(_PAUSE)
            return
        self._outage.report("")
        if leases:
            self.ended = False
            self.results.tokens.update(lease.token for lease in leases)
            self._starts.add(leases)

    @property
    def _served(self) -> tuple[str, ...]:
        return DIRECT if self._pools is None else self._pools.served

    async def _end(self, epoch: int) -> None:
        """Nothing is left, unless the reactor has added something in the meantime."""
        progress = await self.progress()
        with self._ending:
            ends = epoch == self._epoch and not self.unsent and not self.ended
            self.ended = self.ended or ends
        if ends:
            self.why_ended = progress.spent or ("cancelled" if progress.state is State.CANCELLED else "")
            self._notify()
        await self._something(LEASE_WAIT)

    async def _report_held(self) -> None:
        """After a failover the server may list leases of ours that we settled."""
        now = asyncio.get_running_loop().time()
        if now - self._reported_at >= HOLDS_EVERY:
            self._reported_at = now
            await self.opened.frontier.holds(self.worker, self.results.tokens)

    async def _hand_out(self) -> None:
        while True:
            lease, latest = await self._starts.next()
            if lease.member and is_account_pool(lease.task.pool):
                self._reading.add(reading := asyncio.create_task(self._with_session(lease, latest)))
                reading.add_done_callback(self._reading.discard)
                continue
            self.ready.append(Ready(lease, latest))
            self._notify()

    async def _with_session(self, lease: Lease, latest: Seconds) -> None:
        asked_at = time.monotonic()
        try:
            state = await self.opened.frontier.read_session(self.worker, lease)
        except FrontierError as error:
            self._outage.report(error.what)
            state = None
        if state is None:
            self.popped += 1
            self.give_back(lease, LOST)
            return
        self.ready.append(Ready(lease, latest, state, asked_at))
        self._notify()

    async def holds_account(self, lease: Lease) -> bool:
        state = await until_reachable(
            lambda: self.opened.frontier.read_session(self.worker, lease), self._outage.report
        )
        return state is not None

    async def _measure(self) -> None:
        while True:
            before = self.popped
            await asyncio.sleep(_MEASURED)
            self._rate = (self.popped - before) / _MEASURED
            self._usual, self._peak = max(self._peak, self._under_way()), 0
            if time.monotonic() >= self.notify_at:
                self._notify()

    async def _read_inbox(self, inbox: StartUrls) -> None:
        """When it was idle for as long as its URL says, the job may end."""
        try:
            await inbox.run(self.opened.frontier)
            self.seal()
        except FrontierError as error:
            self._fail(error)
        except Exception as error:
            log.exception("scrapy.inbox the spider failed to make requests of start URLs")
            self._fail(FrontierError(f"the inbox is not read any more: {type(error).__name__}"))

    # Settling

    async def _write(self) -> None:
        try:
            while True:
                await self._to_write.wait()
                self._to_write.clear()
                await self.results.gather(self._has_to_send, self._gather_for())
                await self._send()
        except FrontierError as error:
            self._fail(error)

    async def _send(self) -> None:
        if await self.results.write(self.opened.frontier):
            self._event.set()
            self._notify()

    # Heartbeat

    async def _keep(self) -> None:
        while True:
            about = WorkerInfo(host=gethostname(), process=os.getpid(), slots=self._slots, pools=self._served)
            try:
                await self.opened.frontier.beat(self.worker, about)
            except FrontierError as error:
                self._outage.report(error.what)
            await asyncio.sleep(BEAT)

    def _fail(self, error: FrontierError) -> None:
        self.failure = error
        self.ended = True
        self.why_ended = "frontier_failed"
        log.error("scrapy.frontier_failed %s %s", error.what, error.hint or "")
        self._notify()
