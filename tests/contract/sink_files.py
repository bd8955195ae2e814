"""The local sinks by the ending of their file's name, and how to read what they wrote.

Light enough for child processes to import.
"""

import csv
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from trotline.adapters.files.csv_parquet import CsvSink, ParquetSink
from trotline.adapters.files.jsonl import JsonlSink
from trotline.adapters.sqlite.sink import SqliteSink, read_records
from trotline.model.record import Record


class FolderSink:
    """The example of docs/how-to/embed-it.md."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def write(self, batch: Sequence[Record]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for record in batch:
            identity = json.dumps([record.site, record.kind, record.key])
            path = self.folder / f"{sha256(identity.encode()).hexdigest()}.json"
            path.write_text(json.dumps(asdict(record)))

    async def close(self) -> None:
        pass


SINKS: dict[str, Any] = {"db": SqliteSink, "jsonl": JsonlSink, "csv": CsvSink, "parquet": ParquetSink}


def thing(key: str, *, seen_at: float = 1_000.0, **data: Any) -> Record:
    url = f"https://shop.example/p/{key}"
    return Record(kind="product", key=key, data={"sku": key, **data}, url=url, site="shop", seen_at=seen_at)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


async def fields_in(path: Path) -> list[dict[str, Any]]:
    """The rows of the file, after a new sink has finished it."""
    sink = SINKS[path.suffix[1:]](path)
    await sink.finish()
    await sink.close()
    match path.suffix:
        case ".db":
            return [row.fields() for row in read_records(path)]
        case ".jsonl":
            return lines(path)
        case ".csv":
            with path.open(newline="", encoding="utf-8") as table:
                return list(csv.DictReader(table))
        case _:
            import pyarrow.parquet as pq

            rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
            return rows


async def keys_in(path: Path) -> list[str]:
    return sorted(fields["sku"] for fields in await fields_in(path))


TURNS = 6


async def story(sink: Any) -> None:
    """Six batches, each with four new things and a new version of the same one; finished twice on the way."""
    for turn in range(TURNS):
        new = [thing(f"T{turn}.{n}", seen_at=1000.0 + turn, v=turn) for n in range(4)]
        await sink.write([*new, thing("same", seen_at=1000.0 + turn, v=turn)])
        print(turn, flush=True)
        if turn in (2, 5):
            await sink.finish()
    await sink.close()


def child(script: str, *args: object) -> "subprocess.Popen[str]":
    """A Python process of its own: what it prints is what it acknowledged."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, args)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
