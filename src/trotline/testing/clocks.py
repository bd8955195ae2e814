"""Clocks that tests turn."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from trotline.model.time import Moment, Seconds

MORNING: Moment = 1_750_000_000.0
"""When tests begin: a whole number, so that sums of whole seconds stay exact."""


class ServerClock:
    """The time a frontier lives by. It stands still until a test turns it, and is never turned back."""

    def __init__(self, start: Moment = MORNING) -> None:
        self._now = start

    def __call__(self) -> Moment:
        return self._now

    def jump(self, seconds: Seconds) -> None:
        if seconds < 0:
            raise ValueError(f"a server's clock goes forward; a jump of {seconds} s would turn it back")
        self._now += seconds


@contextmanager
def wild_wall_clock(skew: Seconds) -> Iterator[None]:
    """This process believes that it is `skew` seconds later (earlier, if negative) than it is.

    Only the wall clock goes wild; the monotonic clock, on which timeouts run, stays true.
    """
    true_time, true_time_ns = time.time, time.time_ns
    with (
        patch("time.time", lambda: true_time() + skew),
        patch("time.time_ns", lambda: true_time_ns() + int(skew * 1e9)),
    ):
        yield
