"""Dates and times in pickles, made from their numbers: Python's own constructors for pickles check hardly any of them.

The form of protocols from 3 on, which have bytes.
"""

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

_FOLD = 0x80
"""In the byte of the month: the second one of two equal times, when the clock is set back."""


def _date(given: tuple[Any, ...]) -> date:
    data = _bytes(given[0], 4)
    if len(given) > 1:
        raise ValueError("a date has one value")
    return date(int.from_bytes(data[:2], "big"), data[2], data[3])


def _datetime(given: tuple[Any, ...]) -> datetime:
    data, zone = _bytes(given[0], 10), given[1] if len(given) == 2 else None
    if len(given) > 2 or (zone is not None and type(zone) is not timezone):
        raise ValueError("a time has its bytes and a time zone")
    month, micros = data[2] & ~_FOLD, int.from_bytes(data[7:], "big")
    made = datetime(int.from_bytes(data[:2], "big"), month, data[3], data[4], data[5], data[6], micros, zone)
    return made.replace(fold=data[2] >> 7)


def _timedelta(given: tuple[Any, ...]) -> timedelta:
    if len(given) != 3 or any(type(one) is not int for one in given):
        raise ValueError("a length of time has three integers")
    return timedelta(*given)


def _timezone(given: tuple[Any, ...]) -> timezone:
    (offset,) = given
    if type(offset) is not timedelta:
        raise ValueError("the offset of a time zone is a length of time")
    return timezone(offset)


def _bytes(given: Any, size: int) -> bytes:
    if type(given) is not bytes or len(given) != size:
        raise ValueError("a date is packed into bytes")
    return given


MAKERS: dict[tuple[str, str], Callable[[tuple[Any, ...]], Any]] = {
    ("datetime", "date"): _date,
    ("datetime", "datetime"): _datetime,
    ("datetime", "timedelta"): _timedelta,
    ("datetime", "timezone"): _timezone,
}
"""By the names in a pickle; they raise if the values are wrong."""
