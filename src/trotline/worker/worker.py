"""A worker: leases, slots that visit pages, and a committer behind them."""

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
from trotline.rules import redaction, storage_patience
from trotline.spider.spider import Spider
from trotline.worker.commit import Committer
from trotline.worker.finished_visit import Visit, buried_for_defect
from trotline.worker.last_failure import Setbacks
from trotline.worker.policy import Policy
from trotline.worker.start_queue import Starts
from trotline.worker.tools import Tools
from trotline.worker.visit import Visitor

log = logging.getLogger("trotline.worker")

LEASE_WAIT: Seconds = 1.0
"""How long one call for leases may wait for work."""
GATHER: Seconds = 0.005
"""A free slot waits this long for others, so that one call brings work for all of them."""
HOLDS_EVERY: Seconds = 10.0
"""How often the frontier is told which leases we know of."""
AHEAD: Seconds = 0.1
"""Leases are fetched this much ahead of the slots that will take them."""


class Worker:
    """Visits pages of one job until it is finished, `stop` is called, or `max_pages` is reached."""

    def __init__(self, name: str, spider: Spider, tools: Tools, policy: Policy) -> None:
        self.name = name
        self._tools = tools
        self._policy = policy
        self._visitor = Visitor(spider, tools)
        self._held: set[int] = set()
        """Tokens of the leases that are not settled yet."""
        self._generation = 0
        self._told_held_at = float("-inf")
        self._committer = Committer(name, tools, policy, self._held)
        self._stopping = asyncio.Event()
        self._slot_free = asyncio.Event()
        self._busy = 0
        self._leased = 0
        self._finished_visits = 0
        self._rate = 0.0
        self._away = ""
        self._outage = OutageLog(log)
        self._patience = storage_patience.Patience(policy.storage_patience)
        self._setbacks = Setbacks()

    @property
    def held_back(self) -> str:
        return self._committer.held_back or self._away or self._waits_for()

    def _waits_for(self) -> str:
        """The next try: of anything if nothing else is under way, of a seed in any case."""
        if not self._setbacks:
            return ""
        idle = not self._busy and not len(self._starts)
        return self._setbacks.told(asyncio.get_running_loop().time(), idle=idle)

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Lease no more; finish what is in flight within the grace time; give back the rest."""
        self._stopping.set()

    async def run(self) -> None:
        self._starts = Starts()
        committing = asyncio.create_task(self._committer.run())
        feeding = asyncio.create_task(self._feed())
        helpers = [asyncio.create_task(self._slot()) for _ in range(self._policy.slots)]
        helpers += [feeding, asyncio.create_task(self._measure()), asyncio.create_task(self._stop_feeding(feeding))]
        try:
            # A committer that ends before it was closed has met a defect: nothing could be stored any more.
            await asyncio.wait([feeding, committing], return_when=asyncio.FIRST_COMPLETED)
            if committing.done():
                committing.result()
            if not feeding.cancelled():
                feeding.result()
            await self._finish()
            await _end(helpers)
            self._committer.close()
            await committing
        finally:
            await _end([*helpers, committing])
        # A server that cannot be told takes back what we still hold when it hears nothing more of us.
        with contextlib.suppress(FrontierUnreachable):
            await self._tools.frontier.leave(self.name)

    async def _stop_feeding(self, feeding: "asyncio.Task[None]") -> None:
        await self._stopping.wait()
        feeding.cancel()

    async def _finish(self) -> None:
        """Let the visits in flight end; after a stop only those that do so in time."""
        idle = asyncio.create_task(self._idle())
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([idle, stopping], return_when=asyncio.FIRST_COMPLETED)
        if self._stopping.is_set():
            for lease in self._starts.clear():
                # At once, and not when we leave: what is in flight may take as long as the grace time.
                self._committer.add(self._visitor.handed_back(lease))
            self._slot_free.set()
            await asyncio.wait([idle], timeout=self._policy.grace)
        await _end([idle, stopping])

    async def _idle(self) -> None:
        while self._busy or len(self._starts):
            self._slot_free.clear()
            await self._slot_free.wait()

    # Leasing

    async def _feed(self) -> None:
        while not self.stopping and ((budget := self._budget()) > 0 or self._busy or len(self._starts)):
            await self._committer.room.wait()
            room = min(budget, self._room())
            if room <= 0:
                # Also at the limit: a lease that misses its moment was no page, and another takes its place.
                self._slot_free.clear()
                await self._slot_free.wait()
                continue
            if room < self._policy.slots // 4:
                await asyncio.sleep(GATHER)
                room = min(budget, self._room())
            await self._tell_held()
            leases = await self._lease_or_starve(min(room, self._policy.batch))
            if not leases and await self._finished():
                return
            self._leased += len(leases)
            self._held.update(lease.token for lease in leases)
            self._starts.add(leases)

    async def _lease_or_starve(self, limit: int) -> list[Lease]:
        leases = await self._lease(limit, 0.0)
        if leases:
            return leases
        self._committer.starve(True)
        try:
            return await self._lease(limit, LEASE_WAIT)
        finally:
            self._committer.starve(False)

    async def _lease(self, limit: int, wait: Seconds) -> list[Lease]:
        try:
            leases = await self._tools.frontier.lease(self.name, limit, wait)
        except FrontierGone:
            raise
        except FrontierError as error:
            self._outage.hear(error.what)
            self._away = f"frontier is away: {error.what}{self._ends_in(error)}"
            await asyncio.sleep(1.0 + self._tools.chance.random())
            return []
        self._away = ""
        self._outage.hear("")
        self._patience.renew()
        if self._generation != self._tools.frontier.generation:
            # Before any of these is visited: what leads to what the frontier forgot is among them, sooner or later.
            self._generation = self._tools.frontier.generation
            self._tools.gate.forget()
        return leases

    def _ends_in(self, error: FrontierError) -> str:
        """When the run ends because of it, for the progress line; the error itself if that is now."""
        if not isinstance(error, FrontierFileFails):
            return ""
        left = self._patience.left(asyncio.get_running_loop().time())
        if not left:
            raise FrontierFileFails(
                storage_patience.used_up(error.what, self._patience.longest), hint=error.hint
            ) from error
        return f"; {storage_patience.told(left)}"

    async def _tell_held(self) -> None:
        """A server that lost its last second, or its primary, may think that we hold what we have settled long ago."""
        now = asyncio.get_running_loop().time()
        if now - self._told_held_at < HOLDS_EVERY:
            return
        self._told_held_at = now
        # Whoever cannot be reached now is asked for leases next, and that says what is wrong.
        with contextlib.suppress(FrontierUnreachable):
            await self._tools.frontier.holds(self.name, self._held)

    async def _finished(self) -> bool:
        try:
            return await self._tools.frontier.finished()
        except FrontierError:
            return False

    def _budget(self) -> int:
        if self._policy.max_pages is None:
            return self._policy.batch
        return self._policy.max_pages - self._leased

    def _room(self) -> int:
        """Slots that are free, and those that will be by the time the leases are here."""
        ahead = self._policy.prefetch
        if ahead is None:
            ahead = min(self._policy.slots // 2, int(self._rate * AHEAD))
        return self._policy.slots + ahead - self._busy - len(self._starts)

    async def _measure(self) -> None:
        """How many visits a slot-second brings: what decides how far ahead to lease."""
        while True:
            before = self._finished_visits
            await asyncio.sleep(0.5)
            self._rate = (self._finished_visits - before) / 0.5

    # Visiting

    async def _slot(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            lease, latest = await self._starts.next()
            self._busy += 1
            try:
                if clock() > latest:
                    self._leased -= 1
                    visit = self._visitor.late(lease)
                else:
                    visit = await self._visit(lease)
                self._setbacks.note(visit, clock())
                self._committer.add(visit)
                if visit.news is not None and visit.news.kind is Kind.THROTTLED:
                    self._let_rest(lease.task.lane)
            finally:
                self._busy -= 1
                self._finished_visits += 1
                self._slot_free.set()

    def _let_rest(self, lane: str) -> None:
        """What we have of this lane and have not begun goes back: the frontier lets it rest, and so do we, at once."""
        for lease in self._starts.take(lane):
            self._leased -= 1
            self._committer.add(self._visitor.resting(lease))

    async def _visit(self, lease: Lease) -> Visit:
        try:
            return await self._visitor.visit(lease)
        except Exception as error:
            # A defect of ours: it must not take the slot down, nor the page's fate with it.
            story = redaction.text(traceback.format_exc(), about=lease.task)
            log.error("visit.failed %s\n%s", redaction.url(lease.task.url), story)
            return buried_for_defect(lease, error)


async def _end(tasks: "Sequence[asyncio.Task[Any]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
