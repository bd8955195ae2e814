"""What an author wants to be warned of: fields that are always empty, and selectors that never match.

Each fact is told once, with the settlement of the page that showed it, and so is known of the whole fleet. After the
first pages there is nothing left to be told, and looking costs a comparison of names per record.
"""

from collections.abc import Collection, Sequence
from typing import Any

from trotline.model.harvest import Follow
from trotline.model.record import Record
from trotline.rules.warnings import FIELD_EMPTY, FIELD_FILLED, FOLLOW_EMPTY, FOLLOW_MATCHED, POOL_MISSING, label

MOST_FIELDS = 100
"""Fields of one job that are looked at: facts are counters, of which a job has few."""

_LONGEST_POOL = 60


class Noticing:
    def __init__(self) -> None:
        self._told: set[str] = set()
        self._settled: dict[str, set[str]] = {}
        """Kind -> fields that were filled once: nothing more to be learnt about them."""
        self._labels: set[str] = set()
        self._pool = False
        """One pool is told: that is enough to look into it."""

    def look(self, route: str, records: Sequence[Record], follows: Sequence[Follow], pool: str = "") -> tuple[str, ...]:
        """Facts of one page that were not told yet. `pool`: that its task names; there are none yet."""
        facts: dict[str, None] = {}
        if pool and not self._pool:
            facts[POOL_MISSING + pool[:_LONGEST_POOL]] = None
        for record in records:
            settled = self._settled.get(record.kind)
            if settled is None or not record.data.keys() <= settled:
                self._look_at(record, settled or set(), facts)
        for follow in follows:
            # What an author builds by hand may hold anything.
            if type(follow.query) is str and follow.query:
                fact = (FOLLOW_MATCHED if follow.urls else FOLLOW_EMPTY) + label(route, follow.query)
                if fact not in self._told:
                    facts[fact] = None
        return tuple(facts)

    def confirm(self, facts: Collection[str]) -> None:
        """The frontier has counted them. Not sooner: a fact that was lost with its settlement would never be told."""
        self._told.update(facts)
        self._pool = self._pool or any(fact.startswith(POOL_MISSING) for fact in facts)

    def _look_at(self, record: Record, settled: set[str], facts: dict[str, None]) -> None:
        for name, value in record.data.items():
            if name in settled:
                continue
            field = label(record.kind, name)
            if field not in self._labels:
                if len(self._labels) >= MOST_FIELDS:
                    self._settled.setdefault(record.kind, set()).add(name)
                    continue
                self._labels.add(field)
            if _is_empty(value):
                if FIELD_EMPTY + field not in self._told:
                    facts[FIELD_EMPTY + field] = None
            elif FIELD_FILLED + field in self._told:
                self._settled.setdefault(record.kind, set()).add(name)
            else:
                facts[FIELD_FILLED + field] = None


def _is_empty(value: Any) -> bool:
    """Zero and False are values; nothing, white space and empty lists are none."""
    return value is None or (isinstance(value, str) and not value.strip()) or value in ([], {})
