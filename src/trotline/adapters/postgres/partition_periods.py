"""The periods of the partitions of the ledger and of the history. Pure functions of days.

A partition's name contains its bounds (visits_20261101_20261201: the end is exclusive, in UTC), so that partitions of
different lengths can coexist after a change of the setting.
"""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from trotline.adapters.postgres.sink_url import DAY, WEEK
from trotline.model.time import Moment

VISITS, HISTORY = "visits", "history"
_NAME = re.compile(r"(visits|history)_(\d{8})_(\d{8})")
_A_DAY = timedelta(days=1)


class Period(NamedTuple):
    start: date
    end: date
    """Exclusive."""

    def of(self, table: str) -> str:
        """The name of the partition."""
        return f"{table}_{self.start:%Y%m%d}_{self.end:%Y%m%d}"

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
    """The period of a table's name; None if it is not one of our partitions."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    start, end = (datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC).date() for text in match.groups()[1:])
    return Period(start, end)


def missing(days: Iterable[date], unit: str, there: Iterable[Period]) -> list[Period]:
    """The periods to create so that each of the days has one, without overlapping existing ones."""
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
    """The periods that end before `oldest`."""
    return sorted(period for period in there if period.end <= oldest)
