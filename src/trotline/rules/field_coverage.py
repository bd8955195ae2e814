"""Field coverage: in how many records of a kind a field is filled, and how that changed since the last job.

Counted by workers as counters of the job (`CoverageCount` of the worker), which are merged beyond some hundred names:
what was merged is unknown, and never 0.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trotline.rules.warnings import BETWEEN, FIELD_EMPTY, FIELD_SET, KIND_RECORDS, OTHERS

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

    @property
    def points(self) -> float:
        return round(self.before - self.now, 6)

    def text(self) -> str:
        return (
            f"{self.kind}: field {self.field!r} is filled in {self.now:.0%} of {self.records:,} records,"
            f" {self.before:.0%} in the last job"
        )


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


def _of(prefix: str, name: str) -> bool:
    return name.startswith(prefix) and name != prefix + OTHERS
