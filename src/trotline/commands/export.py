"""Stored rows, out of a sink and into a file or a stream."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path, PurePath
from typing import BinaryIO

import msgspec

from trotline.config.urls import POSTGRES, REDIS, SINK_FORMS, path_of, public, scheme_of
from trotline.errors import SettingsError, SinkError
from trotline.model.row import Row
from trotline.model.time import Moment

FORMS = ("jsonl", "csv", "parquet")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows, and in which form."""

    form: str = "jsonl"
    kind: str | None = None
    site: str | None = None
    since: Moment = 0.0
    until: Moment = float("inf")
    envelope: bool = False
    """Also where each row came from: _site, _kind, _key, _url, _seen_at."""


def form_of(file: str) -> str:
    """The form that a file's ending asks for."""
    form = SINK_FORMS.get(PurePath(file).suffix.lower(), "")
    if form not in FORMS:
        raise SettingsError(
            f"{file}: its ending does not say what to write", hint="Use .jsonl, .csv or .parquet, or give --format."
        )
    return form


class _Between:
    """The rows seen within a time. Can be gone through more than once, as tables need it."""

    def __init__(self, rows: Iterable[Row], wanted: Wanted) -> None:
        self._rows = rows
        self._wanted = wanted

    def __iter__(self) -> Iterator[Row]:
        since, until = self._wanted.since, self._wanted.until
        return (row for row in self._rows if since <= row.seen_at <= until)


def export(sink: str, wanted: Wanted, out: Path | BinaryIO) -> int:
    """Write the rows; how many. A file is replaced whole or not at all."""
    from trotline.adapters.files.export import WRITERS, write_whole

    pipe_broke: BrokenPipeError | None = None
    with _stored(sink, wanted) as stored:
        rows = _Between(stored, wanted)

        def write(stream: BinaryIO) -> int:
            return WRITERS[wanted.form](rows, stream, envelope=wanted.envelope)

        if isinstance(out, Path):
            return write_whole(out, write)
        try:
            number = write(out)
            out.flush()
        except BrokenPipeError as error:
            # Kept until the sink is closed: there it would pass for trouble with the sink's file.
            pipe_broke = error
    if pipe_broke is not None:
        raise pipe_broke
    return number


def _stored(sink: str, wanted: Wanted) -> AbstractContextManager[Iterable[Row]]:
    """The rows of a sink that can be asked for them."""
    if scheme_of(sink) in POSTGRES:
        from trotline.adapters.postgres import export_reader

        return export_reader.snapshot(sink, wanted.kind, wanted.site)
    if scheme_of(sink) == "sqlite":
        from trotline.adapters.sqlite.sink_file import snapshot

        return snapshot(path_of(sink), wanted.kind, wanted.site)
    if scheme_of(sink) in REDIS:
        raise SettingsError(
            f"{public(sink)} is where results wait for a writer, and no database",
            hint="Name the database that the writer fills: --sink postgresql://HOST/DATABASE",
        )
    raise SettingsError(
        f"the records are in {path_of(sink)} already, and only a database can be exported",
        hint="Use that file as it is, or run the spider with --out FILE.db",
    )


def kinds(sink: str) -> dict[str, int]:
    """How many rows of each kind a sink has, the most first; nothing if it cannot say."""
    return dict(sorted(_counts(sink).items(), key=lambda item: -item[1]))


def _counts(sink: str) -> dict[str, int]:
    if scheme_of(sink) in POSTGRES:
        from trotline.adapters.postgres import export_reader

        # Asked for a summary: a server that is away now, or has too much to count, is no reason to fail.
        with suppress(SinkError):
            return export_reader.count_records(sink)
        return {}
    if scheme_of(sink) != "sqlite" or not Path(path_of(sink)).is_file():
        return {}
    from trotline.adapters.sqlite.sink_file import count_records

    return count_records(path_of(sink))
