"""A watchdog for commands that parse untrusted text without a supervisor (`trotline try`).

The command runs in a forked process, and writes what it parses, with a deadline, into shared memory: a pattern that
backtracks holds the GIL, so no timer of its own could end it. The parent kills it after the deadline, and reports what
it was parsing when it was killed or crashed.
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
from trotline.rules import crash_reasons

_CELL = struct.Struct("dd")
"""Deadline (0: nothing is being parsed), and the limit in seconds."""
_ROBOTS_AT = 16
_SIZE = 32
LOOK: Seconds = 0.25
"""Interval of the parent's checks."""


class Guard(AbstractContextManager[None]):
    """A context manager for every step that parses untrusted text. Both processes share its memory."""

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
        """What it was parsing when it ended; empty if nothing."""
        until, limit = _CELL.unpack_from(self._memory, 0)
        if not until:
            return ""
        robots = bool(self._memory[_ROBOTS_AT])
        return crash_reasons.cause(code, hung=hung, parse=limit, memory=0, robots=robots)


def run(work: Callable[[Guard], int], killed: Callable[[str], int]) -> int:
    """The exit code of `work`, which runs in a forked process; or of `killed`, which gets the cause of death.

    Returns in both processes: both should exit with this code.
    """
    guard = Guard()
    alive, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(alive)
        return work(guard)
    os.close(theirs)
    for number in (signal.SIGINT, signal.SIGQUIT):
        # The terminal sends these to both processes; the command handles them.
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
    hung = _watch(alive, pid, guard)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    blamed = guard.blame(code, hung=hung) if code < 0 else ""
    return killed(blamed) if blamed else 128 - code if code < 0 else code


def _watch(alive: int, pid: int, guard: Guard) -> bool:
    """Wait for the end of the process, detected by its pipe, which is not inherited. True if it was killed."""
    while not select.select([alive], [], [], LOOK)[0]:
        if guard.overdue():
            os.kill(pid, signal.SIGKILL)
            return True
    return False
