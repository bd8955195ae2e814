"""Strange input: random, and mutated from what is nearly right; and how the work grows with its length."""

import os
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

fuzzed = settings(
    max_examples=int(os.environ.get("TROTLINE_FUZZ_EXAMPLES", "150")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
"""How many inputs a property is given: a few here, as many as there is time for in `python -m tests.fuzz`."""
STILL_LINEAR = 35.0
"""Growth far above what noise makes of 10, far below the 100 of quadratic work."""


def mutated(originals: list[bytes]) -> st.SearchStrategy[bytes]:
    """One of `originals` with up to six places overwritten, doubled or cut."""
    change = st.tuples(st.sampled_from("wdc"), st.integers(0, 1 << 16), st.integers(1, 12), st.binary(max_size=12))
    return st.builds(_mutate, st.sampled_from(originals), st.lists(change, max_size=6))


def _mutate(original: bytes, changes: list[tuple[str, int, int, bytes]]) -> bytes:
    for kind, place, length, new in changes:
        at = place % (len(original) + 1)
        piece = original[at : at + length]
        middle = {"w": new, "d": piece * 3, "c": b""}[kind]
        original = original[:at] + middle + original[at + length :]
    return original


def growth(work: Callable[[Any], object], make: Callable[[int], Any], size: int) -> float:
    """How many times longer ten times the input takes: about 10 when it is linear, 100 when it is quadratic."""
    short, long = make(size), make(size * 10)
    # In turns, and the best of each: a processor that others slow down for a while does so for both.
    took = [(_took(work, short), _took(work, long)) for _ in range(7)]
    return min(each[1] for each in took) / min(each[0] for each in took)


def _took(work: Callable[[Any], object], given: Any) -> float:
    """Processor time of this thread: other people's work does not count."""
    before = time.thread_time_ns()
    work(given)
    return max(1, time.thread_time_ns() - before)
