"""Stored rows, out of a sink and into a file or a stream."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePath
from typing import BinaryIO

import msgspec

from trotline.config import backends
from trotline.errors import SettingsError
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
    backend = backends.find(file)
    form = backend.endings.get(PurePath(file).suffix.lower(), "") if backend else ""
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


def export(
    sink: str, wanted: Wanted, out: Path | BinaryIO, cap: Callable[[Iterable[Row]], Iterable[Row]] = lambda rows: rows
) -> int:
    """Write the rows; how many. A file is replaced whole or not at all. `cap`: takes only some of them."""
    from trotline.adapters.files.export import WRITERS, write_whole

    pipe_broke: BrokenPipeError | None = None
    with backends.snapshot(sink, wanted.kind, wanted.site) as stored:
        rows = cap(_Between(stored, wanted))

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


def kinds(sink: str) -> dict[str, int]:
    """How many rows of each kind a sink has, the most first; nothing if it cannot say."""
    return dict(sorted(backends.count_kinds(sink).items(), key=lambda item: -item[1]))
