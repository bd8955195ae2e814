"""What a Scrapy process sends to the frontier: new requests, and settlements with the requests of their pages."""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from trotline.bridges.scrapy.held_account import LOST
from trotline.bridges.scrapy.held_back import RESULTS, HeldBack
from trotline.errors import FrontierGone, FrontierUnreachable
from trotline.frontier.link_cache import KnownLinks
from trotline.frontier.outage_log import OutageLog
from trotline.frontier.reconnect import until_reachable
from trotline.model.lease import Admission, Settled, Settlement
from trotline.model.outcome import Bury, Snooze
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.ports.frontier import Frontier
from trotline.rules import redaction
from trotline.rules.task_checks import said

log = logging.getLogger("trotline.scrapy")
T = TypeVar("T")

ENOUGH = 64
"""Results that wait for no more."""
LOOK_EVERY: Seconds = 0.01
"""While results are collected."""
BATCH = 500
"""Tasks of one `put`, settlements of one `settle`."""
MANY_SHARED = 100
"""Repeated requests in one `settle` that cost the server more than a call."""
_LONGEST_REASON = 200


class Written(msgspec.Struct):
    """What the frontier answered, for the stats of the process."""

    duplicates: int = 0
    refused: int = 0
    lost: int = 0
    """Settlements of leases that another process has by now: its visit counts, ours changed nothing."""


