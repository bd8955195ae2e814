"""The time limits of one visit with the browser-like client: first byte, minimum rate, total."""

import asyncio
from collections.abc import Callable
from typing import Self

from trotline.adapters.http.failures import Cut
from trotline.model.answer import FailureKind
from trotline.model.limits import Limits
from trotline.model.time import Seconds


class Watchdog:
    """Ends what runs inside `async with` when a limit is exceeded; `cut` says which one.

    `asked`: when the time for the answer started; None: a connection is being opened, which has a limit of its own.
    """

    def __init__(self, limits: Limits, started: Seconds, asked: Callable[[], Seconds | None]) -> None:
        self.cut: Cut | None = None
        self.received = 0
        """Bytes of the body."""
        self._limits = limits
        self._asked = asked
        self._loop = asyncio.get_running_loop()
        self.started = started
        self._late: Seconds = 0.0
        """How long the event loop was blocked, which does not count against the site."""
        self._answered = False
        self._reading = False
        self._left: Seconds = 0.0
        """When the last read ended."""
        self._mark: tuple[Seconds, int] = (0.0, 0)
        """A time, and the bytes received until then: the start of the rate measurement."""
        self._timer = asyncio.timeout(None)
        self._every = min(1.0, limits.slow_after / 4, limits.first_byte / 4, limits.total / 4)

    async def __aenter__(self) -> Self:
        await self._timer.__aenter__()
        self._plan()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._next.cancel()
        await self._timer.__aexit__(*error)  # type: ignore[arg-type]

    def answered(self) -> None:
        """The head is complete."""
        self._answered = True
        self._mark = (self._loop.time(), 0)

    def read(self, reading: bool) -> None:
        """Bytes are awaited, or not: while we decompress, the site is not slow."""
        now = self._loop.time()
        if not reading:
            self._left = now
        elif self._left:
            since, before = self._mark
            self._mark = (since + now - self._left, before)
        self._reading = reading

    def _plan(self) -> None:
        self._due = self._loop.time() + self._every
        self._next = self._loop.call_at(self._due, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        late = max(0.0, now - self._due - self._every)
        self._late += late
        self._mark = (self._mark[0] + late, self._mark[1])
        self.cut = self._judge(now)
        if self.cut is not None:
            self._timer.reschedule(now)
        else:
            self._plan()

    def _judge(self, now: Seconds) -> Cut | None:
        limits = self._limits
        if now - self.started - self._late > limits.total:
            what = "body not complete" if self._answered else "no answer"
            return Cut(FailureKind.TIMEOUT, f"{what} within {limits.total:g} s")
        if not self._answered:
            asked = self._asked()
            if asked is not None and now - asked - self._late > limits.first_byte:
                return Cut(FailureKind.TIMEOUT, f"no answer within {limits.first_byte:g} s")
            return None
        since, before = self._mark
        elapsed = now - since
        if not self._reading or elapsed < limits.slow_after:
            return None
        self._mark = (now, self.received)
        if self.received - before >= elapsed * limits.slowest:
            return None
        return Cut(FailureKind.TOO_SLOW, f"body under {limits.slowest} bytes a second for {elapsed:.2g} s")
