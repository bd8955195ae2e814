"""Rows in plain files: JSON lines, CSV, Parquet."""

import shlex
from collections.abc import Mapping
from pathlib import PurePath

from trotline.model.time import Moment
from trotline.ports.backend import Backend, SinkOffer
from trotline.ports.sink import Sink
from trotline.rules.backend_urls import file_url, path_of, scheme_of

_ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}


def _parse(text: str) -> str:
    return file_url(text, scheme_of(text) or _ENDINGS[PurePath(text.strip()).suffix.lower()])


def _sink(url: str, job: str, started_at: Moment) -> Sink:
    scheme, path = scheme_of(url), path_of(url)
    if scheme == "jsonl":
        from trotline.adapters.files.jsonl import JsonlSink

        return JsonlSink(path, job=job, started_at=started_at)
    from trotline.adapters.files.csv_parquet import CsvSink, ParquetSink

    return (CsvSink if scheme == "csv" else ParquetSink)(path, job=job, started_at=started_at)


def _look(url: str, kinds: Mapping[str, int]) -> str:
    path = path_of(url)
    if scheme_of(url) == "parquet":
        code = f"import pyarrow.parquet as p; print(p.read_table({path!r}).slice(0, 5))"
        return f"python -c {shlex.quote(code)}"
    return f"head {shlex.quote(path)}"


BACKEND = Backend(
    name="files",
    schemes=("jsonl", "csv", "parquet"),
    local=True,
    endings=_ENDINGS,
    sink=SinkOffer(
        forms=("jsonl:PATH", "csv:PATH", "parquet:PATH"),
        parse=_parse,
        open=_sink,
        look=_look,
        no_rows="the records are in {} already, and only a database can be exported"
        "|Use that file as it is, or run the spider with --out FILE.db",
    ),
)
