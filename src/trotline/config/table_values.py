"""Values of a proxies file with their types. ValueError says what is allowed, and never quotes what was written: it may
be a misplaced password."""

from collections.abc import Callable
from typing import Any

from trotline.model.pace import Rate
from trotline.model.time import Seconds, seconds

LONGEST_TIME: Seconds = 366 * 86400.0
LONGEST_TEXT = 4_096


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_TEXT or not value.isprintable():
        raise ValueError("must be text in one line")
    return value


def time(value: Any) -> Seconds:
    try:
        found = seconds(value) if isinstance(value, str) else 0.0
    except ValueError:
        found = 0.0
    if not 0 < found <= LONGEST_TIME:
        raise ValueError('must be text like "90s", "30m" or "2h", more than no time and at most a year')
    return found


def interval(value: Any) -> Seconds:
    try:
        return Rate.parse(value).interval
    except ValueError:
        raise ValueError('must be a rate like "1/s" or "30/m", from "1/d" to "100000/s"') from None


def whole(least: int, most: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"must be an integer from {least:,} to {most:,}")
        return value

    return parse
