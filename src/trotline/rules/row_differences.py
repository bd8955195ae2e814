"""What a re-parse would change: its records against the rows that are stored."""

from collections import Counter
from collections.abc import Container, Iterable
from math import inf
from typing import NamedTuple

import msgspec
import xxhash

from trotline.model.record import Record
from trotline.model.record_row import Row, json_text
from trotline.model.time import Moment, Seconds
from trotline.rules import redaction

Identity = tuple[str, str, str]
TICK: Seconds = 1e-6
"""Databases round times to microseconds: a difference of one is none."""


class Made(NamedTuple):
    """The newest record of an identity."""

    seen_at: Moment
    hash: int
    place: tuple[int, int]
    """Where it is: file and offset."""


class Differences(msgspec.Struct):
    new: int = 0
    changed: int = 0
    same: int = 0
    older: int = 0
    """The stored row was seen later: it stays."""
    not_made: int = 0
    """Rows of the pages that were read, and of the same kinds and time, that no page gives now: they stay."""
    of_failed: int = 0
    """Rows of pages that failed now, or are damaged: they stay, too."""
    fields: Counter[str] = msgspec.field(default_factory=Counter)
    """Changed fields: "kind.field" -> rows."""
    examples: list[dict[str, object]] = []
    """Some changed rows: what each field was, and what it is."""


def identity_of(record: Record | Row) -> Identity:
    return record.site, record.kind, record.key


def hash_of(text: str) -> int:
    """Of the data, whatever the order of its fields: databases do not keep it."""
    return xxhash.xxh3_64_intdigest(msgspec.json.encode(msgspec.json.decode(text), order="sorted"))


def newest(made: dict[Identity, Made], record: Record, place: tuple[int, int]) -> None:
    """Add a record; the newest sighting of an identity wins, as in every sink."""
    known = made.get(identity_of(record))
    if known is None or record.seen_at >= known.seen_at:
        made[identity_of(record)] = Made(record.seen_at, hash_of(json_text(record.data)), place)


def changed_fields(row: Row, record: Record) -> dict[str, tuple[object, object]]:
    """Field -> what it was and what it is."""
    was, now = row.fields(), msgspec.json.decode(json_text(record.data))
    names = [*now, *(name for name in was if name not in now)]
    return {name: (was.get(name), now.get(name)) for name in names if was.get(name) != now.get(name)}


def hash_of_url(url: str) -> int:
    return xxhash.xxh3_64_intdigest(redaction.url(url).encode("utf-8", "surrogatepass"))


class PagesRead:
    """The pages that handlers have read now, and so the rows that they could give again."""

    def __init__(self, *, of_a_route: bool = False) -> None:
        """`of_a_route`: pages of other routes, which may have been leased at the same moment, were left out."""
        self._of_a_route = of_a_route
        self._urls, self._ticks = set[int](), set[int]()
        self._first, self._last = inf, -inf

    def add(self, url: int, at: Moment) -> None:
        """`url`: its hash. `at`: the `seen_at` of its records."""
        self._urls.add(url)
        self._ticks.add(round(at / TICK))
        self._first, self._last = min(self._first, at), max(self._last, at)

    def span(self, row: Row) -> bool:
        """Was it seen between the first and the last of them?"""
        return self._first - TICK <= row.seen_at <= self._last + TICK

    def gave(self, row: Row) -> bool:
        """Is it a row of one of them? A handler may give a record the URL of another page: its time tells, too."""
        if not self.span(row):
            return False
        if hash_of_url(row.url) in self._urls:
            return True
        tick = round(row.seen_at / TICK)
        return not self._of_a_route and not self._ticks.isdisjoint((tick - 1, tick, tick + 1))


class Examples:
    """Some changed rows: first those that show a field which no other one shows."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._fields = set[str]()
        self._telling: list[dict[str, object]] = []
        self._others: list[dict[str, object]] = []

    def add(self, example: dict[str, object], fields: Iterable[str]) -> None:
        if new := set(fields) - self._fields:
            self._fields |= new
            self._telling.append(example)
        elif len(self._others) < self._most:
            self._others.append(example)

    def chosen(self) -> list[dict[str, object]]:
        return [*self._telling, *self._others][: self._most]


def compared(
    made: dict[Identity, Made], rows: Iterable[Row], pages: PagesRead, failed: Container[int] = ()
) -> tuple[Differences, list[tuple[Row, Made]]]:
    """The differences without their fields, and the rows that changed. `failed`: URLs that were not read, as hashes."""
    found, changed, left = Differences(), [], dict(made)
    kinds = {(site, kind) for site, kind, _ in made}
    for row in rows:
        one = left.pop(identity_of(row), None)
        if one is None:
            if hash_of_url(row.url) in failed:
                found.of_failed += 1
            else:
                found.not_made += pages.gave(row) or ((row.site, row.kind) in kinds and pages.span(row))
        elif one.hash == hash_of(row.data):
            found.same += 1
        elif one.seen_at < row.seen_at - TICK:
            found.older += 1
        else:
            found.changed += 1
            changed.append((row, one))
    found.new = len(left)
    return found, changed
