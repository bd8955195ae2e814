"""Lengths of time as people read them, in a terminal and in a browser."""

from math import floor

from trotline.model.time import Seconds


def length(seconds: Seconds) -> str:
    """In its two largest units: `0.25 s`, `4.2 s`, `42 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 0.995:
        return f"{seconds:.2g} s"
    if seconds < 9.95:
        # Half a tenth is rounded up, as people do.
        return f"{floor(seconds * 10 + 0.5) / 10:.1f} s"
    whole = round(seconds)
    for size, unit, small, small_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {unit}" + (f" {rest} {small_unit}" if rest else "")
    return f"{whole} s"


def between(low: Seconds, high: Seconds) -> str:
    """`2 to 5 min`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if low >= 1.5 * size or high >= 3 * size or size == 1:
            least, most = round(low / size), max(1, round(high / size))
            return f"about {most} {unit}" if least == most else f"{least} to {most} {unit}"
    return ""
