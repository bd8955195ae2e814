"""Values that were read from a store that other programs can write to."""

from trotline.model.time import Moment

MOST = 2**53
"""Larger counters are not counted any more: JSON and charts have floats."""
LATEST: Moment = 1e11
"""Later times do not exist in a calendar."""


def counter(text: str | bytes) -> int:
    """0 if it is no number."""
    try:
        return bounded(int(text[:20]))
    except ValueError:
        return 0


def bounded(number: int) -> int:
    return max(-MOST, min(MOST, number))


def is_moment(value: Moment | None) -> bool:
    """This way round because NaN compares false to everything."""
    return value is None or 0 <= value <= LATEST
