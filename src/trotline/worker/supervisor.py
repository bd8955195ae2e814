"""The supervisor of a worker's child processes: page content is hostile, and native parsers do crash.

It sends the children's heartbeats, so a busy event loop never loses its leases. It kills a child that parses one page
for longer than the parse budget, restarts children that die, and returns their leases at once: only the suspected page
counts a kill. Without a suspect every lease of a hung child counts a death, so that a crash loop ends. Once a page has
hung, a child that parses slowly is relieved: a replacement starts before it is known whether it hangs. A child that has
grown close to its memory limit is stopped gracefully and replaced.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from trotline.errors import FrontierError, FrontierGone
from trotline.frontier.outage_log import OutageLog
from trotline.model.job import WorkerInfo
from trotline.model.limits import MIB
from trotline.model.time import Seconds
from trotline.model.work_stats import WorkStats, total
from trotline.ports.frontier import BEAT, Frontier
from trotline.rules import crash_reasons
from trotline.rules.crash_reasons import FAILED, FINISHED, GAVE_UP, STOPPED
from trotline.worker.awake_clock import AwakeClock
from trotline.worker.parsing_marker import Marker

log = logging.getLogger("trotline.supervisor")

WATCH: Seconds = 0.5
"""Interval at which the children's markers are read."""
LOOP_SILENCE: Seconds = 5.0
"""A child whose event loop has been blocked for the parse budget and this hangs outside of any page."""
RELIEF: Seconds = 1.0
"""Once a page has hung: a child that parses one page for this long (or half of the parse budget) is relieved."""
GROWN = 0.75
"""Share of its memory limit at which a child is replaced."""
GROWN_UP: Seconds = 60.0
"""Younger children are not replaced: a child that is large at once has a large spider, and so would its replacement."""
CRASHES = 8
"""Circuit breaker: after this many deaths within CRASH_WINDOW without a suspected page the supervisor gives up."""
CRASH_WINDOW: Seconds = 30.0


class Child(Protocol):
    """A running child process."""

    name: str
    marker: Marker
    status: str
    """Its last status line: why it is held back, or empty."""
    pools: tuple[str, ...]
    """The proxy pools that it serves; empty: not known yet."""
    proxies_trouble: str
    """Why its proxies file cannot be used now; empty if it can."""
    stats: WorkStats | None
    """Its last figures; None: not known yet."""

    async def wait(self) -> int: ...

    def resident(self) -> int:
        """Resident memory in bytes; 0 if unknown."""
        ...

    def stop(self) -> None:
        """Ask it to finish (SIGTERM)."""
        ...

    def kill(self) -> None: ...


class SupervisorStats(msgspec.Struct):
    """Counters."""

    restarts: int = 0
    unexplained: int = 0
    """Children that died without a suspected page."""
    hung: int = 0
    grown: int = 0
    """Children replaced for their memory."""
    relieved: int = 0
    """Children replaced while they parsed a page."""


