"""Counts in how many records each field is filled, and hands the counts over with a settlement now and then.

Counters of every page would cost the frontier more than the page itself. What is not handed over when a process is
killed, or when its settlement is refused, is lost: coverage is a ratio.
"""

from collections.abc import Iterable

from trotline.model.record import Record
from trotline.model.time import Seconds
from trotline.rules.author_warnings import FIELD_SET, KIND_RECORDS, label
from trotline.rules.field_coverage import is_empty
from trotline.worker.field_stats import MOST_FIELDS

FLUSH_RECORDS = 50
FLUSH_EVERY: Seconds = 5.0
MOST_KINDS = 20


class CoverageCount:
    """Of one worker process. Fields and kinds beyond the limits are not counted: their coverage is unknown."""

    def __init__(self) -> None:
        self._records: dict[str, int] = {}
        self._filled: dict[str, dict[str, int]] = {}
        self._fields = 0
        self._new = 0
        """Records that are not handed over yet."""
        self._taken_at = 0.0

    def add(self, records: Iterable[Record]) -> None:
        for record in records:
            kind = record.kind
            filled = self._filled.get(kind)
            if filled is None:
                if len(self._filled) >= MOST_KINDS:
                    continue
                filled = self._filled[kind] = {}
                self._records[kind] = 0
            self._records[kind] += 1
            self._new += 1
            for name, value in record.data.items():
                if not is_empty(value):
                    if name in filled:
                        filled[name] += 1
                    elif self._fields < MOST_FIELDS:
                        filled[name] = 1
                        self._fields += 1

    def take(self, now: Seconds, *, idle: bool) -> dict[str, int]:
        """The counters to hand over, if it is time. `idle`: this may be the last settlement for a while."""
        if not self._new or not (idle or self._new >= FLUSH_RECORDS or now - self._taken_at >= FLUSH_EVERY):
            return {}
        self._new, self._taken_at = 0, now
        found: dict[str, int] = {}
        for kind, filled in self._filled.items():
            if self._records[kind]:
                _add(found, KIND_RECORDS + label(kind), self._records[kind])
                self._records[kind] = 0
            for name, count in filled.items():
                if count:
                    _add(found, FIELD_SET + label(kind, name), count)
                    filled[name] = 0
        return found


def _add(found: dict[str, int], name: str, count: int) -> None:
    # Long names are cut, and may be equal then.
    found[name] = found.get(name, 0) + count
