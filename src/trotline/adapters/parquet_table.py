"""A table of a database as one Parquet file in a folder. The archive may take this over: it is given rows in batches, a
name, and what identifies the table."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from trotline.errors import SinkError

_TABLE = b"trotline.table"
_MOST_FILES = 1_000

Batch = Sequence[Sequence[Any]]


async def write_table(
    folder: str, name: str, table: str, columns: Mapping[str, str], batches: AsyncIterator[Batch]
) -> tuple[Path, int]:
    """The file, and its number of rows. Written whole or not at all.

    `table` identifies the table: a file of the same name that was written from the same table is replaced (a crash came
    between the file and the end of the table), another one is kept, and the new one gets a number. `columns`: name ->
    "text", "int", "float" or "moment" (seconds since 1970).
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        hint = "Install it, in your clone of Trotline: pip install '.[parquet]'"
        raise SinkError("writing Parquet needs the package pyarrow", hint=hint) from error

    types = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "moment": pa.timestamp("us", tz="UTC")}
    schema = pa.schema([(column, types[kind]) for column, kind in columns.items()], metadata={_TABLE: table.encode()})
    path = _free(Path(folder), name, table)
    new = path.with_suffix(".parquet.new")
    count = 0
    try:
        with new.open("wb") as out:
            with pq.ParquetWriter(out, schema, compression="zstd") as writer:
                async for batch in batches:
                    cells = [
                        _column(values, kind)
                        for values, kind in zip(zip(*batch, strict=True), columns.values(), strict=True)
                    ]
                    writer.write_batch(
                        pa.record_batch(
                            [pa.array(c, t) for c, t in zip(cells, schema.types, strict=True)], schema=schema
                        )
                    )
                    count += len(batch)
            out.flush()
            os.fsync(out.fileno())
        new.replace(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise SinkError(
            f"cannot write {path}: {error.strerror}", hint="Nothing was deleted; it is tried again."
        ) from error
    handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return path, count


def _column(values: Sequence[Any], kind: str) -> Sequence[Any]:
    return [round(value * 1_000_000) for value in values] if kind == "moment" else values


def _free(folder: Path, name: str, table: str) -> Path:
    import pyarrow.parquet as pq

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SinkError(f"cannot make the folder {folder}: {error.strerror}", hint="Nothing was deleted.") from error
    for number in range(1, _MOST_FILES):
        path = folder / (f"{name}.parquet" if number == 1 else f"{name}.{number}.parquet")
        if not path.exists() or pq.read_schema(path).metadata.get(_TABLE) == table.encode():
            return path
    raise SinkError(f"{folder} has {_MOST_FILES:,} files of {name}", hint="Move some of them away.")
