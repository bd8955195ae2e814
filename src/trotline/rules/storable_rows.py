"""Converts a batch of records to rows, and rejects those that cannot be stored."""

from collections.abc import Sequence

from trotline.errors import SinkRejects
from trotline.model.record import Record
from trotline.model.record_row import Row, Unstorable, row_of


def rows_of(batch: Sequence[Record]) -> list[Row]:
    """The records as rows. `SinkRejects` names those that cannot be stored."""
    rows: list[Row] = []
    rejected: dict[int, str] = {}
    for position, record in enumerate(batch):
        try:
            rows.append(row_of(record))
        except Unstorable as error:
            rejected[position] = str(error)
    if rejected:
        raise SinkRejects(rejected)
    return rows


def newest_rows(batch: Sequence[Record]) -> list[Row]:
    """One row per identity: the newest, and of equally new ones the last."""
    rows = rows_of(batch)
    if len({row[:3] for row in rows}) == len(rows):
        return rows
    newest: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        known = newest.get(row[:3])
        if known is None or row.seen_at >= known.seen_at:
            newest[row[:3]] = row
    return list(newest.values())
