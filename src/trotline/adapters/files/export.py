"""Rows to JSON lines, CSV or Parquet, written to an open binary file in constant memory."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any, BinaryIO

from trotline.adapters.files.file_paths import write_whole
from trotline.adapters.files.table_cells import Columns, cell, typed
from trotline.errors import SinkError
from trotline.model.record_row import Row, json_text

__all__ = ["WRITERS", "to_csv", "to_jsonl", "to_parquet", "write_whole"]

_MOST_ROWS = 8192
_MOST_CELLS = 1_000_000
_MOST_CHARACTERS = 16 * 1024 * 1024


def line_of(row: Row, envelope: bool = False) -> bytes:
    text = json_text(row.fields() | row.envelope()) if envelope else row.data
    return text.encode() + b"\n"


def to_jsonl(rows: Iterable[Row], out: BinaryIO, *, envelope: bool = False) -> int:
    """One JSON object per line. Returns the number of rows."""
    count = 0
    for row in rows:
        out.write(line_of(row, envelope))
        count += 1
    return count


def to_csv(rows: Iterable[Row], out: BinaryIO, *, envelope: bool = False, raw: bool = False) -> int:
    """A header with every field of every row, then the rows. Iterates `rows` twice.

    Cells that a spreadsheet would run as a formula get a leading quote, unless `raw`.
    """
    _repeatable(rows)
    columns = Columns.of(_fields(rows, envelope))
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=False)
    try:
        table = csv.writer(text)
        if columns.kinds:
            table.writerow([cell(name, raw) for name in columns.kinds])
        count = 0
        for fields in _fields(rows, envelope):
            table.writerow([cell(value, raw) for value in columns.values(fields)])
            count += 1
    finally:
        # The file belongs to the caller: flush, and leave it open.
        text.detach()
    return count


def to_parquet(rows: Iterable[Row], out: BinaryIO, *, envelope: bool = False) -> int:
    """Typed columns, in row groups. A column of mixed or nested values holds text (JSON). Iterates `rows` twice."""
    _repeatable(rows)
    need_pyarrow()
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = Columns.of(_fields(rows, envelope))
    types = {name: columns.type_of(name) for name in columns.kinds}
    arrow = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "text": pa.string()}
    schema = pa.schema([(name, arrow[kind]) for name, kind in types.items()])
    count = 0
    with pq.ParquetWriter(out, schema) as table:
        for chunk in _chunks(rows, envelope, columns):
            cells = zip(*chunk, strict=True)
            arrays = [
                pa.array([typed(value, kind) for value in column], arrow[kind])
                for column, kind in zip(cells, types.values(), strict=True)
            ]
            table.write_batch(pa.record_batch(arrays, schema=schema))
            count += len(chunk)
    return count


WRITERS: dict[str, Callable[..., int]] = {"jsonl": to_jsonl, "csv": to_csv, "parquet": to_parquet}
"""By format, which is also the usual file extension."""


def need_pyarrow() -> None:
    if find_spec("pyarrow") is None:
        raise SinkError(
            "writing Parquet needs the package pyarrow",
            hint="Install it, in your clone of Trotline: pip install '.[parquet]'",
        )


def _repeatable(rows: Iterable[Row]) -> None:
    if iter(rows) is rows:
        raise TypeError("rows are iterated twice: pass a snapshot or a list, not a generator")


def _fields(rows: Iterable[Row], envelope: bool) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield row.fields() | row.envelope() if envelope else row.fields()


def _chunks(rows: Iterable[Row], envelope: bool, columns: Columns) -> Iterator[list[list[Any]]]:
    """Rows as lists of values, in chunks of bounded memory."""
    most = max(1, min(_MOST_ROWS, _MOST_CELLS // max(1, len(columns.kinds))))
    chunk: list[list[Any]] = []
    characters = 0
    for row in rows:
        fields = row.fields() | row.envelope() if envelope else row.fields()
        chunk.append(columns.values(fields))
        characters += len(row.data)
        if len(chunk) >= most or characters >= _MOST_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk
