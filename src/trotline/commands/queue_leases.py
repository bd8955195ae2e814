"""The leases of a `Queue`: one feeder for all its consumers, the heartbeat, and tasks that were held for too long."""

import asyncio
import contextlib
import logging
import os
import random
from socket import gethostname

from trotline.commands.queue_settle import SettleBatches
from trotline.commands.queue_task import QueueTask, reason
from trotline.errors import FrontierError, FrontierGone, FrontierUnreachable, LeaseLost, TrotlineError
from trotline.frontier.outage_log import OutageLog
from trotline.model.job import WorkerInfo
from trotline.model.lease import Lease, Settled, Settlement
from trotline.model.outcome import Outcome, Snooze
from trotline.model.time import Seconds
from trotline.model.verdict import Kind, Verdict
from trotline.ports.frontier import BEAT, DEAD_AFTER, DIRECT, HORIZON, Frontier
from trotline.rules import redaction, retries
from trotline.worker.start_queue import StartQueue

log = logging.getLogger("trotline.queue")

LEASE_WAIT: Seconds = 1.0
"""How long one `lease` call may wait for work (long polling)."""
HOLDS_EVERY: Seconds = 10.0
"""Interval at which the frontier gets the list of our leases."""
MOST_AT_ONCE = 100
"""Leases of one call."""
_PAUSE: Seconds = 1.0
"""Between two tries while the frontier is unreachable."""
_SPARE: Seconds = 0.2
"""How long a lease is kept for a consumer that comes back: less than the slack of its start."""
MISSED = "missed its start time"
STOPPING = "queue is closing"


