"""A guard for commands that read foreign text without a supervisor (`trotline try`).

The command runs in a forked process. It writes into shared memory what it is reading and until when it may; a pattern
that backtracks holds the GIL, so no timer of its own could end it. The parent kills it when that time has passed, and
says what it was reading when it was killed or crashed.
"""

import mmap
import os
import select
import signal
import struct
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from trotline.model.time import Seconds
from trotline.rules import kill_reasons

_CELL = struct.Struct("dd")
"""Until when it may read (0: it reads nothing), and how long that is in all."""
_ROBOTS_AT = 16
_SIZE = 32
LOOK: Seconds = 0.25
"""How often the parent looks."""


class Guard(AbstractContextManager[None]):
    """Entered around every stretch of work on foreign text. Both processes see the same memory."""

    def __init__(self, memory: mmap.mmap | None = None, limit: Seconds = 10.0, *, robots: bool = False) -> None:
        self._memory = memory if memory is not None else mmap.mmap(-1, _SIZE)
        self._limit = limit
        self._robots = robots

    def of(self, limit: Seconds, *, robots: bool = False) -> "Guard":
        """The same memory, for this kind of work."""
        return Guard(self._memory, limit, robots=robots)

    def begin(self) -> None:
        self._memory[_ROBOTS_AT] = self._robots
        _CELL.pack_into(self._memory, 0, time.monotonic() + self._limit, self._limit)

    def end(self) -> None:
        _CELL.pack_into(self._memory, 0, 0.0, 0.0)

    def __enter__(self) -> None:
        self.begin()

    def __exit__(self, *_: object) -> None:
        self.end()

    def overdue(self) -> bool:
        until, _ = _CELL.unpack_from(self._memory, 0)
        return bool(until) and time.monotonic() > until

    def blame(self, code: int, *, hung: bool) -> str:
        """What it was reading when it ended so; empty if it was not reading."""
        until, limit = _CELL.unpack_from(self._memory, 0)
        if not until:
            return ""
        robots = bool(self._memory[_ROBOTS_AT])
        return kill_reasons.cause(code, hung=hung, parse=limit, memory=0, robots=robots)


def run(work: Callable[[Guard], int], killed: Callable[[str], int]) -> int:
    """The exit code of `work`, which runs in a forked process; or of `killed`, told what was being read at its end.

    Returns in both processes: both are to end with this exit code.
    """
    guard = Guard()
    alive, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(alive)
        return work(guard)
    os.close(theirs)
    for number in (signal.SIGINT, signal.SIGQUIT):
        # The terminal sends these to both; the command decides what they mean.
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
    hung = _watch(alive, pid, guard)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    blamed = guard.blame(code, hung=hung) if code < 0 else ""
    return killed(blamed) if blamed else 128 - code if code < 0 else code


def _watch(alive: int, pid: int, guard: Guard) -> bool:
    """Wait for the end of the process: of its pipe, which no child of its own inherits. True if it had to be killed."""
    while not select.select([alive], [], [], LOOK)[0]:
        if guard.overdue():
            os.kill(pid, signal.SIGKILL)
            return True
    return False
