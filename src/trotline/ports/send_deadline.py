"""A time after which a visit must not send anything. Fetchers check it where the request is written.

A worker that is frozen (SIGSTOP, a paused container, a suspended machine) does not notice the time that passes. When it
wakes up, another worker may have its account.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from trotline.model.time import Seconds

# It goes on while the machine is suspended; where it does not exist, nothing better does.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
TOO_LATE = "not sent: the lease of its account is too old"

_deadline: ContextVar[Seconds | None] = ContextVar("send_deadline", default=None)


def clock() -> Seconds:
    return time.clock_gettime(_CLOCK)


@contextmanager
def sending_until(deadline: Seconds) -> Iterator[None]:
    """Requests of this task that would be written after `deadline` (by `clock`) fail with TOO_LATE."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def has_passed() -> bool:
    """Is it too late to send?"""
    deadline = _deadline.get()
    return deadline is not None and clock() > deadline