class Leases:
    """What one open queue holds. Consumers call `next`; the calls of all of them are answered by one feeder."""

    def __init__(self, worker: str, frontier: Frontier, *, hold: Seconds, chance: random.Random) -> None:
        self.worker = worker
        self._frontier = frontier
        self._hold = hold
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._starts = StartQueue()
        self._held: dict[int, tuple[Lease, Seconds]] = {}
        """Token -> lease, and when it was handed out."""
        self._tokens: set[int] = set()
        """Of all unsettled leases, also of those that wait for their start."""
        self._settles = SettleBatches(worker, frontier)
        self._consumers = 0
        self._wanted = asyncio.Event()
        self._ended = asyncio.Event()
        self._failure: FrontierError | None = None
        self._closed = False
        self._outage = OutageLog(log)
        self._reported_at = float("-inf")
        self._beat_at = self._loop.time()
        self._longest_silence: Seconds = 0.0
        """Between two heartbeats: a blocked event loop sends none."""
        self._giving_back: set[asyncio.Task[None]] = set()
        self._tasks = [asyncio.create_task(self._feed()), asyncio.create_task(self._keep())]

    async def next(self, within: Seconds | None = None) -> Lease | None:
        """The next task, when it may start; None if the job has ended, or none came in time. One that came in time is
        waited for until its start, at most HORIZON."""
        if self._ended.is_set() and self._failure is None and not self._closed:
            # What was added since then has reopened the job.
            self._ended.clear()
            self._tasks[0] = asyncio.create_task(self._feed())
        self._consumers += 1
        self._wanted.set()
        try:
            for longest in (within, HORIZON):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(longest):
                        return await self._next()
                if not len(self._starts):
                    break
            return None
        finally:
            self._consumers -= 1
            self._check_surplus()

    async def _next(self) -> Lease | None:
        while True:
            found = await self._taken_or_ended()
            if found is None:
                if self._failure is not None:
                    raise self._failure
                return None
            lease, latest = found
            if self._loop.time() <= latest:
                self._held[lease.token] = (lease, self._loop.time())
                return lease
            # The next starts of its lane are reserved for others.
            self._give_back([lease], MISSED)
            self._wanted.set()

    async def _taken_or_ended(self) -> tuple[Lease, Seconds] | None:
        taking = asyncio.create_task(self._starts.next())
        ending = asyncio.create_task(self._ended.wait())
        try:
            await asyncio.wait([taking, ending], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            if not taking.done():
                taking.cancel()
            await asyncio.gather(taking, ending, return_exceptions=True)
            if not taking.cancelled() and asyncio.current_task().cancelling():  # type: ignore[union-attr]
                # It arrived together with our cancellation.
                self._give_back([taking.result()[0]], STOPPING)
        return None if taking.cancelled() else taking.result()

    async def settle(self, settlement: Settlement) -> None:
        """LeaseLost: nothing was changed."""
        lease = settlement.lease
        if lease.token not in self._held:
            raise LeaseLost(
                f"{redaction.url(lease.task.url)} is not held by this queue",
                hint="It was settled before, or held for longer than `hold`. Settle each task once, in the queue that "
                "handed it out.",
            )
        lost = False
        until = self._loop.time() + DEAD_AFTER
        while True:
            try:
                answer = await self._settles.settle(settlement)
                break
            except FrontierUnreachable as error:
                # After that time another worker has the task, whatever we try.
                if self._loop.time() >= until:
                    raise
                lost = True
                self._outage.report(error.what)
                await asyncio.sleep(_PAUSE)
        self._outage.report("")
        self._forget(lease)
        if answer is Settled.STALE:
            raise LeaseLost(
                f"{redaction.url(lease.task.url)} is not held by this queue any more: nothing was changed",
                hint=self._why_lost(lost),
            )

    def _why_lost(self, reconnected: bool) -> str:
        if reconnected:
            return (
                "The frontier was unreachable: it was settled before the connection was lost, or another worker has it."
            )
        silence = max(self._longest_silence, self._loop.time() - self._beat_at)
        if silence >= DEAD_AFTER:
            return (
                f"No heartbeat was sent for {silence:.0f} s, as the event loop was blocked; another "
                "worker has it. Call blocking code with asyncio.to_thread(...), or use SyncQueue."
            )
        return "Another worker has it: this one was taken for dead, or its job was changed by an operator."

    async def close(self, error: BaseException | None = None) -> None:
        """Give everything back at once. `error`: of the program, if it has failed; what was handed out to it then
        counts an attempt, all else none."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._giving_back, return_exceptions=True)
        self._ended.set()
        # If the server is unreachable, our leases return when our heartbeat stops.
        with contextlib.suppress(FrontierUnreachable, FrontierGone):
            if error is not None and _is_the_programs(error):
                await self._fail_held(error)
            await self._frontier.leave(self.worker)

    async def _fail_held(self, error: BaseException) -> None:
        held = list(self._held.values())
        for start in range(0, len(held), MOST_AT_ONCE):
            some = [(lease, reason(error, QueueTask(lease, since))) for lease, since in held[start:][:MOST_AT_ONCE]]
            ends = [Settlement(lease, failed(lease, why, Kind.BROKEN, None, self._chance)) for lease, why in some]
            await self._frontier.settle(self.worker, ends)
        if held:
            log.warning(
                "queue.failed the program ended with %s: %d %s in its hands, and counts an attempt",
                type(error).__name__, len(held), "task was" if len(held) == 1 else "tasks were",
            )  # fmt: skip

    # Leasing

    async def _feed(self) -> None:
        try:
            while not self._ended.is_set():
                await self._wanted.wait()
                room = self._consumers - len(self._starts)
                if room <= 0:
                    self._wanted.clear()
                    # A lease that starts later keeps a consumer waiting; a new consumer sets it.
                    continue
                await self._lease(min(room, MOST_AT_ONCE))
        except FrontierError as error:
            # The job is gone, or the store is damaged: the consumers get it.
            self._failure = error
            self._ended.set()

    async def _lease(self, limit: int) -> None:
        try:
            await self._report_held()
            leases = await self._frontier.lease(self.worker, limit, LEASE_WAIT)
            if not leases and await self._frontier.finished():
                self._ended.set()
                return
        except FrontierUnreachable as error:
            self._outage.report(error.what)
            await asyncio.sleep(_PAUSE + self._chance.random())
            return
        self._outage.report("")
        self._tokens.update(lease.token for lease in leases)
        self._starts.add(leases)
        self._check_surplus()

    async def _report_held(self) -> None:
        """After a failover the server may list leases of ours that we settled."""
        now = self._loop.time()
        if now - self._reported_at >= HOLDS_EVERY:
            self._reported_at = now
            await self._frontier.holds(self.worker, self._tokens)

    def _forget(self, lease: Lease) -> None:
        self._held.pop(lease.token, None)
        self._tokens.discard(lease.token)

    def _check_surplus(self) -> None:
        """Leases that no consumer waits for: the next one may come at once, and else others may take them."""
        if len(self._starts) > self._consumers:
            self._loop.call_later(_SPARE, self._give_back_surplus)

    def _give_back_surplus(self) -> None:
        if len(self._starts) > self._consumers and not self._closed:
            self._give_back(self._starts.clear(), STOPPING)
            self._wanted.set()

    def _give_back(self, leases: list[Lease], why: str) -> None:
        if leases:
            task = asyncio.create_task(self._snooze(leases, why))
            self._giving_back.add(task)
            task.add_done_callback(self._giving_back.discard)

    async def _snooze(self, leases: list[Lease], why: str) -> None:
        try:
            await self._frontier.settle(self.worker, [Settlement(lease, Snooze(0.0, why)) for lease in leases])
        except FrontierError as error:
            # `holds` returns them as soon as the server answers.
            self._outage.report(error.what)
        finally:
            self._tokens.difference_update(lease.token for lease in leases)

    # Heartbeat

    async def _keep(self) -> None:
        while True:
            slots = max(1, self._consumers + len(self._held))
            about = WorkerInfo(host=gethostname(), process=os.getpid(), slots=slots, pools=DIRECT)
            try:
                await self._frontier.beat(self.worker, about)
                self._longest_silence = max(self._longest_silence, self._loop.time() - self._beat_at)
                self._beat_at = self._loop.time()
                await self._return_overdue()
            except FrontierError as error:
                self._outage.report(error.what)
            await asyncio.sleep(BEAT)

    async def _return_overdue(self) -> None:
        """A task that was forgotten would keep the job from its end for ever."""
        now = self._loop.time()
        for lease, since in [held for held in self._held.values() if now - held[1] > self._hold]:
            why = f"not settled within {self._hold:.0f} s"
            outcome = failed(lease, why, Kind.BROKEN, None, self._chance)
            await self._frontier.settle(self.worker, [Settlement(lease, outcome)])
            self._forget(lease)
            log.warning("queue.overdue %s was %s, since %.0f s", redaction.url(lease.task.url), why, now - since)


def _is_the_programs(error: BaseException) -> bool:
    """Not one of the frontier, nor an order to stop (KeyboardInterrupt, CancelledError, SystemExit)."""
    if isinstance(error, BaseExceptionGroup):
        _, error = error.split(TrotlineError)  # type: ignore[assignment]
    return isinstance(error, Exception) and not isinstance(error, TrotlineError)


def failed(lease: Lease, why: str, kind: Kind, after: Seconds | None, chance: random.Random) -> Outcome:
    """Retry with backoff; bury when the attempts are spent."""
    return retries.plan(lease.task, Verdict(kind, why, retry_after=after), chance)