class Supervisor:
    """Runs `count` children until they are finished or `stop` is called."""

    def __init__(
        self,
        spawn: Callable[[int], Awaitable[Child]],
        frontier: Frontier,
        *,
        count: int,
        parse: Seconds,
        grace: Seconds,
        memory: int = 1024 * MIB,
        evidence: str = "",
        about: Callable[[Child], WorkerInfo | None] = lambda child: None,
        relieve: bool = True,
    ) -> None:
        self._spawn = spawn
        self._frontier = frontier
        self._outage = OutageLog(log, "beat.failed")
        self._count = count
        self._parse = parse
        self._grace = grace
        self._memory = memory
        self._evidence = evidence
        """Path of a saved body, with {} for its name."""
        self._about = about
        """Details of a child for operators, sent with its heartbeat."""
        self._relieve = relieve
        """May a replacement start before the old child has ended?"""
        self._children: dict[str, Child] = {}
        self._endings: set[asyncio.Task[int]] = set()
        self._relieved: dict[str, asyncio.Event] = {}
        self._stopping = asyncio.Event()
        self._hurried = False
        self._hung: set[str] = set()
        self._born: dict[str, Seconds] = {}
        self._asked: set[str] = set()
        """Children that were asked to finish. A second SIGTERM would end them at once."""
        self._crashes: deque[Seconds] = deque(maxlen=CRASHES)
        self.stats = SupervisorStats()
        self.failure = ""
        """Why the supervisor gave up; empty if it did not."""
        self.advice = ""
        """What to do next, unless `failure` contains it."""
        self.ended_stats = WorkStats()
        """The sums of the children that have ended."""

    @property
    def children(self) -> list[Child]:
        return list(self._children.values())

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Children finish what is in flight within the grace time; a second call ends them at once."""
        self._hurried = self._stopping.is_set()
        for child in self.children:
            child.kill() if self._hurried else self._ask_to_finish(child)
        self._stopping.set()

    async def run(self) -> None:
        watching = asyncio.create_task(self._watch())
        beating = asyncio.create_task(self._beat())
        try:
            await asyncio.gather(*(self._keep(place) for place in range(self._count)))
            await asyncio.gather(*self._endings)
        finally:
            rest = [watching, beating, *self._endings]
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

    async def _keep(self, place: int) -> None:
        """Keep one child running. A relieved child may still run while its replacement does."""
        while not self._stopping.is_set():
            child = await self._spawn(place)
            self._children[child.name] = child
            self._born[child.name] = _now()
            relieved = self._relieved[child.name] = asyncio.Event()
            if self._stopping.is_set():
                self._ask_to_finish(child)
            await self._beat_for(child)
            ending = asyncio.create_task(self._wait_for(child))
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)
            waiting = asyncio.ensure_future(relieved.wait())
            await asyncio.wait([ending, waiting], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if ending.done() and ending.result() == FINISHED:
                return

    async def _wait_for(self, child: Child) -> int:
        code = await self._exit_code(child)
        if child.stats is not None:
            self.ended_stats = total((self.ended_stats, child.stats))
        del self._children[child.name], self._born[child.name], self._relieved[child.name]
        if code not in (FINISHED, STOPPED):
            await self._handle_death(child, code)
        return code

    async def _exit_code(self, child: Child) -> int:
        """The child's exit code; after a stop it is killed when the grace time and 5 s more have passed."""
        waiting = asyncio.ensure_future(child.wait())
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait([waiting, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not waiting.done():
            await asyncio.wait([waiting], timeout=self._grace + 5.0)
            if not waiting.done():
                child.kill()
        return await waiting

    async def _handle_death(self, child: Child, code: int) -> None:
        # A second stop kills children while they parse: those pages are not suspects.
        guilty = None if self._hurried else child.marker.suspect
        if not self._stopping.is_set() and code not in (GAVE_UP, FAILED):
            log.warning(
                "a worker process ended (%s) and was replaced",
                crash_reasons.ending(code),
                extra={"event": "child.ended", "fields": {"worker": child.name, "code": code}},
            )
        self.stats.restarts += 1
        mute = guilty is None and code not in (FAILED, GAVE_UP)
        if mute and not self._stopping.is_set() and self._may_come_again(child):
            # No leave(): the missing heartbeat returns its leases after DEAD_AFTER and counts a death for each (F5), so
            # the task that causes this is buried after ten. Until then the new child works on other tasks.
            log.warning(
                "child.unexplained name=%s its leases expire, each counts a death", child.name, extra=_of(child)
            )
        else:
            await self._give_back(child, code, guilty)
        if code == GAVE_UP:
            self._give_up(child.status or "a worker process gave up", "")
        elif code == FAILED:
            self._give_up("a worker process could not start; its message is above")
        elif guilty is None and not self._stopping.is_set():
            now = _now()
            self._crashes.append(now)
            if len(self._crashes) == CRASHES and now - self._crashes[0] < CRASH_WINDOW:
                self._give_up(f"worker processes died {CRASHES} times in {CRASH_WINDOW:.0f} s (last exit code {code})")

    def _may_come_again(self, child: Child) -> bool:
        """Is one of its leases the likely cause, although no suspect is marked? A single crash may be an operator's
        `kill`; a blocked event loop, or a second crash, will repeat as long as its task is leased again."""
        self.stats.unexplained += 1
        return child.name in self._hung or self.stats.unexplained > 1

    async def _give_back(self, child: Child, code: int, guilty: int | None) -> None:
        robots, kept = child.marker.suspects_robots, child.marker.evidence
        why = crash_reasons.cause(
            code, hung=child.name in self._hung, parse=self._parse, memory=self._memory, robots=robots
        )
        detail = f"its body is kept in {self._evidence.format(kept)}" if kept and self._evidence else ""
        try:
            await self._frontier.leave(child.name, guilty, why, detail)
        except FrontierGone:
            # An operator forgot the job, with its leases.
            return
        except FrontierError as error:
            # Nothing is lost: without a heartbeat its leases are returned a little later.
            log.warning("leave.failed name=%s %s", child.name, error.what, extra=_of(child))

    def _give_up(self, why: str, advice: str = "Stored rows are safe; run the same command to continue.") -> None:
        if not self.failure:
            self.failure, self.advice = why, advice
        if not self._stopping.is_set():
            self.stop()

    async def _beat(self) -> None:
        """A child that did nothing since its last heartbeat skips one: it holds no lease, so none is lost."""
        worked: dict[str, Seconds | None] = {}
        while True:
            for child in self.children:
                at_work = None if child.stats is None else child.stats.slots.busy + child.stats.slots.start
                if at_work is None or worked.get(child.name) != at_work:
                    await self._beat_for(child)
                    worked[child.name] = at_work
                else:
                    del worked[child.name]
            await asyncio.sleep(BEAT)

    async def _beat_for(self, child: Child) -> None:
        try:
            await self._frontier.beat(child.name, self._about(child))
        except FrontierGone:
            # An operator forgot the job. The child ends by itself, and its command says so.
            return
        except FrontierError as error:
            self._outage.report(error.what)
        else:
            self._outage.report("")

    async def _watch(self) -> None:
        """Kill children that hang: in one page, or with a blocked event loop. Replace those that have grown."""
        # A child's loop and ours use the same clock of this host.
        awake = AwakeClock(_now(), 1.5 * WATCH)
        while True:
            await asyncio.sleep(WATCH)
            awake.tick(_now())
            for child in self.children:
                if child.name in self._hung:
                    continue
                since, alive_at = child.marker.reading_since, child.marker.alive_at
                reading = awake.lasts(f"{child.name} reads", since) if since is not None else 0.0
                silent = awake.lasts(f"{child.name} is silent", alive_at) if alive_at else 0.0
                if reading > self._parse:
                    log.warning(
                        "child.hangs name=%s reading one page for %.0f s", child.name, reading, extra=_of(child)
                    )
                elif silent > self._parse + LOOP_SILENCE:
                    log.warning(
                        "child.hangs name=%s its loop is silent for %.0f s", child.name, silent, extra=_of(child)
                    )
                else:
                    self._relieve_if_slow(child, reading)
                    self._replace_if_grown(child)
                    continue
                self._hung.add(child.name)
                self.stats.hung += 1
                child.kill()

    def _replace_if_grown(self, child: Child) -> None:
        """Handlers that leak memory grow page by page: no page is the suspect, so the child is stopped gracefully."""
        if child.name in self._asked or self._stopping.is_set() or _now() - self._born[child.name] < GROWN_UP:
            return
        if child.resident() < GROWN * self._memory:
            return
        log.warning(
            "child.grown name=%s uses %d MiB and is replaced", child.name, child.resident() // MIB, extra=_of(child)
        )
        self.stats.grown += 1
        self._ask_to_finish(child)

    def _relieve_if_slow(self, child: Child, reading: Seconds) -> None:
        """It may hang: start a replacement before its parse budget is used up, or the crawl would stall until then.

        Only if a page has hung before: some spiders need seconds for every page.
        """
        if not (self._relieve and self.stats.hung) or reading < min(RELIEF, self._parse / 2):
            return
        if child.name in self._asked or len(self._children) >= 2 * self._count:
            return
        log.warning(
            "child.relieved name=%s has been reading one page for %.1f s", child.name, reading, extra=_of(child)
        )
        self.stats.relieved += 1
        self._ask_to_finish(child)
        self._relieved[child.name].set()

    def _ask_to_finish(self, child: Child) -> None:
        if child.name not in self._asked:
            self._asked.add(child.name)
            child.stop()


def _of(child: Child) -> dict[str, object]:
    """For a JSON log."""
    return {"fields": {"worker": child.name}}


def _now() -> Seconds:
    return asyncio.get_running_loop().time()
