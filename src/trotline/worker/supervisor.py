"""A worker is a supervisor and its children: page content is hostile, and native parsers do crash.

The supervisor keeps the children's heartbeat, so a busy event loop never loses its leases. It kills a child that
reads one page for longer than the parse budget, restarts whatever dies, and gives the dead child's leases
back at once: none of its other pages pays for the guilty one.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from trotline.errors import FrontierError
from trotline.model.moments import Seconds
from trotline.ports.frontier import BEAT, Frontier
from trotline.worker.marker import Marker

log = logging.getLogger("trotline.supervisor")

WATCH: Seconds = 0.5
"""How often the children's markers are looked at."""
LOOP_SILENCE: Seconds = 5.0
"""Beyond the parse budget: a child whose event loop has not turned for that much longer hangs outside of any page."""
CRASHES = 8
"""That many deaths within CRASH_WINDOW with no page to blame: something else is wrong, and restarts do not mend it."""
CRASH_WINDOW: Seconds = 30.0
FINISHED, FAILED, STOPPED = 69, 70, 71
"""Exit codes of a child: nothing left to do; it could not even start; somebody asked it to stop, and it did.
Not 0: a library that ends the process in the middle of a page would look like a job that is finished."""


class Child(Protocol):
    """A running child process."""

    name: str
    marker: Marker
    status: str
    """What it said last: why it is held back, or nothing."""

    async def wait(self) -> int: ...

    def stop(self) -> None:
        """Ask it to finish (SIGTERM)."""
        ...

    def kill(self) -> None: ...


class Deaths(msgspec.Struct):
    """What the supervisor had to do."""

    restarts: int = 0
    hung: int = 0


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
    ) -> None:
        self._spawn = spawn
        self._frontier = frontier
        self._count = count
        self._parse = parse
        self._grace = grace
        self._children: dict[int, Child] = {}
        self._stopping = asyncio.Event()
        self._hurried = False
        self._hung: set[str] = set()
        self._crashes: deque[Seconds] = deque(maxlen=CRASHES)
        self.deaths = Deaths()
        self.failure = ""
        """Why the supervisor gave up; empty if it did not."""

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
            child.kill() if self._hurried else child.stop()
        self._stopping.set()

    async def run(self) -> None:
        watching = asyncio.create_task(self._watch())
        beating = asyncio.create_task(self._beat())
        try:
            await asyncio.gather(*(self._keep(place) for place in range(self._count)))
        finally:
            for task in (watching, beating):
                task.cancel()
            await asyncio.gather(watching, beating, return_exceptions=True)

    async def _keep(self, place: int) -> None:
        """One place, and the children that live in it one after another."""
        while not self._stopping.is_set():
            child = await self._spawn(place)
            self._children[place] = child
            if self._stopping.is_set():
                child.stop()
            code = await self._outlast(child)
            del self._children[place]
            if code == FINISHED:
                return
            if code != STOPPED:
                await self._bury_child(child, code)

    async def _outlast(self, child: Child) -> int:
        """The child's exit code; after a stop it has the grace time, and a little more to say goodbye."""
        waiting = asyncio.ensure_future(child.wait())
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait([waiting, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not waiting.done():
            await asyncio.wait([waiting], timeout=self._grace + 5.0)
            if not waiting.done():
                child.kill()
        return await waiting

    async def _bury_child(self, child: Child, code: int) -> None:
        # Whoever stops us twice kills whatever page is just being read: that page did nothing.
        guilty = None if self._hurried else child.marker.suspect
        if not self._stopping.is_set():
            log.warning("child.died name=%s code=%s guilty=%s", child.name, code, guilty)
        try:
            await self._frontier.leave(child.name, guilty)
        except FrontierError as error:
            # Nothing is lost: without a heartbeat its leases go back a little later.
            log.warning("leave.failed name=%s %s", child.name, error.what)
        self.deaths.restarts += 1
        if code == FAILED:
            self._give_up("a worker process could not start; its message is above")
        elif guilty is None and not self._stopping.is_set():
            now = asyncio.get_running_loop().time()
            self._crashes.append(now)
            if len(self._crashes) == CRASHES and now - self._crashes[0] < CRASH_WINDOW:
                self._give_up(f"worker processes died {CRASHES} times in {CRASH_WINDOW:.0f} s (last exit code {code})")

    def _give_up(self, why: str) -> None:
        self.failure = self.failure or why
        if not self._stopping.is_set():
            self.stop()

    async def _beat(self) -> None:
        while True:
            for child in self.children:
                try:
                    await self._frontier.beat(child.name)
                except FrontierError as error:
                    log.warning("beat.failed name=%s %s", child.name, error.what)
            await asyncio.sleep(BEAT)

    async def _watch(self) -> None:
        """Kill children that hang: one page for too long, or a loop that does not turn at all."""
        # A child's loop and ours read the same clock of this host.
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(WATCH)
            now = clock()
            for child in self.children:
                if child.name in self._hung:
                    continue
                since = child.marker.reading_since
                alive_at = child.marker.alive_at
                if since is not None and now - since > self._parse:
                    log.warning("child.hangs name=%s reading one page for %.0f s", child.name, now - since)
                elif alive_at and now - alive_at > self._parse + LOOP_SILENCE:
                    log.warning("child.hangs name=%s its loop is silent for %.0f s", child.name, now - alive_at)
                else:
                    continue
                self._hung.add(child.name)
                self.deaths.hung += 1
                child.kill()
