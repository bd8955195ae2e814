"""The frontier as a Scrapy process uses it: it joins the job, sends results, keeps the heartbeat, and leaves.

All of it runs in the event loop of a thread of its own (`client_thread`): calls wait, and neither a busy callback nor
a slow server may stop the other. Leases are those of `lease_feeder`.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Sequence
from socket import gethostname

from trotline.bridges.scrapy.engine_link import EngineLink
from trotline.bridges.scrapy.held_back import HeldBack
from trotline.bridges.scrapy.imported_filter import ImportedFilter
from trotline.bridges.scrapy.imported_filter import read as read_filter
from trotline.bridges.scrapy.job_end import JobEnd
from trotline.bridges.scrapy.lease_demand import LeaseDemand
from trotline.bridges.scrapy.lease_feeder import LeaseFeeder
from trotline.bridges.scrapy.pools import Pools
from trotline.bridges.scrapy.result_writer import LOOK_EVERY, ResultWriter
from trotline.bridges.scrapy.start_urls import StartUrls
from trotline.commands.queue_job import JobFinder, JobPlan
from trotline.commands.scrapy_job_owner import join
from trotline.errors import FrontierError, FrontierGone, FrontierUnreachable, SettingsError
from trotline.frontier.outage_log import OutageLog
from trotline.frontier.reconnect import until_reachable
from trotline.model.job import Job, Progress, WorkerInfo
from trotline.model.lease import Lease, Settlement
from trotline.model.outcome import Snooze
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.frontier import BEAT
from trotline.processes.supervised_child import worker_name
from trotline.rules import scrapy_redis
from trotline.rules.scrapy_job_owner import SpiderNote

log = logging.getLogger("trotline.scrapy")

_MEASURED: Seconds = 0.5
"""Interval of the measurements,"""
_PROBED: Seconds = 0.1
"""and of those of the lag."""
MISSED = "missed its start time"
NEVER: Seconds = float("inf")


class FrontierClient:
    """Used in the thread's loop; `end`, `feeder.ready`, `unsent` and the `add_*` calls also by Scrapy's thread."""

    def __init__(
        self,
        plan: JobPlan,
        spider: SpiderNote,
        slots: int,
        link: EngineLink,
        *,
        held: HeldBack,
        once: bool = False,
        pools: Pools | None = None,
    ) -> None:
        """`slots`: downloads at a time; `held`: what this process waits for; `once`: if the last job of this name has
        ended, no other is begun; `pools`: of proxies, None without them."""
        self.worker = worker_name(0)
        self.end = JobEnd()
        self.results = ResultWriter(self.worker, held)
        self.demand = LeaseDemand(slots, lambda: link.lag)
        self.feeder = LeaseFeeder(self.worker, link, self.demand, self.results, self.end, pools, held)
        self.notify_at: Seconds = NEVER
        """Scrapy's thread wants to be notified at this time, by the monotonic clock."""
        self.start_urls: StartUrls | None = None
        self._link = link
        self._held = held
        self._spider = spider
        self._once = once
        self._pools = pools
        self._place = plan.frontier
        self._slots = slots
        self._finder = JobFinder(plan)
        self._opened: OpenJob | None = None
        self._outage = OutageLog(log)
        self._ahead: Seconds = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = False

    # Scrapy's side. Deques are shared without a lock: each has one writer and one reader.

    @property
    def unsent(self) -> int:
        return self.results.unsent

    def add_tasks(self, tasks: Sequence[Task]) -> int:
        """Requests without a page: those of `start()`, of extensions, and children of a page that takes long. Returns
        how many of them were not known."""
        with self.end.lock:
            new = {task.fingerprint: task for task in tasks if not self.results.knows(task.fingerprint)}
            if new:
                self.end.epoch += 1
                self.end.ended = False
                self.results.pending.update(new)
                self.results.puts.extend(new.values())
        self.wake()
        return len(new)

    def add_settlement(self, settlement: Settlement, session: bytes | None = None) -> None:
        """`session`: of the lease's account, to be saved before."""
        with self.end.lock:
            self.end.epoch += 1
            if session is None:
                self.results.settlements.append(settlement)
            else:
                self.results.sessions.append((settlement, session))
        self.demand.settled += 1
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
            self.end.over = self.end.ended = self._finder.ended
            if self.end.over:
                return None
        found = await self._finder.find_or_start()
        await self._join(found.opened)
        self._opened, self._ahead = found.opened, found.ahead
        self._to_write = asyncio.Event()
        self.feeder.open(found.opened)
        self._writer = asyncio.create_task(self._or_fail(self._write()))
        feed = self._or_fail(self.feeder.feed(self._send))
        others = [feed, self.feeder.hand_out(self.give_back), self._keep(), self._measure(), self._probe()]
        if self._pools is not None:
            await self._pools.open(self._place)
            others.append(self._pools.keep())
        self._tasks = [self._writer, *(asyncio.create_task(one) for one in others)]
        if self.start_urls is not None:
            self._tasks.append(asyncio.create_task(self._or_fail(self._read_inbox(self.start_urls))))
        return found.opened.job

    async def _join(self, opened: OpenJob) -> None:
        """SettingsError: it is the job of another spider."""
        try:
            others = await join(opened.console, opened.job.id, self._spider)
        except BaseException:
            await self._finder.close()
            raise
        if others:
            log.warning(
                "scrapy.other_arguments %s was started with other values of %s, and goes on with its own requests; "
                "for a job of these arguments give it a name: TROTLINE_JOB = \"%%(name)s-%%(%s)s\"",
                opened.job.id, ", ".join(others), others[0],
            )  # fmt: skip

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
            if announced:
                self.end.dead = (await self.progress()).dead
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

    async def holds_account(self, lease: Lease) -> bool:
        state = await until_reachable(
            lambda: self.opened.frontier.read_session(self.worker, lease), self._outage.report
        )
        return state is not None

    def _wake(self) -> None:
        self._woken = False
        self.feeder.wake()
        if self.results.waiting:
            self._to_write.set()

    async def _write(self) -> None:
        while True:
            await self._to_write.wait()
            self._to_write.clear()
            await self.results.gather(self.feeder.has_to_send, self.demand.gather_for)
            await self._send()

    async def _send(self) -> None:
        if await self.results.write(self.opened.frontier):
            self.demand.sent()
            self.feeder.wake()
            self._link.notify()

    async def _measure(self) -> None:
        while True:
            await asyncio.sleep(_MEASURED)
            self.demand.measure(_MEASURED)
            if time.monotonic() >= self.notify_at or self._held.feed:
                self._link.notify()

    async def _probe(self) -> None:
        while True:
            await asyncio.sleep(_PROBED)
            self._link.probe()

    async def _keep(self) -> None:
        """The heartbeat."""
        while True:
            about = WorkerInfo(
                host=gethostname(),
                process=os.getpid(),
                slots=self._slots,
                held_back=self._held.text,
                pools=self.feeder.served,
            )
            try:
                await self.opened.frontier.beat(self.worker, about)
            except FrontierError as error:
                self._outage.report(error.what)
            await asyncio.sleep(BEAT)

    async def _read_inbox(self, inbox: StartUrls) -> None:
        """When it was idle for as long as its URL says, the job may end."""
        try:
            await inbox.run(self.opened.frontier)
        except FrontierError:
            raise
        except Exception as error:
            log.exception("scrapy.inbox the spider failed to make requests of start URLs")
            raise FrontierError(f"the inbox is not read any more: {type(error).__name__}") from error
        self.seal()

    async def _or_fail(self, work: Awaitable[None]) -> None:
        """The frontier cannot be used any more: the crawl ends."""
        try:
            await work
        except FrontierError as error:
            self.end.fail(gone=isinstance(error, FrontierGone))
            log.error("scrapy.frontier_failed %s %s", error.what, error.hint or "")
            self._link.notify()
