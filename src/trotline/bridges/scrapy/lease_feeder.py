"""Leases of a Scrapy process: asked for in batches, ahead of their start, and handed out when it has come."""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec

from trotline.bridges.scrapy.engine_link import EngineLink
from trotline.bridges.scrapy.held_account import LOST
from trotline.bridges.scrapy.held_back import LEASES, HeldBack
from trotline.bridges.scrapy.job_end import JobEnd
from trotline.bridges.scrapy.lease_demand import GATHER, LeaseDemand
from trotline.bridges.scrapy.pools import Pools
from trotline.bridges.scrapy.result_writer import BATCH, ResultWriter
from trotline.errors import FrontierError, FrontierUnreachable
from trotline.frontier.outage_log import OutageLog
from trotline.model.lease import Lease
from trotline.model.proxy_pool import is_account_pool
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.frontier import DIRECT
from trotline.worker.start_queue import StartQueue

log = logging.getLogger("trotline.scrapy")

LEASE_WAIT: Seconds = 1.0
"""How long one `lease` call may wait for work (long polling)."""
HOLDS_EVERY: Seconds = 10.0
"""Interval at which the frontier gets the list of our leases."""
_PAUSE: Seconds = 1.0
"""Between two tries while the frontier is unreachable."""


class Ready(msgspec.Struct, frozen=True):
    """A lease whose start time has come."""

    lease: Lease
    latest: Seconds
    """It may start until then."""
    session: bytes | None = None
    """Of its account, as it is stored; None: it has none."""
    asked_at: Seconds = 0.0


class LeaseFeeder:
    """Runs in the client's loop; `ready` is emptied by Scrapy's thread."""

    def __init__(
        self,
        worker: str,
        link: EngineLink,
        demand: LeaseDemand,
        results: ResultWriter,
        end: JobEnd,
        pools: Pools | None,
        held: HeldBack,
    ) -> None:
        self.ready: deque[Ready] = deque()
        """Leases whose start time has come."""
        self._worker = worker
        self._link = link
        self._demand = demand
        self._results = results
        self._end = end
        self._pools = pools
        self._held = held
        self._event = asyncio.Event()
        self._outage = OutageLog(log)
        self._reported_at = float("-inf")
        self._reading: set[asyncio.Task[None]] = set()

    @property
    def served(self) -> tuple[str, ...]:
        return DIRECT if self._pools is None else self._pools.served

    def wake(self) -> None:
        self._event.set()

    def has_to_send(self) -> bool:
        return self._demand.has_to_send(self._here, time.monotonic())

    def open(self, job: OpenJob) -> None:
        """Before the rest, in the loop."""
        self._job = job
        self._starts = StartQueue()

    async def feed(self, send: Callable[[], Awaitable[None]]) -> None:
        """`send`: what there is of results."""
        demand = self._demand
        while True:
            room = self._room()
            if not demand.wants_more(room, self._here, time.monotonic()):
                await self._something(GATHER / 2 if demand.under_way else LEASE_WAIT)
                continue
            # Before it: their hosts are free again, and their requests can be leased.
            await send()
            await self._lease(min(max(1, self._room()), BATCH))

    @property
    def _here(self) -> int:
        return len(self.ready) + len(self._starts)

    def _room(self) -> int:
        downloads = None if self._held.feed else self._link.busy()
        return 0 if downloads is None else self._demand.room(downloads, self._here)

    async def _something(self, within: Seconds) -> None:
        self._event.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), within)

    async def _lease(self, limit: int) -> None:
        frontier, epoch = self._job.frontier, self._end.epoch
        self._demand.asked(time.monotonic())
        try:
            await self._report_held()
            leases = await frontier.lease(self._worker, limit, LEASE_WAIT, self.served)
            self._demand.answered(limit, len(leases), time.monotonic())
            if not leases and not self._results.unsent and await frontier.finished():
                await self._look_at_end(epoch)
                return
        except FrontierUnreachable as error:
            self._outage.report(error.what)
            self._held.report(LEASES, f"frontier is unreachable: {error.what}")
            await asyncio.sleep(_PAUSE)
            return
        self._outage.report("")
        self._held.report(LEASES, "")
        if leases:
            self._end.ended = False
            self._results.tokens.update(lease.token for lease in leases)
            self._starts.add(leases)

    async def _look_at_end(self, epoch: int) -> None:
        """Nothing is left, unless Scrapy's thread has added something in the meantime."""
        if self._end.decide(epoch, self._results.unsent, await self._job.console.progress()):
            self._link.notify()
        await self._something(LEASE_WAIT)

    async def _report_held(self) -> None:
        """After a failover the server may list leases of ours that we settled."""
        now = time.monotonic()
        if now - self._reported_at >= HOLDS_EVERY:
            self._reported_at = now
            await self._job.frontier.holds(self._worker, self._results.tokens)

    async def hand_out(self, give_back: Callable[[Lease, str], None]) -> None:
        while True:
            lease, latest = await self._starts.next()
            if lease.member and is_account_pool(lease.task.pool):
                reading = asyncio.create_task(self._with_session(lease, latest, give_back))
                self._reading.add(reading)
                reading.add_done_callback(self._reading.discard)
                continue
            self.ready.append(Ready(lease, latest))
            self._link.notify()

    async def _with_session(self, lease: Lease, latest: Seconds, give_back: Callable[[Lease, str], None]) -> None:
        asked_at = time.monotonic()
        try:
            state = await self._job.frontier.read_session(self._worker, lease)
        except FrontierError as error:
            self._outage.report(error.what)
            state = None
        if state is None:
            self._demand.popped += 1
            give_back(lease, LOST)
            return
        self.ready.append(Ready(lease, latest, state, asked_at))
        self._link.notify()
