"""Stored rows, out of a sink and into a file or a stream."""

import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePath
from typing import BinaryIO

import msgspec

from trotline.config import backends
from trotline.config.backend_urls import shown
from trotline.errors import SettingsError
from trotline.model.record_row import Row
from trotline.model.time import Moment

FORMS = ("jsonl", "csv", "parquet")
_NAMED = 20
"""Names in one message."""


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


class NoneFits(SettingsError):
    """A kind or a site that no record has."""


class KindWatch:
    """Notes the kinds of rows as they pass, for `cap`. A table (`one`) is refused at the second kind, and a pass
    without rows where `refuse_empty` says so: both before a file is replaced."""

    def __init__(self, *, one: bool, refuse_empty: Callable[[], NoneFits | None]) -> None:
        self.seen: set[str] = set()
        self._one = one
        self._refuse_empty = refuse_empty
        self._rows: Iterable[Row] = ()

    def watch(self, rows: Iterable[Row]) -> Iterable[Row]:
        self._rows = rows
        return self

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            if row.kind not in self.seen:
                self.seen.add(row.kind)
                if self._one and len(self.seen) > 1:
                    raise self._mixed()
            yield row
        if not self.seen and (refusal := self._refuse_empty()):
            raise refusal

    def _mixed(self) -> SettingsError:
        first, second = sorted(self.seen)
        return SettingsError(
            f"there are records of several kinds ({first!r}, {second!r}), and one table would not say which is which",
            hint=f"Choose one: --kind {shlex.quote(first)}   Or add the column _kind: --envelope",
        )


def none_fits(sink: str, wanted: Wanted) -> NoneFits | None:
    """Why nothing was found if it is a wrong kind or site; None: it is only that the job saw none."""
    there = kinds(sink)
    whole_sink = not wanted.since and wanted.until == float("inf")
    asked = [f"of {name} {value!r}" for name, value in (("kind", wanted.kind), ("site", wanted.site)) if value]
    if not asked or not there or not (whole_sink or (wanted.kind and wanted.kind not in there)):
        return None
    known = ", ".join(f"{kind} ({number:,})" for kind, number in list(there.items())[:_NAMED])
    return NoneFits(f"there is no record {' '.join(asked)}", hint=f"The kinds there are: {known}. Nothing was written.")


def check_spider(sink: str, spider: str) -> None:
    """SettingsError if other spiders have written to the sink: its rows do not say whose they are."""
    jobs = backends.writing_jobs(sink)
    spiders = sorted({job.rpartition("-")[0] for job in jobs if job})
    if spider in jobs and spider not in spiders:
        raise SettingsError(
            f"job {spider!r} has stored records in {shown(sink)}, but when it ran is not known here",
            hint=f"Name its frontier: --frontier URL   Or all records: trotline export {spider.rpartition('-')[0]}",
        )
    # Writers without a job: `trotline.run`, a reparse, the pipeline of Scrapy. Whose rows those are is not known.
    if spiders and spider not in spiders and "" not in jobs:
        raise SettingsError(
            f"spider {spider!r} has stored nothing in {shown(sink)}", hint=f"Those that have: {_listed(spiders)}"
        )
    if len(spiders) > 1:
        raise SettingsError(
            f"several spiders have stored records in {shown(sink)} ({_listed(spiders)}),"
            " and a stored record does not say whose it is",
            hint="Export those of all of them: --all-spiders, with --kind or --site to choose. "
            "For exports of one spider, give each a sink of its own.",
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


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
