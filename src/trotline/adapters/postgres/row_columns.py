"""Records and visits as the columns of one statement.

Values that PostgreSQL cannot store are replaced (NUL in text), so that no row is lost.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, NamedTuple

import msgspec

from trotline.model.record import Record
from trotline.model.record_row import REPLACEMENT, Row, Unstorable, row_of, whole
from trotline.model.time import LAST_MOMENT, Moment
from trotline.model.visit_row import VisitRow

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_MOST_TEXT = 4 * 1024 * 1024
"""Characters of JSON in one statement."""
_LARGEST = 2**63 - 1
_LARGEST_SMALL = 2**31 - 1


class Placed(NamedTuple):
    """A row, and the position of its record in the batch."""

    position: int
    row: Row


def placed(batch: Sequence[Record]) -> tuple[list[Placed], dict[int, str]]:
    """One row per identity, sorted by it (the same lock order in all writers prevents deadlocks); and the records that
    cannot be stored, with the reason."""
    newest: dict[tuple[str, str, str], Placed] = {}
    rejected: dict[int, str] = {}
    for position, record in enumerate(batch):
        try:
            row = _without_nul(row_of(record))
        except Unstorable as error:
            rejected[position] = str(error)
            continue
        identity = row[:3]
        known = newest.get(identity)
        if known is None or row.seen_at >= known.row.seen_at:
            newest[identity] = Placed(position, row)
    return [newest[identity] for identity in sorted(newest)], rejected


def pieces(rows: Sequence[Placed]) -> list[Sequence[Placed]]:
    """The rows in chunks of at most `_MOST_TEXT`, usually one."""
    found: list[Sequence[Placed]] = []
    start = size = 0
    for end, each in enumerate(rows):
        size += len(each.row.data)
        if size > _MOST_TEXT and end > start:
            found.append(rows[start:end])
            start, size = end, len(each.row.data)
    return [*found, rows[start:]] if rows else []


def columns_of_rows(rows: Iterable[Placed]) -> list[list[Any]]:
    """site, kind, key, data, url, host, seen_at."""
    turned = list(zip(*(row for _, row in rows), strict=True))
    site, kind, key, url, seen_at, data = map(list, turned)
    return [site, kind, key, data, url, [host_of(each) for each in url], seen_at]


def host_of(url: str) -> str:
    """The host of an absolute URL, without user and port; empty if it has none."""
    # A batch has few hosts: cached by origin. The first slash after the scheme ends it.
    end = url.find("/", 8)
    return _host(url if end < 0 else url[:end])


@lru_cache(maxsize=4096)
def _host(url: str) -> str:
    rest = url.partition("://")[2]
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    place = rest[:end].rpartition("@")[2]
    if place.startswith("["):
        return place.partition("]")[0][1:].lower()
    return place.partition(":")[0].lower()


def _without_nul(row: Row) -> Row:
    site, kind, key, url, seen_at, data = row
    if "\0" in site or "\0" in kind or "\0" in key or "\0" in url:
        site, kind, key, url = (text.replace("\0", REPLACEMENT) for text in (site, kind, key, url))
        row = Row(site, kind, key, url, seen_at, data)
    # The first test is ten times as fast, and nearly always False.
    if "\\" in data and "\\u0000" in data:
        # May be an escaped backslash before a u: decoded to be sure.
        return row._replace(data=_encode(_cleaned(_decode(data))).decode())
    return row


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", REPLACEMENT)
    if isinstance(value, dict):
        return {_cleaned(name): _cleaned(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_cleaned(inner) for inner in value]
    return value


# --- visits ----------------------------------------------------------------------------------------------------------

VISIT_TYPES = {
    "job": "text", "token": "bigint", "leased_at": "moment", "site": "text", "url": "text", "fingerprint": "bigint",
    "route": "text", "lane": "text", "worker": "text", "attempt": "integer", "depth": "integer", "parent": "text",
    "found_at": "moment", "proxy": "text", "status": "integer", "took": "double precision", "size": "bigint",
    "verdict": "text", "outcome": "text", "why": "text", "records": "integer", "children": "integer",
    "moved_to": "text", "archive": "text",
}  # fmt: skip
"""The columns of the ledger. A moment is sent as a number and stored as a timestamp."""


def signed(number: int) -> int:
    """An unsigned 64-bit integer as PostgreSQL's signed bigint."""
    return number - 2**64 if number > _LARGEST else number


def ledger_lines(visits: Sequence[VisitRow]) -> list[tuple[Any, ...]]:
    """The visits as tuples in the order of `VISIT_TYPES`, one per identity, sorted like the index."""
    lines = {line[:3]: line for line in map(_line, visits)}
    return [lines[identity] for identity in sorted(lines)]


def _line(visit: VisitRow) -> tuple[Any, ...]:
    return (
        _text(visit.job), visit.token, moment(visit.leased_at), _text(visit.site), _text(visit.url),
        signed(visit.fingerprint), _text(visit.route), _text(visit.lane), _text(visit.worker), _small(visit.attempt),
        _small(visit.depth), _text(visit.parent), moment(visit.found_at), _text(visit.proxy), _small(visit.status),
        visit.took, visit.size, _text(visit.verdict), _text(visit.outcome), _text(visit.why), _small(visit.records),
        _small(visit.children), _text(visit.moved_to), _text(visit.archive),
    )  # fmt: skip


def _text(text: str) -> str:
    if text.isascii():
        return text.replace("\0", REPLACEMENT)
    return whole(text).replace("\0", REPLACEMENT)


def _small(number: int) -> int:
    return min(number, _LARGEST_SMALL)


def moment(at: Moment) -> Moment:
    """A valid time; an invalid one becomes 0."""
    return at if isfinite(at) and 0.0 <= at < LAST_MOMENT else 0.0
