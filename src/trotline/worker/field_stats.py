"""Statistics for warnings to the author: fields that are always empty, and selectors that never match.

Each fact is reported once, as a counter in the settlement of the page that showed it, and so is known of the whole
fleet. After the first pages nothing new is found, and the cost is a comparison of names per record.
"""

from collections.abc import Collection, Sequence

from trotline.model.harvest import Follow
from trotline.model.record import Record
from trotline.rules.author_warnings import FIELD_EMPTY, FIELD_FILLED, FOLLOW_EMPTY, FOLLOW_MATCHED, label
from trotline.rules.field_coverage import is_empty

MOST_FIELDS = 100
"""Fields of one job that are checked: facts are counters, and their number is limited."""


class FieldStats:
    def __init__(self) -> None:
        self._reported: set[str] = set()
        self._settled: dict[str, set[str]] = {}
        """Kind -> fields that were filled once: not checked any more."""
        self._labels: set[str] = set()

    def facts(self, route: str, records: Sequence[Record], follows: Sequence[Follow]) -> tuple[str, ...]:
        """New facts of one page."""
        facts: dict[str, None] = {}
        for record in records:
            settled = self._settled.get(record.kind)
            if settled is None or not record.data.keys() <= settled:
                self._check(record, settled or set(), facts)
        for follow in follows:
            # A Follow that an author builds by hand may have values of any type.
            if type(follow.query) is str and follow.query:
                fact = (FOLLOW_MATCHED if follow.urls else FOLLOW_EMPTY) + label(route, follow.query)
                if fact not in self._reported:
                    facts[fact] = None
        return tuple(facts)

    @property
    def met_records(self) -> bool:
        return bool(self._labels)

    def confirm(self, facts: Collection[str]) -> None:
        """The frontier has counted them. Not sooner: a fact lost with its settlement would never be reported."""
        self._reported.update(facts)

    def _check(self, record: Record, settled: set[str], facts: dict[str, None]) -> None:
        for name, value in record.data.items():
            if name in settled:
                continue
            field = label(record.kind, name)
            if field not in self._labels:
                if len(self._labels) >= MOST_FIELDS:
                    self._settled.setdefault(record.kind, set()).add(name)
                    continue
                self._labels.add(field)
            if is_empty(value):
                if FIELD_EMPTY + field not in self._reported:
                    facts[FIELD_EMPTY + field] = None
            elif FIELD_FILLED + field in self._reported:
                self._settled.setdefault(record.kind, set()).add(name)
            else:
                facts[FIELD_FILLED + field] = None
