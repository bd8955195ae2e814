"""How long commits take: the 95th percentile between two looks at the counters of workers."""

from collections.abc import Mapping

from trotline.model.time import Seconds
from trotline.model.work_stats import BOUNDS, Timing

ENOUGH = 5
"""Commits; of fewer, one slow one would be all of them."""
_SHARE = 0.95


def p95(before: Mapping[str, Timing], now: Mapping[str, Timing]) -> Seconds | None:
    """Of the commits in between, over all workers; None if there were too few."""
    counts = [0] * (len(BOUNDS) + 1)
    for worker, timing in now.items():
        then = before.get(worker)
        if then is None:
            # Its counters go back to its start: how many of them are new is unknown.
            continue
        new = [count - earlier for count, earlier in zip(timing.counts, then.counts, strict=True)]
        if min(new) < 0:
            # The process was replaced, and counts anew.
            new = list(timing.counts)
        counts = [count + more for count, more in zip(counts, new, strict=True)]
    return _percentile(counts) if sum(counts) >= ENOUGH else None


def _percentile(counts: list[int]) -> Seconds:
    """Linear within its class; the last class has no upper bound, so it is its lower one."""
    wanted = _SHARE * sum(counts)
    below = 0.0
    for place, count in enumerate(counts[:-1]):
        if below + count >= wanted:
            low = BOUNDS[place - 1] if place else 0.0
            return low + (BOUNDS[place] - low) * (wanted - below) / count
        below += count
    return BOUNDS[-1]
