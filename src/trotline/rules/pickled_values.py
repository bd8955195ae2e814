"""Values of the standard library in pickles: dates and times, Decimal, UUID, OrderedDict.

They are made from their text and numbers, and not by Python's own constructors for pickles, which check hardly any of
them. Dates have the form of protocols from 3 on, which have bytes.
"""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

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


def _time(given: tuple[Any, ...]) -> time:
    data, zone = _bytes(given[0], 6), given[1] if len(given) == 2 else None
    if len(given) > 2 or (zone is not None and type(zone) is not timezone):
        raise ValueError("a time has its bytes and a time zone")
    hour = data[0] & ~_FOLD
    return time(hour, data[1], data[2], int.from_bytes(data[3:], "big"), zone, fold=data[0] >> 7)


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


def _decimal(given: tuple[Any, ...]) -> Decimal:
    (text,) = given
    if type(text) is not str:
        raise ValueError("a Decimal is made of text")
    return Decimal(text)


def _uuid(given: tuple[Any, ...]) -> UUID:
    """Its number follows (`fill`)."""
    if given:
        raise ValueError("a UUID is made without values")
    return UUID(int=0)


def _ordered_dict(given: tuple[Any, ...]) -> dict[Any, Any]:
    """Its items follow. The add-on stores it as a dict, too."""
    if given:
        raise ValueError("a dict is made without values")
    return {}


def fill(made: Any, state: Any) -> None:
    """What follows a value that is made without. ValueError: that is nothing of this value."""
    number = state.get("int") if type(state) is dict else None
    if type(made) is not UUID or type(number) is not int or not 0 <= number < 1 << 128:
        raise ValueError("only a UUID has a state, which is a number")
    object.__setattr__(made, "int", number)


MAKERS: dict[tuple[str, str], Callable[[tuple[Any, ...]], Any]] = {
    ("datetime", "date"): _date,
    ("datetime", "datetime"): _datetime,
    ("datetime", "timedelta"): _timedelta,
    ("datetime", "time"): _time,
    ("datetime", "timezone"): _timezone,
    ("decimal", "Decimal"): _decimal,
    ("uuid", "UUID"): _uuid,
    ("collections", "OrderedDict"): _ordered_dict,
}
"""By the names in a pickle; they raise if the values are wrong."""
