"""Encodes parcels: records and visits for a writer.

A version byte, then msgpack: the job, the records as rows, and the visits after the names of their fields. A parcel of
an unknown version is left for another program.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from trotline.model.record import Record
from trotline.model.record_row import Row, whole
from trotline.model.visit_row import VisitRow

VERSION = 1
MOST_TEXT = 1024 * 1024
"""Characters of JSON in one parcel; a larger record has a parcel of its own."""
MOST_THINGS = 1_000
"""Records or visits in one parcel."""

_VISIT_FIELDS = VisitRow.__struct_fields__


class Unreadable(ValueError):
    """The parcel cannot be decoded; the text has the reason and a hint."""


class Parcel(NamedTuple):
    """A batch for the writer."""

    job: str
    records: list[Record]
    visits: list[VisitRow]


class Packed(NamedTuple):
    """An encoded parcel."""

    blob: bytes
    records: int


class _Body(msgspec.Struct, array_like=True):
    job: str
    rows: list[Row]
    visit_fields: list[str]
    visits: list[list[Any]]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Body).decode
_read_json = msgspec.json.Decoder().decode


def pack(job: str, rows: Sequence[Row], visits: Sequence[VisitRow]) -> list[Packed]:
    """Encode as parcels of bounded size."""
    found = [_packed(job, part, ()) for part in _parts(rows)]
    for start in range(0, len(visits), MOST_THINGS):
        found.append(_packed(job, (), visits[start : start + MOST_THINGS]))
    if len(found) == 2 and rows and visits:
        # The usual case: small enough for one parcel, stored in one transaction.
        return [_packed(job, rows, visits)]
    return found


def unpack(blob: bytes) -> Parcel:
    """Decode a parcel; raises `Unreadable`."""
    if blob[:1] != bytes([VERSION]):
        raise Unreadable(
            f"unknown parcel version {blob[0]}; use a newer Trotline as the writer" if blob else "it is empty"
        )
    try:
        body = _decode(blob[1:])
        records = [_record(row) for row in body.rows]
        visits = [_visit(body.visit_fields, line) for line in body.visits]
    except (msgspec.MsgspecError, ValueError) as error:
        raise Unreadable(f"it is damaged: {error}") from error
    return Parcel(body.job, records, visits)


def _parts(rows: Sequence[Row]) -> list[Sequence[Row]]:
    found: list[Sequence[Row]] = []
    start = size = 0
    for end, row in enumerate(rows):
        size += len(row.data)
        if end > start and (size > MOST_TEXT or end - start >= MOST_THINGS):
            found.append(rows[start:end])
            start, size = end, len(row.data)
    return [*found, rows[start:]] if rows else []


def _packed(job: str, rows: Sequence[Row], visits: Sequence[VisitRow]) -> Packed:
    lines = [[whole(value) if isinstance(value, str) else value for value in _values(visit)] for visit in visits]
    body = _Body(job, list(rows), list(_VISIT_FIELDS) if visits else [], lines)
    return Packed(bytes([VERSION]) + _encode(body), len(rows))


def _values(visit: VisitRow) -> tuple[Any, ...]:
    return msgspec.structs.astuple(visit)


def _record(row: Row) -> Record:
    site, kind, key, url, seen_at, data = row
    return Record(kind=kind, key=key, data=_read_json(data), url=url, site=site, seen_at=seen_at)


def _visit(names: list[str], line: list[Any]) -> VisitRow:
    """Unknown fields of newer versions are ignored."""
    return msgspec.convert(dict(zip(names, line, strict=True)), VisitRow)
