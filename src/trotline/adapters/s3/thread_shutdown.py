"""Lets the client's threads leave Python before the interpreter ends.

A thread of obstore that delivers an answer wakes the event loop, and needs the interpreter lock once more to return
from that. If the process ends in between (the answer was an error, the command prints it and is over), Python 3.11 to
3.13 end that thread in the middle of Rust code, and the whole process aborts with SIGABRT.
"""

import atexit
import sys
import threading
import time
from functools import lru_cache

from trotline.model.time import Seconds

_AT_THE_DOOR: Seconds = 0.01
"""A thread that waits for the lock to begin is in no frame yet; in so much time it is."""
_LONGEST: Seconds = 2.0
"""A thread of another library may stay in Python forever: the exit does not wait for it."""


@lru_cache
def install() -> None:
    """Once per process, when the client is first used."""
    atexit.register(_wait)


def _wait() -> None:
    until = time.monotonic() + _LONGEST
    time.sleep(_AT_THE_DOOR)
    while _is_inside() and time.monotonic() < until:
        time.sleep(_AT_THE_DOOR)


def _is_inside() -> bool:
    """A thread that Python has not started runs Python code."""
    known = {thread.ident for thread in threading.enumerate()}
    return any(ident not in known for ident in sys._current_frames())
