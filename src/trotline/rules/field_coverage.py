"""Field coverage: in how many records of a kind a field is filled, and how that changed since the last job.

Counted by workers as counters of the job (`CoverageCount` of the worker), which are merged beyond some hundred names:
what was merged is unknown, and never 0.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trotline.rules.author_warnings import BETWEEN, FIELD_EMPTY, FIELD_SET, KIND_RECORDS, OTHERS

WINDOW_RECORDS = 500
"""An alert is about so many of the last records of a kind, at least."""
MOST_MARKS = 400
"""Looks that are remembered."""
LEAST_RECORDS = 200
"""Records of a kind, in both jobs, before they are compared."""
FELL = 0.10
"""A field whose coverage fell by this share of all records is worth a warning."""


class FieldCoverage(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    field: str
    records: int
    filled: int

    @property
    def share(self) -> float:
        # Both are counters of many workers, read while these work.
        return min(1.0, self.filled / self.records) if self.records else 0.0


class CoverageDrop(msgspec.Struct, frozen=True, kw_only=True):
    """A field that is filled less often than in the last job."""

    kind: str
    field: str
    now: float
    before: float
    records: int
    whole: FieldCoverage | None = None
    """In the whole job, if `now` is about its last records."""

    @property
    def points(self) -> float:
        return round(self.before - self.now, 6)

    def text(self) -> str:
        of = f"{self.now:.0%} of {self.records:,} records"
        if self.whole is not None:
            whole = f"{self.whole.share:.0%} of all {self.whole.records:,}"
            of = f"{self.now:.0%} of the last {self.records:,} records ({whole})"
        return f"{self.kind}: field {self.field!r} is filled in {of}, {self.before:.0%} in the last job"


def is_empty(value: Any) -> bool:
    """None, white space and empty containers are empty; 0 and False are not."""
    if value:
        return isinstance(value, str) and value.isspace()
    return value is None or not isinstance(value, (int, float))


def coverage(tallies: Mapping[str, int]) -> list[FieldCoverage]:
    """By kind and field."""
    records = {name.removeprefix(KIND_RECORDS): count for name, count in tallies.items() if _of(KIND_RECORDS, name)}
    filled = {name.removeprefix(FIELD_SET): count for name, count in tallies.items() if _of(FIELD_SET, name)}
    if not tallies.get(FIELD_SET + OTHERS):
        # Never filled: only a fact says that there is such a field.
        for name in tallies:
            if _of(FIELD_EMPTY, name):
                filled.setdefault(name.removeprefix(FIELD_EMPTY), 0)
    found = []
    for label, count in sorted(filled.items()):
        kind, _, field = label.partition(BETWEEN)
        if records.get(kind):
            found.append(FieldCoverage(kind=kind, field=field, records=records[kind], filled=count))
    return found


def drops(
    now: Sequence[FieldCoverage],
    before: Sequence[FieldCoverage],
    *,
    fell: float = FELL,
    least: int = LEAST_RECORDS,
) -> list[CoverageDrop]:
    """Fields that are filled less often than before, the largest drop first."""
    was = {(each.kind, each.field): each for each in before if each.records >= least}
    found = []
    for each in now:
        then = was.get((each.kind, each.field))
        if then is not None and each.records >= least and round(then.share - each.share, 6) >= fell:
            found.append(
                CoverageDrop(kind=each.kind, field=each.field, now=each.share, before=then.share, records=each.records)
            )
    return sorted(found, key=lambda drop: (-drop.points, drop.kind, drop.field))


class RecentCoverage:
    """The coverage of the last records of each kind: in an old job, a field that vanishes hardly changes the whole."""

    def __init__(self, window: int = WINDOW_RECORDS) -> None:
        self._window = window
        self._marks: deque[dict[tuple[str, str], FieldCoverage]] = deque(maxlen=MOST_MARKS)
        """Earlier looks, the oldest first."""

    def add(self, now: Sequence[FieldCoverage]) -> list[FieldCoverage]:
        """The coverage of the records since the newest earlier look with enough of them; without one: of all."""
        found = [self._since(each) for each in now]
        mark = {(each.kind, each.field): each for each in now}
        if not self._marks or self._marks[-1] != mark:
            self._marks.append(mark)
        return found

    def _since(self, each: FieldCoverage) -> FieldCoverage:
        for mark in reversed(self._marks):
            then = mark.get((each.kind, each.field))
            if then is None:
                break
            records, filled = each.records - then.records, each.filled - then.filled
            if records >= self._window:
                # Counters of many workers, read while these work: no more than there are, and not less than none.
                return msgspec.structs.replace(each, records=records, filled=max(0, min(filled, records)))
        return each


def recent_drops(
    recent: Sequence[FieldCoverage],
    now: Sequence[FieldCoverage],
    before: Sequence[FieldCoverage],
    *,
    fell: float,
    least: int,
) -> list[CoverageDrop]:
    """Of the last records, with what is true of all."""
    whole = {(each.kind, each.field): each for each in now}
    found = []
    for drop in drops(recent, before, fell=fell, least=least):
        every = whole[drop.kind, drop.field]
        partly = every.records > drop.records
        found.append(msgspec.structs.replace(drop, whole=every) if partly else drop)
    return found


def _of(prefix: str, name: str) -> bool:
    return name.startswith(prefix) and name != prefix + OTHERS
