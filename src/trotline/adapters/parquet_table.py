"""A table of a database as one Parquet file: in a folder, or at any place for files that `use` was given."""

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from trotline.errors import ArchiveError, SinkError
from trotline.ports.object_store import ObjectStore

_TABLE = b"trotline.table"
_MOST_FILES = 1_000
_AGAIN = "Nothing was deleted; it is tried again."

Batch = Sequence[Sequence[Any]]


_places: list[Callable[[str], ObjectStore]] = []


def use(open_place: Callable[[str], ObjectStore]) -> None:
    """How a place that is not a folder is opened. Adapters do not know each other: `config` says it."""
    _places[:] = [open_place]


async def write_table(
    place: str, name: str, table: str, columns: Mapping[str, str], batches: AsyncIterator[Batch]
) -> tuple[str, int]:
    """The file, and its number of rows. Durable, written whole or not at all; SinkError says why not.

    `place`: a folder, or a URL. `table` identifies the table: a file of the same name that was written from the same
    table is replaced (a crash came between the file and the end of the table), another one is kept. `columns`: name ->
    "text", "int", "float" or "moment" (seconds since 1970).
    """
    if "://" not in place:
        path = _free(Path(place), name, table)
        new = path.with_suffix(".parquet.new")
        count = await _written(new, path, table, columns, batches)
        _rename(new, path)
        return str(path), count
    from tempfile import TemporaryDirectory

    [open_place] = _places
    store = open_place(place)
    # With the table in its name: nothing has to be read to know whose file is there.
    stored = f"{name}.{table}.parquet"
    try:
        # Before the table is read: that may take an hour.
        await store.check()
        with TemporaryDirectory(prefix="trotline-parquet-") as folder:
            file = Path(folder) / "table.parquet"
            count = await _written(file, file, table, columns, batches)
            await store.put_file(stored, file)
    except ArchiveError as error:
        raise SinkError(f"{name} cannot be stored: {error.what}", hint=f"{error.hint} {_AGAIN}") from error
    finally:
        await store.close()
    return f"{place.partition('?')[0].rstrip('/')}/{stored}", count


async def _written(
    file: Path, shown: Path, table: str, columns: Mapping[str, str], batches: AsyncIterator[Batch]
) -> int:
    """Its number of rows; on disk when this returns."""
    pa, pq = _pyarrow()
    types = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "moment": pa.timestamp("us", tz="UTC")}
    schema = pa.schema([(column, types[kind]) for column, kind in columns.items()], metadata={_TABLE: table.encode()})
    count = 0
    try:
        with file.open("wb") as out:
            with pq.ParquetWriter(out, schema, compression="zstd") as writer:
                async for batch in batches:
                    cells = [
                        _column(values, kind)
                        for values, kind in zip(zip(*batch, strict=True), columns.values(), strict=True)
                    ]
                    arrays = [pa.array(cell, type_) for cell, type_ in zip(cells, schema.types, strict=True)]
                    writer.write_batch(pa.record_batch(arrays, schema=schema))
                    count += len(batch)
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:
        raise _cannot(file, shown, error) from error
    return count


def _rename(new: Path, path: Path) -> None:
    try:
        new.replace(path)
        handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise _cannot(new, path, error) from error


def _cannot(new: Path, path: Path, error: OSError) -> SinkError:
    with suppress(OSError):
        new.unlink(missing_ok=True)
    return SinkError(f"cannot write {path}: {error.strerror}", hint=_AGAIN)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        hint = "Install it, in your clone of Trotline: pip install '.[parquet]'"
        raise SinkError("writing Parquet needs the package pyarrow", hint=hint) from error
    return pa, pq


def _column(values: Sequence[Any], kind: str) -> Sequence[Any]:
    return [round(value * 1_000_000) for value in values] if kind == "moment" else values


def _free(folder: Path, name: str, table: str) -> Path:
    _, pq = _pyarrow()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SinkError(f"cannot make the folder {folder}: {error.strerror}", hint="Nothing was deleted.") from error
    for number in range(1, _MOST_FILES):
        path = folder / (f"{name}.parquet" if number == 1 else f"{name}.{number}.parquet")
        if not path.exists() or pq.read_schema(path).metadata.get(_TABLE) == table.encode():
            return path
    raise SinkError(f"{folder} has {_MOST_FILES:,} files of {name}", hint="Move some of them away.")
