"""Which stretch of time a partition of the ledger holds. Pure: days in, days out.

A partition's name tells its bounds (visits_20261101_20261201: from the first day to before the second, in UTC), so
that partitions of different lengths can stand side by side after somebody changed his mind.
"""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from trotline.adapters.postgres.sink_url import DAY, WEEK
from trotline.model.time import Moment

_NAME = re.compile(r"visits_(\d{8})_(\d{8})")
_A_DAY = timedelta(days=1)


class Period(NamedTuple):
    start: date
    end: date
    """The first day that is no longer in it."""

    @property
    def name(self) -> str:
        return f"visits_{self.start:%Y%m%d}_{self.end:%Y%m%d}"

    def days(self) -> Iterable[date]:
        return (date.fromordinal(number) for number in range(self.start.toordinal(), self.end.toordinal()))


def day_of(moment: Moment) -> date:
    return datetime.fromtimestamp(moment, UTC).date()


def period_of(day: date, unit: str) -> Period:
    if unit == DAY:
        return Period(day, day + _A_DAY)
    if unit == WEEK:
        monday = day - timedelta(days=day.weekday())
        return Period(monday, monday + timedelta(days=7))
    first = day.replace(day=1)
    return Period(first, (first + timedelta(days=32)).replace(day=1))


def named(name: str) -> Period | None:
    """The period that a table's name tells; None if it is no partition of ours."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    start, end = (datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC).date() for text in match.groups())
    return Period(start, end)


def missing(days: Iterable[date], unit: str, there: Iterable[Period]) -> list[Period]:
    """The periods to be made so that each of the days has one. None of them overlaps one that is there."""
    known = list(there)
    made: list[Period] = []
    for day in sorted(set(days)):
        if any(period.start <= day < period.end for period in known):
            continue
        whole = period_of(day, unit)
        start = max([whole.start, *(period.end for period in known if period.end <= day)])
        end = min([whole.end, *(period.start for period in known if period.start > day)])
        made.append(Period(start, end))
        known.append(made[-1])
    return made


def ahead(today: date, unit: str, count: int) -> list[date]:
    """A day of the current period and of each of the `count` after it."""
    days = [today]
    for _ in range(count):
        days.append(period_of(days[-1], unit).end)
    return days


def beyond(oldest: date, there: Iterable[Period]) -> list[Period]:
    """The periods that hold nothing from `oldest` on."""
    return sorted(period for period in there if period.end <= oldest)