class ResultWriter:
    """The deques are filled by Scrapy's thread, and emptied in the client's loop."""

    def __init__(self, worker: str, held: HeldBack | None = None) -> None:
        self.puts: deque[Task] = deque()
        self.settlements: deque[Settlement] = deque()
        self.sessions: deque[tuple[Settlement, bytes]] = deque()
        """Settlements that wait until the session of their account is saved."""
        self.seal_wanted = False
        self.gathering = False
        """It looks for more by itself: no signal is needed."""
        self.known = KnownLinks()
        self.pending: set[int] = set()
        """Fingerprints of `puts`. They are sent before every settlement that comes later, so a page that yields one of
        them again needs not to send it, too."""
        self.written = Written()
        self.tokens: set[int] = set()
        """Of unsettled leases."""
        self._worker = worker
        self._sending = 0
        self._settled = 0
        self._outage = OutageLog(log)
        self._held = held or HeldBack()
        self._lock = asyncio.Lock()

    @property
    def unsent(self) -> int:
        return len(self.puts) + len(self.settlements) + len(self.sessions) + self._sending

    @property
    def waiting(self) -> bool:
        return bool(self.puts or self.settlements or self.sessions or self.seal_wanted)

    def knows(self, fingerprint: int) -> bool:
        """The frontier has it, or gets it before every settlement that comes later."""
        return fingerprint in self.known or fingerprint in self.pending

    async def gather(self, starves: Callable[[], bool], within: Seconds) -> None:
        self.gathering = True
        until = time.monotonic() + within
        # Polled: a signal for each result would cost more.
        while len(self.settlements) < ENOUGH and not starves() and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_EVERY)
        self.gathering = False

    async def write(self, frontier: Frontier) -> bool:
        """Send all that is there; waits while the frontier is unreachable. False: there was nothing.

        A page that finishes meanwhile waits for others: alone it would cost the server as much as all of them.
        """
        async with self._lock:
            some = self.waiting
            while self.sessions:
                await self._save(frontier, *self.sessions[0])
                self.sessions.popleft()
            until = self._settled + len(self.settlements)
            while self.puts or self._settled < until:
                await self._write_some(frontier, until - self._settled)
            if self.seal_wanted:
                await self._patiently(frontier.seal)
                self.seal_wanted = False
            return some

    async def _save(self, frontier: Frontier, settlement: Settlement, state: bytes) -> None:
        """Before the settle, which frees the account for its next holder."""
        held = await self._patiently(lambda: frontier.save_session(self._worker, settlement.lease, state))
        self.settlements.append(settlement if held else Settlement(settlement.lease, Snooze(0.0, LOST)))

    async def _write_some(self, frontier: Frontier, most: int) -> None:
        # Tasks first: a settlement may be that of their page.
        tasks = [self.puts.popleft() for _ in range(min(BATCH, len(self.puts)))]
        batch = [] if tasks else [self.settlements.popleft() for _ in range(min(BATCH, most))]
        self._sending = len(tasks) + len(batch)
        self._settled += len(batch)
        try:
            if tasks:
                await self._put(frontier, tasks)
                self.pending.difference_update([task.fingerprint for task in tasks])
            else:
                await self._settle(frontier, batch)
        finally:
            self._sending = 0

    async def _put(self, frontier: Frontier, tasks: list[Task]) -> None:
        generation = frontier.generation
        try:
            answers = await self._patiently(lambda: frontier.put(tasks))
        except (FrontierGone, FrontierUnreachable):
            raise
        except Exception as error:
            if len(tasks) > 1:
                # One that the frontier refuses must not fail the others.
                for one in tasks:
                    await self._put(frontier, [one])
                return
            why = redaction.text(said(error), about=tasks[0])
            log.error("scrapy.not_stored %s is not scheduled: %s", redaction.url(tasks[0].url), why)
            self.written.refused += 1
            return
        self.written.duplicates += answers.count(Admission.DUPLICATE)
        self.written.refused += answers.count(Admission.REFUSED)
        self._remember(frontier, tasks, generation)

    async def _settle(self, frontier: Frontier, batch: list[Settlement]) -> None:
        generation = frontier.generation
        shared = await self._put_shared(frontier, [self._with_unknown(one) for one in batch])
        await self._settle_rest(frontier, [self._with_unknown(one) for one in batch])
        if shared and generation != frontier.generation:
            # A server that forgot its last second may have forgotten them, and not their pages.
            await self._put(frontier, shared)

    async def _settle_rest(self, frontier: Frontier, batch: list[Settlement]) -> None:
        generation = frontier.generation
        try:
            answers = await self._patiently(lambda: frontier.settle(self._worker, batch))
        except (FrontierGone, FrontierUnreachable):
            raise
        except Exception as error:
            await self._settle_alone(frontier, batch, error)
            return
        self.tokens.difference_update(one.lease.token for one in batch)
        for settlement, answer in zip(batch, answers, strict=True):
            if answer is Settled.STALE:
                self.written.lost += 1
            else:
                self._remember(frontier, settlement.children, generation)

    async def _settle_alone(self, frontier: Frontier, batch: list[Settlement], error: Exception) -> None:
        """The frontier refuses one of them: its page is buried, with the reason."""
        if len(batch) > 1:
            for one in batch:
                await self._settle_rest(frontier, [one])
            return
        (refused,) = batch
        self.tokens.discard(refused.lease.token)
        why = redaction.text(said(error), about=refused.lease.task)
        log.error("scrapy.not_settled %s: %s", redaction.url(refused.lease.task.url), why)
        if refused.children or not isinstance(refused.outcome, Bury):
            await self._settle_rest(frontier, [Settlement(refused.lease, Bury(f"not stored: {why[:_LONGEST_REASON]}"))])

    async def _put_shared(self, frontier: Frontier, batch: list[Settlement]) -> list[Task]:
        """Requests that several of these pages have yielded are sent once, before them. To keep them with one page only
        would lose them with its lease."""
        times = Counter(task.fingerprint for one in batch for task in one.children)
        if times.total() - len(times) < MANY_SHARED:
            return []
        shared = {task.fingerprint: task for one in batch for task in one.children if times[task.fingerprint] > 1}
        generation, tasks = frontier.generation, list(shared.values())
        try:
            await self._patiently(lambda: frontier.put(tasks))
        except (FrontierGone, FrontierUnreachable):
            raise
        except Exception:
            # The frontier refuses one of them: it stays with its pages, which are buried with the reason.
            return []
        self._remember(frontier, tasks, generation)
        return tasks

    def _with_unknown(self, settlement: Settlement) -> Settlement:
        """Without the requests that other pages have brought since this one yielded them."""
        some = settlement.children
        left = tuple(task for task in some if task.fingerprint not in self.known)
        return settlement if len(left) == len(some) else msgspec.structs.replace(settlement, children=left)

    def _remember(self, frontier: Frontier, tasks: Sequence[Task], generation: int) -> None:
        """What is admitted is known; unless the server may have lost it."""
        if generation != frontier.generation:
            self.known = KnownLinks()
            return
        for task in tasks:
            self.known.add_fingerprint(task.fingerprint)

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        return await until_reachable(call, self._report)

    def _report(self, why: str) -> None:
        self._outage.report(why)
        self._held.report(RESULTS, f"frontier is unreachable: {why}" if why else "")
